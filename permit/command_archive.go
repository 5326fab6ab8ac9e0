package permit

import (
	"path"
	"slices"
	"strings"
)

// archiveCommands are programs that pack and unpack files. For tar, see tarCommand.
func archiveCommands(t table) {
	t.add("gzip gunzip bzip2 bunzip2 xz unxz lzma unlzma zstd unzstd lz4 unlz4 compress uncompress pigz unpigz pbzip2 brotli lzip", compressCommand)
	t.add("zip", zipCommand)
	t.add("unzip", unzipCommand)
	t.add("7z 7za 7zr 7zz", sevenCommand)
	t.add("cpio pax", cpioCommand)
	t.add("ar ranlib", arCommand)
}

// compressCommand judges programs that replace a file with its compressed form, or write
// to the standard output.
func compressCommand(c *invoked) {
	o := c.options(c.args, "* S= suffix= o=> output=> T= threads= M= memlimit= F= format= D=< patch-from=< filelist=! files=?! files0=?! output-dir-flat=> output-dir-mirror=> "+
		"p= processes= b= block-size= m= q= quality= w= lgwin=")
	// -l means "list" only for some programs. If there are several operations, the last
	// one applies.
	shows := o.has("t", "test", "list") || o.has("l") && oneOf(c.name, "gzip gunzip xz unxz lzma unlzma zstd unzstd pigz unpigz lzip")
	if o.has("c", "stdout", "to-stdout") || shows && !o.may("d", "decompress", "uncompress", "z", "compress") {
		c.readAll(o.rest)
		return
	}
	c.zone(ZoneWorkspace, "")
	elsewhere := o.has("o", "output", "output-dir-flat", "output-dir-mirror")
	for _, a := range o.rest {
		c.read(a)
		if !elsewhere {
			c.write(a)
		}
	}
	for _, suffix := range o.values("S", "suffix") {
		c.writeJoined(o.rest, suffix)
	}
	if !o.may("d", "decompress", "uncompress") && !strings.HasPrefix(c.name, "un") && !oneOf(c.name, "gunzip bunzip2") {
		return
	}
	if o.may("N", "name", "r", "recursive") {
		c.unknown("cannot determine which files it writes")
	}
	suffix, given := o.value("S", "suffix")
	if !elsewhere {
		c.writeNamed(o.rest, func(name string) string {
			if given {
				return strings.TrimSuffix(name, suffix.text)
			}
			return strings.TrimSuffix(name, path.Ext(name))
		})
	}
}

func zipCommand(c *invoked) {
	for _, a := range c.args {
		if strings.HasPrefix(a.text, "-TT") || strings.HasPrefix(a.text, "--unzip-command") {
			c.unknown(a.text + " runs a program")
		}
	}
	o := c.options(c.args, "* b=> temp-path=> O=> output-file=> out=> n= suffixes= P= password= t= from-date= tt= before-date= s= split-size= T test unzip-command=$ TT! @!")
	if len(o.rest) == 0 {
		return
	}
	c.zone(ZoneWorkspace, "")
	if !o.has("O", "output-file", "out") {
		c.emit(o.rest[0])
	}
	names := false // whether the command has patterns of file names, after -x or -i
	for _, a := range c.args {
		names = names || oneOf(a.text, "-x -i --exclude --include")
	}
	for _, a := range o.from(1) {
		if names && a.pattern && !strings.Contains(a.text, "..") && !path.IsAbs(a.text) {
			continue
		}
		a.follows = a.follows || !o.has("y", "symlinks") // without -y, zip follows links
		c.readTree(a)
		if o.may("m", "move") {
			c.protect(destroyFiles, "removes the files after packing them")
			c.remove(a)
		}
	}
}

func unzipCommand(c *invoked) {
	o := c.options(c.args, "* d= P= x I= O=")
	if len(o.rest) == 0 {
		return
	}
	c.read(o.rest[0])
	if o.has("l", "t", "p", "Z", "v", "z", "c") {
		return
	}
	dir, ok := o.value("d")
	if !ok {
		dir = literal(".")
	}
	if o.has(":") {
		c.unknown("it may write outside the directory that it unpacks to")
	}
	c.unpacks(dir)
}

// sevenCommand judges 7z. Its words are a verb, an archive and files.
func sevenCommand(c *invoked) {
	c.known(c.args)
	var words []arg
	dir := literal(".")
	for _, a := range c.args {
		if strings.HasPrefix(a.text, "@") || strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "@") {
			c.unknown("it reads file names from a list file: name the files in the command")
		}
		switch {
		case !strings.HasPrefix(a.text, "-"):
			words = append(words, a)
		case strings.HasPrefix(a.text, "-o"):
			dir = literal(a.text[2:])
		case strings.HasPrefix(a.text, "-w"), strings.HasPrefix(a.text, "-sfx"), strings.HasPrefix(a.text, "-i@"), strings.HasPrefix(a.text, "-sdel"), strings.HasPrefix(a.text, "-spf"):
			c.unknown("Belay does not know what " + shown(a.text) + " does")
		}
	}
	if len(words) < 2 {
		return
	}
	for _, a := range words[2:] {
		if strings.HasPrefix(a.text, "@") {
			c.unknown("cannot determine which files it reads")
		}
	}
	switch word(words, 0) {
	case "l", "t", "h", "i", "b":
		c.readAll(words[1:])
	case "e", "x":
		c.read(words[1])
		c.unpacks(dir)
	case "a", "u", "d", "rn":
		c.zone(ZoneWorkspace, "")
		c.write(words[1])
		c.readFollowing(words[2:], !slices.ContainsFunc(c.args, func(a arg) bool { return a.text == "-snl" }))
	default:
		c.unknown("Belay does not know what this command does")
	}
}

func cpioCommand(c *invoked) {
	o := c.options(c.args, "* I=< F= file= O=> E=< pattern-file=< D= directory= R= owner= H= format= C= M= message= rsh-command=$ to-stdout")
	if o.may("o", "create", "p", "pass-through") && !c.readsNames(o.has("0", "null")) {
		c.unknown("cannot determine which files it reads")
	} else if o.may("L", "dereference") {
		c.readFollowing([]arg{c.searched()}, true)
	}
	switch {
	case o.has("t", "list", "o", "create", "w") && !o.has("F", "file", "D", "directory", "r") && c.name == "cpio":
	case o.has("t", "list") && c.name == "cpio":
		for _, f := range o.values("F", "file") {
			c.read(f)
		}
	default:
		c.unknown("cannot determine which files it writes")
	}
}

// arCommand judges ar. Its words are letters, an archive and members.
func arCommand(c *invoked) {
	c.known(c.args)
	c.optionFiles()
	if c.name == "ranlib" {
		c.zone(ZoneWorkspace, "")
		c.writeAll(c.options(c.args, "*").rest)
		return
	}
	letters := strings.TrimPrefix(word(c.args, 0), "-")
	var files []arg
	for _, a := range c.args[min(1, len(c.args)):] {
		switch {
		case strings.HasPrefix(a.text, "--plugin"):
			c.unknown("it runs a program")
		case !strings.HasPrefix(a.text, "-"):
			files = append(files, a)
		}
	}
	switch {
	case strings.HasPrefix(letters, "-"), strings.ContainsAny(letters, "ML"):
		c.unknown("Belay does not know what this command does")
	case strings.ContainsAny(letters, "tp"):
		c.readAll(files)
	default:
		c.zone(ZoneWorkspace, "")
		c.writeAll(files)
	}
}
