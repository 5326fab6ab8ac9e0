package permit

import (
	"path"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

func queryCommands(t table) {
	t.add("jq gojq", jqCommand)
	t.add("yq", yqCommand)
	t.add("mktemp", makeTempCommand)
}

// jqPlain are options of jq that have no value and use no files.
const jqPlain = "--seq --stream --stream-errors --slurp --raw-input --null-input --compact-output --raw-output --raw-output0 --join-output --ascii-output --sort-keys --color-output " +
	"--monochrome-output --tab --unbuffered --exit-status --binary --version --build-configuration --help --debug-dump-disasm --debug-trace --debug-trace=all --strip-comments --yaml-input --yaml-output"

// jqCall is a jq command that is being judged.
type jqCall struct {
	*invoked
	words     []arg // arguments that are not options
	libraries []arg // directories of modules
	fromFile  bool  // the filter is in a file
	values    bool  // words after the filter are values, not file names
}

// jqCommand judges jq. Besides its input, a filter can read only the environment and
// modules. jq accepts options everywhere, even after --args.
func jqCommand(c *invoked) {
	c.known(c.args)
	j := &jqCall{invoked: c}
	for rest := c.args; len(rest) > 0; {
		if rest[0].known && rest[0].text == "--" {
			j.words = append(j.words, rest[1:]...)
			break
		}
		rest = rest[1+j.option(rest[0], rest[1:]):]
	}
	for i, w := range j.words {
		switch {
		case i == 0 && j.fromFile:
			c.read(w)
			c.jqFile(w)
		case i == 0:
			c.jqFilter(w, j.libraries)
		case !j.values:
			c.read(w)
		}
	}
}

// option parses an argument of jq. It returns how many of the following arguments belong
// to this argument.
func (j *jqCall) option(a arg, behind []arg) int {
	text := a.text
	value := func(n int) arg {
		if n < len(behind) {
			return behind[n]
		}
		return arg{text: "(nothing)"}
	}
	switch {
	case !strings.HasPrefix(text, "-") || text == "-":
		j.words = append(j.words, a)
		return 0
	case !strings.HasPrefix(text, "--"):
		return j.letters(text[1:], value(0), len(behind))
	case text == "--args" || text == "--jsonargs":
		j.values = true
		return 0
	case text == "--arg" || text == "--argjson":
		return min(2, len(behind))
	case text == "--slurpfile" || text == "--rawfile" || text == "--argfile":
		j.read(value(1))
		return min(2, len(behind))
	case text == "--indent":
		return min(1, len(behind))
	case text == "--library-path":
		j.library(value(0))
		return min(1, len(behind))
	case strings.HasPrefix(text, "--library-path="):
		j.library(literal(text[len("--library-path="):]))
		return 0
	case text == "--from-file":
		return j.filterIn(value(0))
	case !oneOf(text, jqPlain):
		j.unknown("Belay does not know what " + shown(text) + " does")
	}
	return 0
}

// letters parses several short options in one word.
func (j *jqCall) letters(letters string, next arg, behind int) int {
	for i := range len(letters) {
		switch letters[i] {
		case 'L':
			if joined := letters[i+1:]; joined != "" {
				j.library(literal(joined))
				return 0
			}
			j.library(next)
			return min(1, behind)
		case 'f':
			j.filterIn(next)
		default:
			if strings.IndexByte("nrjasScCMeRbhV", letters[i]) < 0 {
				j.unknown("Belay does not know what -" + letters[i:i+1] + " does")
			}
		}
	}
	return 0
}

func (j *jqCall) library(dir arg) {
	j.read(dir)
	j.libraries = append(j.libraries, dir)
}

// filterIn records that the filter is in a file. The file is the next word, or in older
// versions the first word that is not an option.
func (j *jqCall) filterIn(file arg) int {
	j.read(file)
	j.jqFile(file)
	j.fromFile = true
	return 0
}

// jqImport matches a complete import statement. jqImports matches every word with which a
// filter reads more than its input.
var (
	jqImport  = lazyregexp.New(`\b(?:import|include)\s*"([^"\\]*)"(?:\s*as\s+\$?\w+)?\s*(?:\{\s*"?search"?\s*:\s*"([^"\\]*)"\s*\})?\s*;`)
	jqImports = lazyregexp.New(`\b(?:import|include|modulemeta|input_module|get_search_list)\b`)
)

// jqFilter judges the modules that a filter reads. They are code of the project, or come
// from a directory of the user or the machine.
func (c *invoked) jqFilter(filter arg, libraries []arg) {
	if !filter.known {
		return // c.known has already recorded this
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
			c.unknown("the filter reads a module from outside the project: pass the directory of the module with -L")
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

// jqQuoted reports whether import and include occur only in strings or as names of
// fields.
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

// jqFile records that the filter is in a file. That file may import modules.
func (c *invoked) jqFile(file arg) {
	text, ok := c.contents(file)
	if !ok || jqImports.MatchString(text) {
		c.zone(ZoneBuild, "the filter in the file may read others")
	}
}

// yqCommand judges yq. There are two programs with this name.
func yqCommand(c *invoked) {
	o := c.options(c.args, "* i inplace in-place w width= s=! split-exp=! split-exp-file=! from-file=! o= p= output-format= input-format= indent= I= "+
		"expression= f=< front-matter= xml-attribute-prefix= lua-prefix= arg= security-enable-system-operator!")
	for _, a := range o.values("expression") {
		if !a.known || strings.Contains(a.text, "load") || strings.Contains(a.text, "system") {
			c.unknown("the expression may read other files or run a program")
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
				c.unknown("the expression may read other files or run a program")
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
