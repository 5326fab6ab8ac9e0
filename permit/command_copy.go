package permit

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

func copyCommands(t table) {
	t.add("cp gcp", copyCommand)
	t.add("mv gmv", moveCommand)
	t.add("ln gln link", linkCommand)
	t.add("install ginstall", installCommand)
	t.add("rsync", rsyncCommand)
}

// targets returns the paths that a copy creates: files in a directory, or one new name.
func (c *invoked) targets(from []arg, o *options) (to []arg) {
	dir, ok := o.value("t", "target-directory")
	switch {
	case ok:
	case len(from) == 0:
		return nil
	default:
		last := from[len(from)-1]
		if from = from[:len(from)-1]; len(from) == 1 && !from[0].pattern && (o.has("T", "no-target-directory") || !c.isDirectory(last)) {
			return []arg{last}
		}
		dir = last
	}
	for _, a := range c.few(from) {
		if o.has("parents") {
			to = append(to, under(dir, a))
			continue
		}
		to = append(to, c.inside(dir, a)...)
	}
	if len(to) == 0 {
		to = []arg{dir}
	}
	return to
}

// inside returns the paths of the copies in a directory. a is the file that is copied, or
// a pattern for several files.
func (c *invoked) inside(dir, a arg) []arg {
	if !a.known || a.pipe {
		return []arg{dir}
	}
	if !a.pattern {
		return []arg{under(dir, literal(path.Base(a.text)))}
	}
	c.mayTouch(dir)
	var all []arg
	for _, s := range c.spots(a, removes) {
		all = append(all, under(dir, literal(path.Base(s.path))))
	}
	return all
}

// sources returns the arguments that are copied, without the target.
func sources(o *options) []arg {
	if o.has("t", "target-directory") || len(o.rest) == 0 {
		return o.rest
	}
	return o.rest[:len(o.rest)-1]
}

func copyCommand(c *invoked) {
	o := c.options(c.args, "* t= target-directory= S= suffix= reflink=? sparse= backup=? preserve=? no-preserve= context=? update=?")
	c.zone(ZoneWorkspace, "")
	deep := o.may("r", "R", "a", "recursive", "archive")
	follows := o.may("L", "dereference") || runtime.GOOS != "linux" && o.has("r") // on other systems cp -r means cp -RL
	for _, a := range sources(o) {
		if deep {
			a.follows = a.follows || follows
			c.readTree(a)
		} else {
			c.read(a)
		}
		if o.may("l", "link", "s", "symbolic-link") {
			c.leads(a)
		}
	}
	targets := c.targets(o.rest, o)
	c.backups(o, targets)
	if deep {
		c.becomes(sources(o), targets)
	}
	for _, to := range targets {
		if deep {
			c.overwrite(to)
		} else {
			c.write(to)
		}
	}
	if len(o.rest) == 2 {
		c.merges(o.rest[0], o.rest[1], o.has("T", "no-target-directory"))
	}
	if !follows && (deep || o.may("P", "no-dereference", "d")) {
		c.bringsCopies(sources(o))
	}
}

// merges records that the command copies the contents of a directory into another
// directory. The copies could replace files that control Belay or git. all says that the
// command copies the contents of every source. Otherwise it copies only the contents of a
// source such as dir/. and copies other sources as a whole.
func (c *invoked) merges(from, to arg, all bool) {
	if !from.known || from.pipe || !all && !strings.HasSuffix(from.text, "/.") && from.text != "." && path.Base(from.text) != ".." {
		return
	}
	for _, name := range copiedNames {
		if c.exists(under(from, literal(name))) || c.wroteInto(from, name) {
			c.write(under(to, literal(name)))
		}
	}
}

// copiedNames are names at the top of a directory that control Belay, git or another
// program.
var copiedNames = slices.Concat([]string{".belay", ".claude", "belay.yaml", "belay.yml", ".git"}, slices.Sorted(maps.Keys(laterFiles)), laterSorted)

