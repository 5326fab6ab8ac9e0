package permit

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// declare goes through export, declare, local, readonly and the like.
func (a *analysis) declare(c *syntax.DeclClause) {
	d := declaration{analysis: a, variant: c.Variant.Value}
	for _, as := range c.Args {
		if as.Name != nil || as.Value == nil {
			continue
		}
		if w := a.value(as.Value); !d.option(w) {
			d.text(w)
		}
	}
	for _, as := range c.Args {
		if as.Name == nil {
			continue
		}
		name := as.Name.Value
		d.attribute(name)
		switch {
		case as.Naked:
			d.naked(name)
			if as.Index != nil {
				a.inner(as)
			}
		case as.Array != nil:
			a.assign(as)
		default:
			d.list(name, a.quietly(as.Value))
			a.assign(as)
		}
		d.ends(name)
	}
}

// declaration is an export, a declare or the like. Bash knows many attributes of
// variables. Understood are: exported, read-only, global, a number, an array and, as far
// as their values are not followed any more, letters in one case. A variable that is a
// name for another, or that takes over attributes, is not.
type declaration struct {
	*analysis

	variant string
	flags   string
}

// option takes a word for options, if it is one.
func (d *declaration) option(w arg) bool {
	if !w.known || w.pattern {
		d.doubt(w.text, "cannot determine what is declared")
		d.lose("cannot determine what is declared")
		return true
	}
	if len(w.text) < 2 || w.text[0] != '-' && w.text[0] != '+' {
		return false
	}
	understood := "afgiprxAFluct"
	if d.variant == "export" {
		understood = "afnpA"
	}
	if w.text != "--" && strings.Trim(w.text[1:], understood) != "" || d.variant == "nameref" {
		d.doubt(d.variant+" "+w.text, "from here on a variable may refer to another one")
		d.lose("a variable may refer to another one")
	}
	if w.text[0] == '-' {
		d.flags += w.text[1:]
	}
	if strings.Contains(d.flags, "f") && (d.variant == "export" || strings.Contains(d.flags, "x")) {
		d.doubt(d.variant+" "+w.text, "later shells inherit this function")
	}
	return true
}

// attribute notes what the declaration says about a variable.
func (d *declaration) attribute(name string) {
	if d.variant == "nameref" {
		d.doubt("nameref "+name, "from here on a variable may refer to another one")
		d.lose("a variable may refer to another one")
	}
	if strings.Contains(d.flags, "i") || d.variant == "integer" {
		d.integers = d.integers.with(name, true)
	}
	if strings.Contains(d.flags, "A") {
		d.keyed = d.keyed.with(name, true)
	}
	if strings.ContainsAny(d.flags, "aA") {
		d.arrays = d.arrays.with(name, true)
	}
}

// naked goes through a name without a value. A new variable has none.
func (d *declaration) naked(name string) {
	if d.variant != "export" && d.variant != "readonly" && !strings.ContainsAny(d.flags, "pfF") {
		d.vanishes(name)
		d.unknown(name)
	}
}

// list goes through the value of a variable that may be an array. A text in parentheses
// is a list of words then, and bash expands them: that can run commands.
func (d *declaration) list(name string, value arg) {
	if value.known && !strings.HasPrefix(value.text, "(") {
		return
	}
	if strings.ContainsAny(d.flags, "aA") || d.arrays.has(name) || d.blind || isOwn(name) {
		d.doubt(d.variant+" "+name+"="+value.text, "bash expands the text to make an array, which may run commands")
	}
}

// text goes through a word that is no assignment by the way it is written: one in
// quotes, or one that an expansion has made.
func (d *declaration) text(w arg) {
	name, value, given := strings.Cut(w.text, "=")
	name, index, indexed := strings.Cut(strings.TrimSuffix(name, "+"), "[")
	d.attribute(name)
	switch {
	case indexed && !d.expression(strings.TrimSuffix(index, "]")), given && d.integers.has(name) && !d.expression(value):
		d.doubt(w.text, "the shell evaluates it as arithmetic, and it may not be a number: that can run commands")
	case given:
		d.list(name, literal(value))
		d.hazard(name, literal(value))
	default:
		d.naked(name)
	}
	d.soil(name)
	d.ends(name)
}

// ends goes through what holds of a variable behind the declaration.
func (d *declaration) ends(name string) {
	if d.variant == "readonly" || strings.ContainsAny(d.flags, "rluc") && d.variant != "export" {
		d.freeze(name)
	}
	if d.variant == "export" && !strings.ContainsAny(d.flags, "nfp") || strings.Contains(d.flags, "x") {
		d.exports(name)
	}
}

