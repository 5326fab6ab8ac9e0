package permit

import "strings"

func machineCommands(t table) {
	t.add("systemctl service initctl rc-service rc-update launchctl chkconfig update-rc.d supervisorctl", serviceCommand)
	t.add("mount", func(c *invoked) {
		if len(c.args) > 0 && !asksOnly(c) {
			c.known(c.args)
			c.zone(ZoneMachine, "mounts file systems")
		}
	})
	t.add("umount swapon swapoff losetup fusermount fusermount3 zfs zpool lvcreate lvextend lvchange vgcreate vgchange pvcreate mdadm btrfs xfs_growfs resize2fs tune2fs e2fsck fsck fsck.ext4 "+
		"debugfs hdparm smartctl eject partprobe growpart", storageCommand)
	t.add("crontab", func(c *invoked) {
		if o := c.options(c.args, "* u= l e r i s x="); !o.has("l") || o.has("r", "e") {
			c.zone(ZoneMachine, "schedules commands to run later")
		}
	})
	t.add("at batch atrm anacron", func(c *invoked) {
		c.zone(ZoneMachine, "schedules commands to run later")
		if c.stdin.known {
			c.child(c.stdin)
		}
	})
	t.add("ip ifconfig route arp", addressCommand)
	t.add("sysctl", func(c *invoked) {
		o := c.options(c.args, "p=?! load=?! f=?! system! w write a all A X n values e ignore N names b binary r= pattern= q quiet d h help V version")
		set := o.has("w", "write")
		for _, a := range o.rest {
			set = set || strings.Contains(a.text, "=")
		}
		if set {
			c.zone(ZoneMachine, "changes settings of the kernel")
		}
	})
	t.add("hostname", func(c *invoked) {
		if o := c.options(c.args, "* F=! file=! b"); len(o.rest) > 0 {
			c.zone(ZoneMachine, "sets the name of the machine")
		}
	})
	t.add("hostnamectl timedatectl localectl loginctl", func(c *invoked) {
		if o := c.options(c.args, "*"); len(o.rest) > 0 && !oneOf(word(o.rest, 0), "status show list-timezones list-sessions list-users") {
			c.zone(ZoneMachine, "changes the settings of the machine")
		}
	})
	t.add("journalctl dmesg", func(c *invoked) {
		c.known(c.args)
		c.zone(ZoneMachine, "reads the logs of the machine")
	})
}

func serviceCommand(c *invoked) {
	o := c.options(c.args, "* H=! host=! M=! machine=! t= type= p= property= n= lines= o= output= state=")
	verb := word(o.rest, 0)
	if c.name == "service" {
		verb = word(o.rest, 1)
	}
	if !oneOf(verb, "status is-active is-enabled is-failed list-units list-unit-files list-timers list-dependencies cat show list print blame") && (len(o.rest) > 0 || o.strange != "") {
		c.zone(ZoneMachine, "changes the services of the machine")
	}
}

func storageCommand(c *invoked) {
	c.known(c.args)
	c.zone(ZoneMachine, "changes the storage of the machine")
	for _, a := range c.args {
		if oneOf(a.text, "destroy labelclear --zero-superblock remove") {
			c.protect(destroyData, "removes stored data")
		}
		if strings.Contains(a.text, "security-erase") {
			c.never("it erases a disk")
		}
	}
}