// wroteInto reports whether an earlier command of the line wrote a file with this name
// into a directory.
func (c *invoked) wroteInto(dir arg, name string) bool {
	return slices.ContainsFunc(c.spots(under(dir, literal(name)), reads), func(s spot) bool {
		return slices.ContainsFunc(c.found, func(f Finding) bool {
			return f.Kind == KindWrite && (f.Subject == s.name() || strings.HasPrefix(f.Subject, s.name()+"/"))
		})
	})
}

func moveCommand(c *invoked) {
	o := c.options(c.args, "* t= target-directory= S= suffix= backup=? context=? update=?")
	c.zone(ZoneWorkspace, "")
	to := c.targets(o.rest, o)
	for _, a := range sources(o) {
		c.remove(a)
	}
	c.writeAll(to)
	c.backups(o, to)
	c.becomes(sources(o), to)
	c.bringsCopies(sources(o))
}

// linkCommand judges ln. The analysis does not see later reads and writes through the
// link.
func linkCommand(c *invoked) {
	o := c.options(c.args, "* t= target-directory= S= suffix= backup=?")
	c.zone(ZoneWorkspace, "")
	from, to := sources(o), c.targets(o.rest, o)
	if len(o.rest) == 1 && !o.has("t", "target-directory") { // ln FILE makes a link with the same name in the current directory
		from, to = o.rest, c.inside(literal("."), o.rest[0])
	}
	holder := literal(".") // the directory of the links
	if len(to) > 0 {
		holder = arg{text: path.Dir(to[0].text), known: to[0].known}
	}
	symbolic := o.may("s", "symbolic")
	misleads := symbolic && slices.ContainsFunc(c.few(from), func(a arg) bool { return !c.isFile(a, holder) })
	c.writeAll(to)
	c.becomes(from, to)
	for _, t := range c.few(to) {
		if symbolic && misleads { // the analysis does not see files that are later written through the link
			c.fillsHolder(t)
		}
	}
	for _, a := range c.few(from) {
		if symbolic && !o.has("r", "relative") && a.known && !path.IsAbs(a.text) && !a.pattern {
			a = under(holder, a) // the target is relative to the link
		}
		c.leads(a)
	}
	c.backups(o, to)
	switch {
	case misleads:
		c.bringsLinks(c.name) // LINK/.. leads to another directory than the path shows
	case !symbolic:
		c.bringsCopies(from)
	}
}

// isFile reports whether the target of a link is a regular file. Then a path such as
// LINK/.. is invalid. holder is the directory of the link.
func (c *invoked) isFile(a, holder arg) bool {
	if !a.isText() || c.ranBefore() {
		return false
	}
	if !path.IsAbs(a.text) {
		a = under(holder, a)
	}
	spots := c.entries(a)
	return len(spots) > 0 && !slices.ContainsFunc(spots, func(s spot) bool {
		info, err := os.Lstat(filepath.FromSlash(s.path))
		return err != nil || !info.Mode().IsRegular()
	})
}

// backups records that the command keeps each replaced file as a backup, whose name is
// the file's name plus a suffix.
func (c *invoked) backups(o *options, to []arg) {
	for _, suffix := range o.values("S", "suffix") {
		c.writeJoined(to, suffix)
	}
}

// plainSuffixes are suffixes that never make a file name which another program runs.
const plainSuffixes = ".bak .backup .orig .old .tmp .save ~ .gz .bz2 .xz .zst .lz4"

// writeJoined records that the command writes files whose names are the given names plus
// a suffix.
func (c *invoked) writeJoined(files []arg, suffix arg) {
	switch {
	case suffix.known && (suffix.text == "" || oneOf(suffix.text, plainSuffixes)):
		return
	case !suffix.known || strings.ContainsAny(suffix.text, "/*"):
		c.unknown("cannot determine which files it writes")
		return
	}
	c.writeNamed(files, func(name string) string { return name + suffix.text })
}

