package permit

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// plainCommands change nothing and look at no file's contents.
func plainCommands(t table) {
	t.add("echo true false : pwd tty whoami id groups logname users who w uptime uname arch nproc hostid getconf locale "+
		"basename dirname realpath readlink which whereis seq yes factor expr numfmt tr sleep usleep tput clear reset stty cal ncal "+
		"printenv envsubst gettext ngettext sync pathchk getopt", harmless)
	t.add("df free vmstat iostat mpstat lscpu lsblk lsusb lsmod sw_vers lsb_release", harmless)
	t.add("pgrep pidof pstree top htop lsof netstat last", harmless)
	t.add("ps", processesCommand)
	t.add("ss", func(c *invoked) {
		if o := c.options(c.args, "* K! kill! D=> diag=> F=< filter=< f= A= N="); o.has("K", "kill") {
			c.zone(ZoneMachine, "closes connections of others")
		}
	})
	t.add("nvidia-smi", func(c *invoked) {
		c.known(c.args)
		for _, a := range c.args {
			if !strings.HasPrefix(a.text, "--query") && !strings.HasPrefix(a.text, "--format") && !oneOf(a.text, "-q -L topo pmon dmon") {
				c.zone(ZoneMachine, "may change the devices of the machine")
			}
		}
	})
	t.add("[ test", testCommand)
	t.add("printf", printfCommand)
	t.add("date gdate", dateCommand)
}

// textCommands read texts, and change nothing but what an option names.
func textCommands(t table) {
	// Only options whose values could be taken for paths are listed: for a reader it
	// does no harm if a number is taken for a file, and much if a file is taken for a
	// number.
	t.add("cat rev wc comm tsort sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum b3sum md5 hexyl getfacl getfattr gwc gcat", reader("* files0-from=!"))
	t.add("zcat gzcat bzcat xzcat zstdcat lz4cat lzcat zstdless zstdgrep zless zmore", reader("* files=?! files0=?! filelist=! D=< patch-from=< o=> output=> output-dir-flat=> output-dir-mirror=> rm! trace=> S= suffix= "+
		"T= threads= M= memlimit= F= format="))
	t.add("ls dir vdir gls lsattr", dirReader("*", "L dereference"))
	t.add("eza exa lsd", dirReader("*", "follow-symlinks L dereference"))
	t.add("nm size readelf objdump c++filt addr2line", objectReader("* plugin=!"))
	t.add("cloc tokei scc", dirReader("* o=> output=> out=> report-file=> write-lang-def=> sql=> ignored=> counted=> found=> categorized=> list-file=! vcs=! config=! extract-with=$ diff-alignment=> strip-comments=! strip-code=! format-multi=!", "follow-links"))
	t.add("shasum cksum", reader("* a= algorithm="))
	t.add("tac gtac", reader("* s= separator="))
	t.add("head tail ghead gtail", reader("* n= c= lines= bytes= pid="))
	t.add("nl", reader("* b= d= f= h= i= l= n= s= v= w="))
	t.add("fold gfold", reader("* w= width="))
	t.add("fmt", reader("* w= p= g= width= prefix= goal="))
	t.add("expand unexpand", reader("* t= tabs="))
	t.add("pr", reader("* h= l= o= w= W= N= D= header= length= indent= width= page-width= date-format="))
	t.add("cut gcut", reader("* d= f= c= b= delimiter= fields= characters= bytes= output-delimiter="))
	t.add("paste", reader("* d= delimiters="))
	t.add("join", reader("* t= 1= 2= j= o= e= a= v="))
	t.add("cmp", reader("* i= n= ignore-initial= bytes="))
	t.add("diff colordiff wdiff icdiff gdiff", differ("* x= X=< exclude= exclude-from=< I= ignore-matching-lines= L= label= U= C= W= F= D= "+
		"unified=? context=? color=? from-file=< to-file=< palette= tabsize= width= S= starting-file= show-function-line= ifdef= horizon-lines= pager=$"))
	t.add("sdiff", reader("* o=> output=> diff-program=$ I= W= w="))
	t.add("diff3", reader("* diff-program=$ L= label="))
	t.add("od", reader("* A= j= N= S= t= w=?"))
	t.add("hexdump hd", reader("* e= f=< n= s="))
	t.add("strings", objectReader("* n= t= e= T= s= U="))
	t.add("base64 base32 basenc gbase64", reader("* w= wrap= b= i=< o=> input=< output=>"))
	t.add("stat gstat", reader("* c= printf= format="))
	t.add("file", reader("* f=! files-from=! m=< magic-file=< F= separator= P= e= exclude= C! compile!"))
	t.add("tree", dirReader("* o=> L= P= I= H= T= filelimit= charset= timefmt= R!", "l"))
	t.add("du gdu", dirReader("* X=< exclude-from=< exclude= files0-from=!", "L dereference"))
	t.add("sort gsort", reader("* o=> output=> compress-program=$ T= temporary-directory= S= t= k= field-separator= key= buffer-size= parallel= "+
		"batch-size= files0-from=! random-source=< sort="))
	t.add("column", reader("* s= o= c= N= R= H= T= E= W= O= separator= output-separator= table-columns= output-width="))
	t.add("iconv", reader("* f= t= o=> output=> from-code= to-code= unicode-subst= byte-subst= widechar-subst="))
	t.add("more most pg", reader("*"))
	t.add("less", pagerCommand)
	t.add("bat batcat", reader("* pager=$ l= language= r= line-range= H= highlight-line= theme= style= m= map-syntax= paging= wrap= color= "+
		"terminal-width= tabs= file-name= diff-context= decorations="))
	t.add("info", reader("* o=> output=> f=< file=< d= n= init-file=! restore=! dribble=>"))
	t.add("whatis apropos", func(c *invoked) {
		c.options(c.args, "* C=! config-file=! M= L= s= m= sections= manpath= locale= systems=")
		c.usesAll()
	})
	t.add("bc", reader("*"))
	t.add("dc", deskCommand)
	t.add("look", func(c *invoked) { c.readAll(c.options(c.args, "* t=").from(1)) })
	t.add("uniq guniq", inOutCommand("* f= s= w= group=? all-repeated=? skip-fields= skip-chars= check-chars="))
	t.add("xxd", inOutCommand("* c= g= l= o= s= n= R= cols= groupsize= len= seek= name="))
	t.add("shuf gshuf", shuffleCommand)
	t.add("split gsplit", splitCommand)
	t.add("csplit", contextSplitCommand)
	t.add("tee gtee", writer("* output-error=?"))
	t.add("sponge", writer("a"))
	t.add("dos2unix unix2dos mac2unix", writer("* i=? info=? D= display-enc= c= convmode="))
}