// addressCommand judges ip and similar tools. Verbs that only show something are
// harmless.
func addressCommand(c *invoked) {
	list := "*"
	if c.name == "ip" { // options of ip are whole words, and may be abbreviated
		list = "*-n=! ne=! net=! netn=! netns=! b=! ba=! bat=! batc=! batch=! f= family= rc= rcvbuf= l= loops="
	}
	o := c.options(c.args, list)
	if c.name == "ifconfig" {
		if len(o.rest) > 1 {
			c.zone(ZoneMachine, "changes the network of the machine")
		}
		return
	}
	if c.name == "ip" {
		if verb := word(o.rest, 1); len(o.rest) > 1 && !oneOf(verb, "show sho sh list lis ls lst l get") && (verb != "s" || !oneOf(word(o.rest, 0), "a ad add addr address")) {
			c.zone(ZoneMachine, "changes the network of the machine")
		}
		if word(o.rest, 0) == "netns" && word(o.rest, 1) == "exec" {
			c.exec(o.from(3))
		}
		return
	}
	for i, a := range o.rest {
		verb := a.text
		if i > 0 && oneOf(verb, "show list ls get lst s l") {
			return
		}
		if oneOf(verb, "add del delete set change replace flush up down append prepend exec attach save restore") {
			c.zone(ZoneMachine, "changes the network of the machine")
		}
	}
	if o.may("d", "delete", "s", "set", "f", "file") && c.name == "arp" {
		c.zone(ZoneMachine, "changes the network of the machine")
	}
}

// processCommands end or change other processes.
func processCommands(t table) {
	t.add("kill", killCommand)
	t.add("pkill killall killall5 xkill skill snice fuser renice", func(c *invoked) {
		c.known(c.args)
		if c.name == "fuser" && !parseOptions(c.args, "*").has("k", "kill") || asksOnly(c) {
			return
		}
		c.zone(ZoneMachine, "ends or changes other processes")
	})
}

// killCommand judges kill. It is harmless to end the shell's own background jobs.
func killCommand(c *invoked) {
	args := c.args
	signal, all := "", false
	for i := 0; i < len(args); i++ {
		switch text := args[i].text; {
		case i == 0 && (text == "-l" || text == "-L" || text == "--list" || text == "--table"):
			return
		case !args[i].known:
			if strings.Trim(text, `"{}`) != "$!" {
				c.unknown("cannot determine which process this is")
			}
		case text == "-s" || text == "-n" || text == "--signal":
			i++
			signal = word(args, i)
		case text == "--":
		case strings.HasPrefix(text, "-") && signal == "" && !all && !(i > 0 && text == "-1"):
			signal = text[1:]
			all = len(args) == 1
		case text == "-1":
			c.never("it ends every process")
		case strings.HasPrefix(text, "%"):
		case signal == "0":
		default:
			c.zone(ZoneMachine, "ends another process")
		}
	}
}

// systemCommands are other programs that affect more than the project.
func systemCommands(t table) {
	t.add("inotifywait fswatch watchman watchexec", func(c *invoked) {
		o := c.options(c.args, "+* e= r= m= t= timeout= event= exclude= w= watch= exts= filter= f= i= ignore= o=> outfile=> fromfile=< format=")
		if c.name == "watchexec" {
			c.zone(ZoneBuild, "runs a command whenever files change")
			c.exec(o.rest)
			return
		}
		c.readAll(o.rest)
	})
	t.add("direnv", func(c *invoked) {
		c.known(c.args[:min(2, len(c.args))])
		switch word(c.args, 0) {
		case "exec":
			c.zone(ZoneBuild, "runs code of the project")
			c.exec(c.args[min(2, len(c.args)):])
		case "status", "version", "":
		default:
			c.zone(ZoneMachine, "lets files of the project change the user's shell")
		}
	})
	t.add("convert magick mogrify ffmpeg ffprobe identify pdftotext pdftk qpdf tesseract dot neato rsvg-convert", mediaCommand)
}

