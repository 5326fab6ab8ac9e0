package permit

import "strings"

// queryCommands take structured texts apart.
func queryCommands(t table) {
	t.add("jq gojq", jqCommand)
	t.add("yq", yqCommand)
	t.add("xmllint", xmlCommand)
	t.add("pandoc", reader("* o=> output=> filter=$ F=$ L=< lua-filter=$ pdf-engine=$ f= t= from= to= template=< r= w= read= write= metadata= M= V= variable= "+
		"defaults=! d=! extract-media=> resource-path= data-dir=! css= H=< B=< A=< include-in-header=< include-before-body=< include-after-body=< c="))
	t.add("mktemp", makeTempCommand)
}

// jqCommand is jq. A filter can read the environment and modules, and nothing else.
func jqCommand(c *invoked) {
	c.known(c.args)
	filter, plain := false, false
	for i := 0; i < len(c.args); i++ {
		a := c.args[i]
		switch {
		case plain || !strings.HasPrefix(a.text, "-") || a.text == "-":
			if !filter {
				filter = true
				continue
			}
			c.read(a)
		case a.text == "--":
			plain = true
		case a.text == "--args" || a.text == "--jsonargs":
			c.jqPositional(c.args[i+1:], filter)
			return
		case a.text == "--arg" || a.text == "--argjson":
			i += 2
		case a.text == "--slurpfile" || a.text == "--rawfile" || a.text == "--argfile":
			if i += 2; i < len(c.args) {
				c.read(c.args[i])
			}
		case a.text == "--indent" || a.text == "--stream-errors":
			i++
		case a.text == "-L" || a.text == "--library-path":
			if i++; i < len(c.args) {
				c.read(c.args[i])
			}
		case a.text == "--from-file" || !strings.HasPrefix(a.text, "--") && strings.Contains(a.text, "f"):
			if i+1 < len(c.args) { // the file, before or behind other words
				c.read(c.args[i+1])
			}
			filter = true
		case strings.HasPrefix(a.text, "-L"):
			c.read(literal(a.text[2:]))
		}
	}
}

// jqPositional goes through the words behind --args: they are values, but for the
// filter and what other options name.
func (c *invoked) jqPositional(args []arg, filter bool) {
	for i, a := range args {
		if strings.HasPrefix(a.text, "-") && i+1 < len(args) && filter {
			c.mayTouch(args[i+1])
		}
	}
}

// yqCommand is yq, of either kind.
func yqCommand(c *invoked) {
	o := c.options(c.args, "* i inplace in-place w width= s=! split-exp=! split-exp-file=! from-file=! o= p= output-format= input-format= indent= I= "+
		"expression= f= front-matter= xml-attribute-prefix= lua-prefix= arg= security-enable-system-operator!")
	rest := o.rest
	if oneOf(word(rest, 0), "eval e eval-all ea") {
		rest = rest[1:]
	}
	var files []arg
	for i, a := range rest {
		if i == 0 && !o.has("expression") {
			if strings.Contains(a.text, "load") || strings.Contains(a.text, "system") {
				c.unknown("the expression reads other files, or runs a program")
			}
			if len(rest) > 1 {
				continue
			}
		}
		files = append(files, a)
	}
	if o.has("i", "inplace", "in-place") {
		c.writeAll(files)
		c.zone(ZoneWorkspace, "")
		return
	}
	c.readAll(files)
}

func xmlCommand(c *invoked) {
	o := c.options(c.args, "*- o=> output=> xpath= schema=< relaxng=< schematron=< dtdvalid=< shell! path= encode= pretty= maxmem= pattern= catalogs catalog=")
	for _, a := range o.rest {
		if strings.Contains(a.text, "://") {
			c.fetch(a)
			c.zone(ZoneNetwork, "fetches from the network")
			continue
		}
		c.read(a)
	}
}

func makeTempCommand(c *invoked) {
	o := c.options(c.args, "d directory u dry-run q quiet V version help p=> tmpdir=?> suffix= t")
	c.zone(ZoneWorkspace, "")
	c.writeAll(o.rest)
}