// testCommand is test and [. With -v bash looks a variable up, and evaluates the
// index behind its name meanwhile. A word that is not known may be -v.
func testCommand(c *invoked) {
	c.usesAll()
	for i, a := range c.args {
		if !a.known && !a.single {
			c.zone(ZoneBuild, "the word "+shown(a.text)+" may become several, and -v among them runs code: put it in double quotes")
		}
		if i > 0 && !c.args[i-1].isText() && (!a.known && !c.args[i-1].pattern || strings.Contains(a.text, "[") && strings.ContainsAny(a.text, "$`")) {
			c.unknown("the word " + shown(c.args[i-1].text) + " may be -v, which evaluates the index of a variable: write the test out")
		}
		if i > 0 && word(c.args, i-1) == "-v" && (!a.known || !c.isVariable(a.text) && strings.ContainsAny(a.text, "[$`")) {
			c.unknown("the index of a variable is evaluated")
		}
	}
}

// writesCount finds the %n of a printf, which sets a variable.
var writesCount = regexp.MustCompile(`(^|[^%])(%%)*%[-+ #0-9.*]*n`)

func printfCommand(c *invoked) {
	c.usesAll()
	switch first := word(c.args, 0); {
	case first == "-v":
		c.sets(c.args[1:min(2, len(c.args))])
	case strings.HasPrefix(first, "-v"):
		c.sets([]arg{literal(first[2:])})
	case len(c.args) > 0 && !c.args[0].known:
		c.sets([]arg{{}}) // it may be -v
		return
	}
	if strings.Contains(spaced(c.args).text, "%") && writesCount.MatchString(spaced(c.args).text) {
		c.unknown("%n sets a variable")
		c.lose("an unknown variable was set")
	}
}

// fills says that the command makes arrays of variables.
func (c *invoked) fills(names []arg) {
	for _, n := range names {
		c.arrays = c.arrays.with(n.text, true)
	}
}

// sets says that the command sets variables. The index behind a name is evaluated.
func (c *invoked) sets(names []arg) {
	for _, n := range names {
		if _, index, ok := strings.Cut(n.text, "["); !n.known || n.pattern || strings.ContainsAny(n.text, "$`") || ok && !c.expression(strings.TrimSuffix(index, "]")) {
			c.unknown("cannot determine which variable is set")
		}
		name, _, _ := strings.Cut(n.text, "[")
		if h := hazardOf(name, arg{}); h.zone > ZoneSafe && n.known {
			c.unknown(h.why)
			c.lost = "what " + name + " says was changed"
		}
	}
	c.forget(names...)
}

func dateCommand(c *invoked) {
	o := c.options(c.args, "* d= date= f=< file=< r=< reference=< s= set= v= j z= I=? iso-8601=? rfc-3339=")
	if o.has("s", "set") {
		c.zone(ZoneMachine, "sets the clock")
	}
	for _, a := range o.rest {
		if !strings.HasPrefix(a.text, "+") && !o.has("j") {
			c.zone(ZoneMachine, "sets the clock")
		}
	}
}

