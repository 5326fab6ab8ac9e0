package permit

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// declare analyses export, declare, local, readonly and similar commands.
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
			d.withoutValue(name)
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

// declaration is an export, a declare or a similar command. The analysis understands
// these attributes of bash: exported, read-only, global, integer, array, and upper or
// lower case, which makes the value unknown. It does not understand namerefs and
// inherited attributes.
type declaration struct {
	*analysis

	variant string
	flags   string
}

// option handles a word that may be an option. It returns false if the word is not an
// option.
func (d *declaration) option(w arg) bool {
	if !w.known || w.pattern {
		d.doubt(w.text, "cannot determine which variable this declares")
		d.lose("an earlier command declares an unknown variable")
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
		d.doubt(d.variant+" "+w.text, "after this, setting one variable may change another")
		d.lose("after an earlier declaration, setting one variable may change another")
	}
	if w.text[0] == '-' {
		d.flags += w.text[1:]
	}
	if strings.Contains(d.flags, "f") && (d.variant == "export" || strings.Contains(d.flags, "x")) {
		d.doubt(d.variant+" "+w.text, "shells that start later inherit this function")
	}
	return true
}

// attribute records the attributes that the declaration gives to a variable.
func (d *declaration) attribute(name string) {
	if d.variant == "nameref" {
		d.doubt("nameref "+name, "after this, setting one variable may change another")
		d.lose("after an earlier declaration, setting one variable may change another")
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

// withoutValue handles a name without a value, such as local x. Afterwards the value is
// unknown, except after export and readonly, and with the options -p, -f and -F.
func (d *declaration) withoutValue(name string) {
	if d.variant != "export" && d.variant != "readonly" && !strings.ContainsAny(d.flags, "pfF") {
		d.vanishes(name)
		d.unknown(name)
	}
}

// list handles the value of a variable that may be an array. Bash expands a value in
// parentheses to a list of words, which can run commands.
func (d *declaration) list(name string, value arg) {
	if value.known && !strings.HasPrefix(value.text, "(") {
		return
	}
	if strings.ContainsAny(d.flags, "aA") || d.arrays.has(name) || d.anyAlias || isOwn(name) {
		d.doubt(d.variant+" "+name+"="+value.text, "bash expands this text into an array, which may run commands")
	}
}

// text handles a word that the parser does not see as an assignment, because the word is
// quoted or comes from an expansion. The command may still treat the word as an
// assignment.
func (d *declaration) text(w arg) {
	name, value, given := strings.Cut(w.text, "=")
	name, index, indexed := strings.Cut(strings.TrimSuffix(name, "+"), "[")
	d.attribute(name)
	switch {
	case indexed && !d.expression(strings.TrimSuffix(index, "]")), given && d.integers.has(name) && !d.expression(value):
		d.doubt(w.text, "the shell evaluates this as arithmetic, which can run commands if it is not a number")
	case given:
		d.list(name, literal(value))
		d.hazard(name, literal(value))
	default:
		d.withoutValue(name)
	}
	d.markDirty(name)
	d.ends(name)
}

// ends records the lasting effects of the declaration on a variable: it is read-only, it
// changes case, or it is exported. The analysis treats a change of case like read-only.
func (d *declaration) ends(name string) {
	if d.variant == "readonly" || strings.ContainsAny(d.flags, "rluc") && d.variant != "export" {
		d.freeze(name)
	}
	if d.variant == "export" && !strings.ContainsAny(d.flags, "nfp") || strings.Contains(d.flags, "x") {
		d.exports(name)
	}
}

// exports records that later programs inherit a variable, if its name is unfamiliar.
func (a *analysis) exports(name string) {
	if a.exported == "" && isUnfamiliar(name) {
		a.exported = name
	}
}

// assign analyses an assignment, and records a finding if setting the variable is
// dangerous.
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
	token := as.Value != nil && !as.Append && !a.anyAlias && !a.frozen.has(name) && !isOwn(name) && len(as.Value.Parts) == 1 && a.isToken(as.Value.Parts[0])
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

// assignArray analyses an assignment to an array or to an element of an array. The
// analysis does not track the values of arrays, only whether they are numbers.
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
		a.doubt(a.written(as), "the shell evaluates this as arithmetic, which can run commands if it is not a number")
	}
	a.hazard(name, arg{text: a.written(as)})
	a.arrays = a.arrays.with(name, true)
	if counts {
		a.count(name)
	} else {
		a.markDirty(name)
	}
}

func (a *analysis) set(name string, v arg) {
	known := v.known && !v.pipe && !v.pattern
	number := known && isInteger(v.text)
	if a.integers.has(name) {
		if !known || !a.expression(v.text) {
			a.doubt(name+"="+v.text, "the shell evaluates this as arithmetic, which can run commands if it is not a number")
		}
		a.count(name)
		return
	}
	switch a.markDirty(name); {
	case number:
		a.dirty = a.dirty.without(name)
	case v.known && v.pattern && !a.anyAlias:
		a.patterns, a.deep = a.patterns.with(name, v.text), a.deep.without(name)
		if v.below {
			a.deep = a.deep.with(name, true)
		}
	}
	if known && !a.anyAlias && !a.frozen.has(name) && !isOwn(name) {
		a.vars = a.vars.with(name, v.text)
	}
}

// loadsOwn reports whether the value of a variable leads only into the project. The value
// is a list of directories that programs load code from, or a program to run.
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

// steered adds a finding if a variable such as GOPROXY makes programs download from a
// metadata service.
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