// mediaCommand judges converters of pictures, sounds and documents. A file name can also
// stand for a device, a URL or a script.
func mediaCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	c.known(c.args)
	c.zone(ZoneWorkspace, "")
	for _, a := range c.args {
		switch {
		case strings.HasPrefix(a.text, "-o") && len(a.text) > 2 && !strings.HasPrefix(a.text, "-option"):
			c.mayTouch(literal(strings.TrimPrefix(a.text[2:], "=")))
		case strings.HasPrefix(a.text, "-"):
			if strings.Contains(a.text, "=") {
				c.mayTouch(literal(a.text[strings.IndexByte(a.text, '=')+1:]))
			}
		case strings.Contains(a.text, ":") || strings.HasPrefix(a.text, "|") || strings.HasPrefix(a.text, "@") || strings.HasPrefix(a.text, "%"):
			c.unknown("cannot determine which file or program " + shown(a.text) + " means")
		default:
			c.mayTouch(a)
		}
	}
}

// ruinCommands destroy the contents of disks.
func ruinCommands(t table) {
	t.add("mkfs mke2fs mkswap mkdosfs newfs newfs_apfs newfs_hfs newfs_msdos blkdiscard mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat mkfs.msdos mkfs.ntfs mkfs.f2fs "+
		"mkfs.minix mkfs.cramfs mkfs.bfs mkfs.exfat mkfs.reiserfs mkfs.jfs mkfs.udf mkfs.nilfs2 mkfs.zfs mkfs.erofs", func(c *invoked) {
		if !asksOnly(c) {
			c.never("it may overwrite an existing file system")
		}
	})
	t.add("wipefs", func(c *invoked) {
		o := c.options(c.args, "* o= offset= t= types= n no-act")
		c.zone(ZoneMachine, "reads information about disks")
		if o.may("a", "all", "o", "offset", "f", "force") && !o.has("n", "no-act") {
			c.never("it erases a disk")
		}
	})
	t.add("fdisk sfdisk cfdisk gdisk sgdisk cgdisk parted gparted", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		o := c.options(c.args, "*")
		c.zone(ZoneMachine, "reads information about disks")
		if o.has("l", "list", "p", "print", "d", "dump", "J", "json", "s") && !o.has("delete", "Z", "z", "zap", "zap-all", "o", "clear", "n", "t") && !partedWrites(o.rest) {
			return
		}
		if len(o.rest) == 2 && oneOf(word(o.rest, 1), "print unit") {
			return
		}
		c.never("it changes the partitions of a disk")
	})
	t.add("badblocks", func(c *invoked) {
		c.zone(ZoneMachine, "reads a disk")
		if o := c.options(c.args, "* b= c= i=< o=> p= t= e= d="); o.has("w", "n") {
			c.never("it writes to a disk")
		}
	})
	t.add("nvme", func(c *invoked) {
		c.zone(ZoneMachine, "reads information about disks")
		if oneOf(word(c.args, 0), "format sanitize write write-zeroes write-uncor dsm delete-ns security-send") {
			c.never("it erases a disk")
		}
	})
	t.add("cryptsetup", func(c *invoked) {
		c.zone(ZoneMachine, "changes the storage of the machine")
		if oneOf(word(parseOptions(c.args, "* c= h= s= key-file= d=").rest, 0), "luksFormat luksErase erase reencrypt luksKillSlot") {
			c.never("it erases a disk")
		}
	})
	t.add("diskutil", func(c *invoked) {
		verb := strings.ToLower(word(c.args, 0))
		if oneOf(verb, "list info") {
			return
		}
		c.zone(ZoneMachine, "changes the storage of the machine")
		if strings.HasPrefix(verb, "erase") || strings.HasPrefix(verb, "partition") || oneOf(verb, "zerodisk randomdisk secureerase reformat") || verb == "apfs" && strings.HasPrefix(strings.ToLower(word(c.args, 1)), "delete") {
			c.never("it erases a disk")
		}
	})
	t.add("lvremove vgremove pvremove dmsetup", func(c *invoked) {
		c.zone(ZoneMachine, "changes the storage of the machine")
		c.protect(destroyData, "removes stored data")
	})
}

func partedWrites(words []arg) bool {
	for _, a := range words {
		if oneOf(a.text, "mklabel mktable mkpart rm resizepart set rescue name") {
			return true
		}
	}
	return false
}