// objectReader judges readers of GNU binutils.
func objectReader(list string) judge {
	return func(c *invoked) {
		c.optionFiles()
		c.readAll(c.options(c.args, list).rest)
	}
}

// optionFiles says that the command takes more words from a file whose name is behind an @.
// They may have it load a library.
func (c *invoked) optionFiles() {
	for _, a := range c.args {
		file, ok := strings.CutPrefix(a.text, "@")
		if a.pattern && a.text != "" && strings.IndexByte("*?[", a.text[0]) >= 0 {
			ok = slices.ContainsFunc(c.matches(filepath.FromSlash(a.text), removes), func(s spot) bool { return strings.HasPrefix(path.Base(s.path), "@") })
			file = a.text
		}
		if ok {
			c.read(arg{text: file, known: a.known, pattern: a.pattern})
			c.unknown("it takes options from the file " + shown(file))
		}
	}
}

// pagerCommand is less. Without a terminal it copies, but the commands that it is
// given to begin with may run others.
func pagerCommand(c *invoked) {
	o := c.options(c.args, "* o=> O=> log-file=> LOG-FILE=> k=! lesskey-file=! lesskey-src=! lesskey-content=! cmd=! T=< p= P= x= y= z= b= h= j= D= t= tag=")
	for _, a := range c.args {
		if strings.HasPrefix(strings.ToLower(a.text), "--less") { // in any case of letters
			c.unknown("its keys run commands")
		}
		if !slices.Contains(o.rest, a) && (strings.Contains(a.text, "$") || strings.Contains(a.text, " -") || strings.Contains(a.text, "\t-")) {
			c.unknown("in " + shown(a.text) + " a second option may follow: give each option as a word of its own")
		}
	}
	for _, a := range o.rest {
		if to, ok := strings.CutPrefix(a.text, "+"); ok {
			if to != "F" && to != "G" && to != "g" && !isNumber(to) && (!strings.HasPrefix(to, "/") || strings.ContainsAny(to, "\n\r!|")) {
				c.unknown("it is not known what " + shown(a.text) + " does")
			}
			continue
		}
		c.read(a)
	}
}

// deskCommand is dc, whose ! runs a command. Its ? runs a line that it reads.
func deskCommand(c *invoked) {
	o := c.options(c.args, "e= expression= f=! file=! h help V version")
	programs := o.values("e", "expression")
	if len(o.rest) > 0 {
		c.unknown("runs an unknown program")
	}
	if len(programs) == 0 {
		programs = []arg{c.stdin}
	}
	for _, p := range programs {
		if !p.known || strings.Contains(p.text, "!") || strings.Contains(p.text, "?") && c.piped {
			c.unknown("dc can run commands")
		}
	}
}

// inOutCommand judges commands that read their first word and write their second.
func inOutCommand(list string) judge {
	return func(c *invoked) {
		o := c.options(c.args, list)
		for i, a := range o.rest {
			if i == 0 {
				c.read(a)
			} else {
				c.emit(a)
			}
		}
	}
}

func shuffleCommand(c *invoked) {
	o := c.options(c.args, "* e echo i= n= o=> output=> input-range= head-count= random-source=<")
	if !o.has("e", "echo") {
		c.readAll(o.rest)
	}
}

func splitCommand(c *invoked) {
	o := c.options(c.args, "* b= l= n= a= C= t= filter=$ additional-suffix= number= lines= bytes= line-bytes= suffix-length= separator= "+
		"numeric-suffixes=? hex-suffixes=? p=")
	c.zone(ZoneWorkspace, "")
	for i, a := range o.rest {
		if i == 0 {
			c.read(a)
		} else {
			c.write(a)
			c.beginsNames(a)
		}
	}
	if suffix, ok := o.value("additional-suffix"); ok && (!suffix.known || oneOf(path.Ext(suffix.text), ".yaml .yml .json")) {
		c.unknown("cannot determine which files it writes")
	}
}

// beginsNames says that the command writes files whose names begin so. One of them may be
// a file that steers something: their names begin with a dot, or they are in a directory
// whose name does.
func (c *invoked) beginsNames(prefix arg) {
	for part := range strings.SplitSeq(prefix.text, "/") {
		if strings.HasPrefix(part, ".") && part != "." && part != ".." || !prefix.known {
			c.unknown("cannot determine which files it writes")
			return
		}
	}
}

func contextSplitCommand(c *invoked) {
	o := c.options(c.args, "* f=> prefix=> b= n= suffix-format= digits=")
	c.zone(ZoneWorkspace, "")
	for _, prefix := range o.values("f", "prefix") {
		c.beginsNames(prefix)
	}
	for _, format := range o.values("b", "suffix-format") {
		if !strings.Contains(format.text, "%") || strings.Contains(format.text, "/") {
			c.unknown("cannot determine which files it writes")
		}
	}
	if len(o.rest) > 0 {
		c.read(o.rest[0])
	}
}
