package permit

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// copyCommands move files about.
func copyCommands(t table) {
	t.add("cp gcp", copyCommand)
	t.add("mv gmv", moveCommand)
	t.add("ln gln link", linkCommand)
	t.add("install ginstall", installCommand)
	t.add("rsync", rsyncCommand)
}

// targets are where files go that are copied to a directory, or to a name.
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

// inside are the names that a file, or those of a pattern, get in a directory.
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

// sources are the words that are copied.
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
	follows := o.may("L", "dereference") || runtime.GOOS != "linux" && o.has("r") // elsewhere cp -r is cp -RL
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

// merges says that what is in a directory goes into another, if it is copied so: then
// what steers Belay or git there would be replaced too.
func (c *invoked) merges(from, to arg, all bool) {
	if !from.known || from.pipe || !all && !strings.HasSuffix(from.text, "/.") && from.text != "." && path.Base(from.text) != ".." {
		return
	}
	for _, s := range c.spots(from, reads) {
		for _, name := range []string{".belay", ".claude", "belay.yaml", "belay.yml", ".git"} {
			if _, err := os.Lstat(filepath.FromSlash(s.path + "/" + name)); err == nil {
				c.write(under(to, literal(name)))
			}
		}
	}
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

// linkCommand is ln. Through a link what it leads to is read and changed later, where
// it is not seen.
func linkCommand(c *invoked) {
	o := c.options(c.args, "* t= target-directory= S= suffix= backup=?")
	c.zone(ZoneWorkspace, "")
	from, to := sources(o), c.targets(o.rest, o)
	if len(o.rest) == 1 && !o.has("t", "target-directory") { // a link of that name, here
		from, to = o.rest, c.inside(literal("."), o.rest[0])
	}
	holder := literal(".") // of the links: all are in one directory
	if len(to) > 0 {
		holder = arg{text: path.Dir(to[0].text), known: to[0].known}
	}
	symbolic := o.may("s", "symbolic")
	misleads := symbolic && slices.ContainsFunc(c.few(from), func(a arg) bool { return !c.isFile(a, holder) })
	c.writeAll(to)
	c.becomes(from, to)
	for _, a := range c.few(from) {
		if symbolic && !o.has("r", "relative") && a.known && !path.IsAbs(a.text) && !a.pattern {
			a = under(holder, a) // what a link says is relative to it
		}
		c.leads(a)
	}
	c.backups(o, to)
	switch {
	case misleads:
		c.bringsLinks(c.name) // .. behind the link leads elsewhere
	case !symbolic:
		c.bringsCopies(from)
	}
}

// isFile reports whether what a link in a directory leads to is a plain file. There is no ..
// behind it.
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

// backups says that the command keeps what it replaces under names with a suffix.
func (c *invoked) backups(o *options, to []arg) {
	for _, suffix := range o.values("S", "suffix") {
		c.writeJoined(to, suffix)
	}
}

// plainSuffixes are suffixes that make no name of a file which other programs run.
const plainSuffixes = ".bak .backup .orig .old .tmp .save ~ .gz .bz2 .xz .zst .lz4"

// writeJoined says that the command writes files whose names are others with a suffix.
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

// writeNamed says that the command writes files whose names it makes of others.
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

// rsyncCommand is rsync. A word with a colon in front of any slash is on another
// machine.
func rsyncCommand(c *invoked) {
	o := c.options(c.args, "* e= rsh= rsync-path=$ exclude= include= f= filter= exclude-from=< include-from=< files-from=< log-file=> backup-dir=> password-file=< "+
		"T=> temp-dir=> partial-dir=> compare-dest=< copy-dest=< link-dest=< M=! remote-option=! config=! daemon! write-batch=> only-write-batch=> read-batch=! "+
		"port= bwlimit= timeout= contimeout= chmod= chown= max-size= min-size= max-delete= out-format= log-file-format= B= block-size= address= sockopts= info= debug= "+
		"iconv= protocol= suffix= compress-level= modify-window= skip-compress= outbuf= checksum-choice= compress-choice= stop-after= stop-at= usermap= groupmap= early-input=<")
	for _, shell := range o.values("e", "rsh") {
		if !plainRemoteShell(shell) {
			c.unknown("it runs a program to connect")
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
			if !isRemote(a) && !isRemote(to) {
				c.merges(a, to, strings.HasSuffix(a.text, "/"))
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

// transfer says that files go from some places to another, each here or on another
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

// arrives says that a file comes to a place: a name, or a directory where it keeps its
// own.
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

// isRemote reports whether a word is host:path or a URL.
func isRemote(a arg) bool {
	host, _, ok := strings.Cut(a.text, ":")
	return a.known && ok && host != "" && !strings.Contains(host, "/")
}

// plainRemoteShell reports whether a command is ssh with nothing but harmless options.
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