// exports notes that programs which are started from here on are given a variable.
func (a *analysis) exports(name string) {
	if a.exported == "" && isUnfamiliar(name) {
		a.exported = name
	}
}

// assign goes through an assignment, and says what is wrong with setting the
// variable.
func (a *analysis) assign(as *syntax.Assign) {
	name := as.Name.Value
	if as.Array != nil || as.Index != nil {
		a.assignArray(as)
		return
	}
	v := literal("")
	if as.Value != nil {
		v = a.value(as.Value)
	}
	counts := a.numeric(as.Value)
	if as.Append {
		old, ok := a.vars.get(name)
		v = arg{text: old + v.text, known: ok && v.known, pattern: v.pattern}
		counts = counts && a.holdsNumber(name)
	}
	a.hazard(name, v)
	token := as.Value != nil && !as.Append && !a.blind && !a.frozen.has(name) && !isOwn(name) && len(as.Value.Parts) == 1 && a.isToken(as.Value.Parts[0])
	defer func() {
		if token {
			a.tokens = a.tokens.with(name, true)
		}
	}()
	if counts && !v.known && !a.frozen.has(name) {
		a.count(name)
		return
	}
	a.set(name, v)
}

// assignArray goes through an assignment to an array, or to a part of one. What arrays
// hold is not followed, but for its being numbers.
func (a *analysis) assignArray(as *syntax.Assign) {
	name := as.Name.Value
	a.inner(as)
	counts := a.holdsNumber(name) && a.numeric(as.Value)
	if as.Index != nil {
		a.index(name, as.Index)
	}
	if as.Array != nil {
		counts = as.Value == nil && (!as.Append || counts)
		for _, e := range as.Array.Elems {
			if e.Index != nil {
				a.index(name, e.Index)
			}
			counts = counts && a.numeric(e.Value)
		}
	}
	if a.integers.has(name) && !counts {
		a.doubt(a.written(as), "the shell evaluates it as arithmetic, and it may not be a number: that can run commands")
	}
	a.hazard(name, arg{text: a.written(as)})
	a.arrays = a.arrays.with(name, true)
	if counts {
		a.count(name)
	} else {
		a.soil(name)
	}
}

func (a *analysis) set(name string, v arg) {
	known := v.known && !v.pipe && !v.pattern
	number := known && isInteger(v.text)
	if a.integers.has(name) {
		if !known || !a.expression(v.text) {
			a.doubt(name+"="+v.text, "the shell evaluates it as arithmetic, and it may not be a number: that can run commands")
		}
		a.count(name)
		return
	}
	switch a.soil(name); {
	case number:
		a.dirty = a.dirty.without(name)
	case v.known && v.pattern && !a.blind:
		a.patterns, a.deep = a.patterns.with(name, v.text), a.deep.without(name)
		if v.below {
			a.deep = a.deep.with(name, true)
		}
	}
	if known && !a.blind && !a.frozen.has(name) && !isOwn(name) {
		a.vars = a.vars.with(name, v.text)
	}
}

// loadsOwn reports whether a variable has programs load code from directories of the
// project, or run a program there, and from nowhere else.
func (a *analysis) loadsOwn(name string, value arg) bool {
	if !value.known || value.pattern || len(a.dirs) == 0 {
		return false
	}
	text := value.text
	switch {
	case compilerNames.has(name):
		text, _, _ = strings.Cut(text, " ")
		if !strings.Contains(text, "/") || strings.ContainsAny(value.text, "`$;|&<>()'\"\\") {
			return false
		}
	case !oneOf(name, "PYTHONPATH NODE_PATH RUBYLIB PERL5LIB"):
		return false
	}
	for dir := range strings.SplitSeq(text, ":") {
		for _, s := range a.spots(literal(dir), reads) {
			if !s.inside || s.err != nil {
				return false
			}
		}
	}
	return true
}

// steered notes where a variable sends programs that fetch: GOPROXY and its like.
func (a *analysis) steered(name string, value arg) {
	if !value.known || !strings.Contains(value.text, "://") || name == "" {
		return
	}
	for part := range strings.FieldsFuncSeq(value.text, func(r rune) bool { return strings.ContainsRune(" \t\n,|;'\"", r) }) {
		if _, to, ok := strings.Cut(part, "="); ok && strings.Contains(to, "://") {
			part = to
		}
		if strings.Contains(part, "://") {
			if f := urlFinding(part, ZoneSafe); f.Protection == netMetadata {
				a.add(f)
			}
		}
	}
}