// writeNamed records that the command writes files whose names it derives from the given
// names.
func (c *invoked) writeNamed(files []arg, name func(string) string) {
	for _, a := range c.few(files) {
		switch {
		case a.pipe:
		case a.isText():
			c.write(literal(name(a.text)))
		case !a.known || a.tree || a.below:
			c.unknown("cannot determine which files it writes")
		default:
			for _, s := range c.spots(a, removes) {
				c.write(literal(name(s.path)))
			}
		}
	}
}

func installCommand(c *invoked) {
	o := c.options(c.args, "* m= mode= o= owner= g= group= t= target-directory= S= suffix= strip-program=$ backup=? context=?")
	c.zone(ZoneWorkspace, "")
	if o.has("d", "directory") {
		c.writeAll(o.rest)
		return
	}
	c.readAll(sources(o))
	c.writeAll(c.targets(o.rest, o))
	c.backups(o, c.targets(o.rest, o))
}

// rsyncOptions are all options of rsync, which accepts no abbreviations.
const rsyncOptions = "e= rsh= rsync-path=$ exclude= include= f= filter= F exclude-from=< include-from=< files-from=< 0 from0 log-file=> backup-dir=> password-file=< T=> temp-dir=> partial-dir=> " +
	"compare-dest=< copy-dest=< link-dest=< M=! remote-option=! config=! daemon! write-batch=> only-write-batch=> read-batch=! copy-as=! write-devices! port= bwlimit= timeout= contimeout= chmod= chown= " +
	"max-size= min-size= max-delete= max-alloc= out-format= log-format= log-file-format= B= block-size= address= sockopts= info= debug= stderr= iconv= protocol= suffix= compress-level= zl= " +
	"compress-threads= modify-window= @= skip-compress= outbuf= checksum-choice= cc= checksum-seed= compress-choice= zc= stop-after= time-limit= stop-at= usermap= groupmap= early-input=< v verbose q quiet " +
	"c checksum a archive r recursive R relative b backup u update inplace append append-verify d dirs old-dirs old-d mkpath l links L copy-links copy-unsafe-links safe-links munge-links k copy-dirlinks " +
	"K keep-dirlinks H hard-links p perms E executability A acls X xattrs o owner g group devices copy-devices specials D t times U atimes open-noatime N crtimes O omit-dir-times J omit-link-times super " +
	"fake-super S sparse preallocate n dry-run W whole-file x one-file-system existing ignore-non-existing ignore-existing remove-source-files remove-sent-files del delete delete-before delete-during " +
	"delete-delay delete-after delete-excluded ignore-missing-args delete-missing-args ignore-errors force partial P delay-updates m prune-empty-dirs numeric-ids I ignore-times size-only y fuzzy z compress " +
	"old-compress new-compress C cvs-exclude old-args s secluded-args protect-args trust-sender blocking-io stats 8 8-bit-output h human-readable progress i itemize-changes list-only fsync 4 ipv4 6 ipv6 V " +
	"version help msgs2stderr inc-recursive no-motd no-implied-dirs no-perms no-p no-owner no-o no-group no-g no-times no-t no-links no-l no-recursive no-r no-relative no-R no-dirs no-d no-whole-file no-W " +
	"no-inc-recursive no-i-r no-compress no-z no-human-readable no-h no-verbose no-v no-devices no-specials no-D no-xattrs no-X no-acls no-A no-super no-partial no-progress no-blocking-io no-delay-updates " +
	"no-checksum no-c no-hard-links no-H no-omit-dir-times no-O no-itemize-changes no-i no-bwlimit no-timeout no-fuzzy no-prune-empty-dirs no-msgs2stderr no-force no-backup no-update no-sparse no-inplace"

