package permit

import "strings"

func tarCommands(t table) { t.add("tar gtar bsdtar", tarCommand) }

// tarOptions are the options of GNU tar and BSD tar.
const tarOptions = "* f= file= list label C= directory= T= files-from= X=< exclude-from=< exclude= I=$ use-compress-program=$ to-command=$ checkpoint=? checkpoint-action=! " +
	"F=$ info-script=$ new-volume-script=$ rsh-command=$ rmt-command=$ transform=! xform=! s=! g=> listed-incremental=> index-file=> b= blocking-factor= format= " +
	"tape-length= N= newer= after-date= newer-mtime= starting-file= mode= owner= group= mtime= strip-components= suffix= backup=? one-top-level=?> " +
	"add-file=< volno-file=> record-size= wildcards sort= level= pax-option= warning= totals=? hole-detection= occurrence=? no-quote-chars= quote-chars= quoting-style= " +
	"owner-map=< group-map=< set-mtime-command=$ utc"

func tarCommand(c *invoked) {
	o := c.options(tarDashed(c.args), tarOptions)
	archives := o.values("f", "file")
	for _, a := range archives {
		if isRemote(a) && !o.has("force-local") {
			c.zone(ZoneExternal, "the archive is on another machine")
			c.send(a)
		}
	}
	for _, list := range o.values("T", "files-from") {
		c.read(list) // lines of the list may be options, too
		c.unknown("cannot determine which files it uses")
	}
	dirs := o.values("C", "directory")
	switch {
	case o.may("x", "extract", "get"):
		c.readAll(archives)
		c.unpack(o, dirs)
	case o.has("t", "list", "d", "diff", "compare", "test-label"):
		c.readAll(archives)
	default: // c, r, u, A, delete
		c.zone(ZoneWorkspace, "")
		for _, a := range archives {
			c.emit(a)
		}
		c.pack(o, dirs)
	}
}

func (c *invoked) unpack(o *options, dirs []arg) {
	if o.has("O", "to-stdout") {
		return
	}
	if o.may("P", "absolute-names", "absolute-paths", "recursive-unlink", "U", "unlink-first", "keep-directory-symlink") {
		c.unknown("it may write outside the directory that it unpacks to")
	}
	c.zone(ZoneWorkspace, "")
	for _, top := range o.values("one-top-level") { // without a value, tar names the directory after the archive
		if top != (arg{}) {
			dirs = append(dirs, top)
		}
		c.bringsLinks(c.name)
	}
	if len(dirs) == 0 && !o.has("one-top-level") {
		dirs = []arg{literal(".")}
	}
	for _, dir := range dirs {
		c.unpacks(dir)
	}
}

func (c *invoked) pack(o *options, dirs []arg) {
	follows := o.may("h", "dereference") || c.name == "bsdtar" && o.has("L", "H")
	if len(dirs) == 0 {
		c.readFollowing(o.rest, follows)
	}
	for _, dir := range c.few(dirs)[:min(len(dirs), mostDirectories)] { // the order of the words decides which file is in which directory: try all pairs
		c.in(dir, func() { c.readFollowing(o.rest, follows) })
	}
	if o.may("remove-files") {
		c.protect(destroyFiles, "removes the files after packing them")
		for _, a := range o.rest {
			c.remove(a)
			for _, dir := range dirs[:min(len(dirs), mostDirectories)] {
				c.remove(under(dir, a))
			}
		}
	}
}

// tarDashed converts the old form of options, "tar xzf FILE", to the form with dashes.
func tarDashed(args []arg) []arg {
	first := word(args, 0)
	if first == "" || strings.HasPrefix(first, "-") || args[0].pattern {
		return args
	}
	rest := args[1:]
	var dashed []arg
	for letter := range strings.SplitSeq(first, "") {
		dashed = append(dashed, literal("-"+letter))
		if kind, _ := kindOf(tarOptions[1:], letter); strings.HasPrefix(kind, "=") && !strings.HasPrefix(kind, "=?") && len(rest) > 0 {
			dashed = append(dashed, rest[0])
			rest = rest[1:]
		}
	}
	return append(dashed, rest...)
}
