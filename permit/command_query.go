package permit

import (
	"path"
	"regexp"
	"strings"
)

// queryCommands take structured texts apart.
func queryCommands(t table) {
	t.add("jq gojq", jqCommand)
	t.add("yq", yqCommand)
	t.add("mktemp", makeTempCommand)
}

// jqCommand is jq. A filter can read the environment and modules, and nothing else.
func jqCommand(c *invoked) {
	c.known(c.args)
	filter, plain := false, false
	var libraries, filters []arg
	defer func() {
		for _, f := range filters {
			c.jqFilter(f, libraries)
		}
	}()
	for i := 0; i < len(c.args); i++ {
		a := c.args[i]
		switch {
		case plain || !strings.HasPrefix(a.text, "-") || a.text == "-":
			if !filter {
				filter = true
				filters = append(filters, a)
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
				libraries = append(libraries, c.args[i])
			}
		case strings.HasPrefix(a.text, "-L"):
			libraries = append(libraries, literal(a.text[2:]))
			c.read(literal(a.text[2:]))
		case a.text == "--from-file" || !strings.HasPrefix(a.text, "--") && strings.Contains(a.text, "f"):
			if i+1 < len(c.args) { // the file, before or behind other words
				c.read(c.args[i+1])
				c.jqFile(c.args[i+1])
			}
			filter = true
		}
	}
	if !filter {
		filters = append(filters, c.args...)
	}
}

// jqImports finds what a filter of jq reads besides its input.
var (
	jqImport  = regexp.MustCompile(`\b(?:import|include)\s*"([^"\\]*)"(?:\s*as\s+\$?\w+)?\s*(?:\{\s*"?search"?\s*:\s*"([^"\\]*)"\s*\})?\s*;`)
	jqImports = regexp.MustCompile(`\b(?:import|include|modulemeta|input_module|get_search_list)\b`)
)

// jqFilter says which modules a filter reads. They are code of the project, or else from
// where the user or the machine keeps them.
func (c *invoked) jqFilter(filter arg, libraries []arg) {
	if !filter.known {
		return // which was said
	}
	words, imports := jqImports.FindAllString(filter.text, -1), jqImport.FindAllStringSubmatch(filter.text, mostOfMany)
	if len(words) == 0 {
		return
	}
	if len(words) != len(imports) && !c.jqQuoted(filter.text) {
		c.unknown("cannot determine which modules the filter reads")
		return
	}
	for _, m := range imports {
		dirs := libraries
		if m[2] != "" {
			dirs = []arg{literal(m[2])}
		}
		if len(dirs) == 0 {
			c.unknown("the filter reads a module from outside the project: name its directory with -L")
		}
		c.zone(ZoneBuild, "runs a module of the project")
		for _, dir := range dirs {
			if path.IsAbs(m[1]) {
				dir = literal("/")
			}
			for _, ending := range []string{".jq", ".json"} {
				c.read(under(dir, literal(m[1]+ending)))
			}
		}
	}
}

// jqQuoted reports whether a filter has the words of an import in its texts only, or as
// names of fields.
func (c *invoked) jqQuoted(filter string) bool {
	if strings.Contains(filter, `\`) {
		return false
	}
	var bare strings.Builder
	for i, part := range strings.Split(filter, `"`) {
		if i%2 == 0 {
			bare.WriteString(part)
		}
	}
	return !jqImports.MatchString(strings.NewReplacer(".import", "", ".include", "").Replace(bare.String()))
}

// jqFile says that the filter is in a file, which may read modules.
func (c *invoked) jqFile(file arg) {
	text, ok := c.contents(file)
	if !ok || jqImports.MatchString(text) {
		c.zone(ZoneBuild, "the filter in the file may read others")
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
		"expression= f=< front-matter= xml-attribute-prefix= lua-prefix= arg= security-enable-system-operator!")
	for _, a := range o.values("expression") {
		if !a.known || strings.Contains(a.text, "load") || strings.Contains(a.text, "system") {
			c.unknown("the expression reads other files, or runs a program")
		}
	}
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
			c.jqFilter(a, nil)
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

func makeTempCommand(c *invoked) {
	o := c.options(c.args, "d directory u dry-run q quiet V version help p=> tmpdir=?> suffix= t")
	c.zone(ZoneWorkspace, "")
	c.writeAll(o.rest)
}