// rsyncCommand judges rsync. An argument with a colon before the first slash is on
// another machine.
func rsyncCommand(c *invoked) {
	o := c.options(c.args, rsyncOptions)
	for _, rule := range o.values("f", "filter") { // a filter rule may name a file with more rules
		if fields := strings.Fields(rule.text); len(fields) > 1 && !strings.ContainsAny(fields[0], "+-PHSR!") {
			c.read(arg{text: fields[len(fields)-1], known: rule.known})
		}
	}
	for _, shell := range o.values("e", "rsh") {
		if !plainRemoteShell(shell) {
			c.unknown("it runs a program to connect to another machine")
			c.child(shell)
		}
	}
	for _, a := range sources(o) {
		if !isRemote(a) && o.has("L", "copy-links", "k", "copy-dirlinks", "copy-unsafe-links") {
			c.readFollowing([]arg{a}, true)
		}
	}
	if o.has("remove-source-files", "remove-sent-files") {
		for _, a := range sources(o) {
			c.remove(a)
		}
	}
	for name := range strings.FieldsSeq("delete del delete-before delete-during delete-delay delete-after delete-excluded delete-missing-args") {
		if o.has(name) {
			c.protect(destroyFiles, "removes files that are not in the source")
			break
		}
	}
	if o.has("n", "dry-run") && len(o.rest) > 0 {
		c.transfer(o.rest[:len(o.rest)-1], o.rest[len(o.rest)-1:])
		return
	}
	if len(o.rest) > 1 {
		c.zone(ZoneWorkspace, "")
		to := o.rest[len(o.rest)-1]
		for _, a := range o.rest[:len(o.rest)-1] {
			switch {
			case isRemote(to):
			case isRemote(a):
				c.fillsHolder(to)
			default:
				c.merges(a, to, strings.HasSuffix(a.text, "/"))
				c.becomes([]arg{a}, []arg{to, under(to, literal(path.Base(a.text)))})
			}
		}
		c.transfer(o.rest[:len(o.rest)-1], o.rest[len(o.rest)-1:])
		c.bringsCopies(sources(o))
		if slices.ContainsFunc(sources(o), isRemote) {
			c.bringsLinks(c.name)
		}
		return
	}
	c.transfer(o.rest, nil)
}

// transfer records that the command copies files. Source and target may be on another
// machine.
func (c *invoked) transfer(from, to []arg) {
	for _, a := range from {
		if isRemote(a) {
			c.zone(ZoneNetwork, "fetches from another machine")
			c.fetch(a)
		} else {
			c.readTree(a)
		}
	}
	for _, a := range to {
		if isRemote(a) {
			c.zone(ZoneExternal, "sends to another machine")
			c.send(a)
			continue
		}
		c.zone(ZoneWorkspace, "")
		for _, f := range c.few(from) {
			c.arrives(f, a)
		}
	}
}

// arrives records that the command copies a file to a path. If the path is a directory,
// the copy is in that directory and keeps its name.
func (c *invoked) arrives(from, to arg) {
	c.overwrite(to)
	if !from.known || !c.isDirectory(to) || strings.HasSuffix(from.text, "/") {
		return
	}
	name := from.text[strings.LastIndexAny(from.text, "/:")+1:]
	switch {
	case strings.ContainsAny(name, "*?[{") || name == "":
		c.unpacks(to)
	case name != "." && name != "..":
		c.overwrite(under(to, literal(name)))
	}
}

// isRemote reports whether a word has the form host:path or is a URL.
func isRemote(a arg) bool {
	host, _, ok := strings.Cut(a.text, ":")
	return a.known && ok && host != "" && !strings.Contains(host, "/")
}

// plainRemoteShell reports whether a command is ssh with harmless options only.
func plainRemoteShell(a arg) bool {
	words := strings.Fields(a.text)
	if !a.known || len(words) == 0 || words[0] != "ssh" && words[0] != "/usr/bin/ssh" {
		return false
	}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-p", "-l", "-i":
			i++
		case "-q", "-4", "-6", "-C", "-T", "-x", "-a":
		default:
			return false
		}
	}
	return true
}
