package permit

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// declare goes through export, declare, local, readonly and the like.
func (a *analysis) declare(c *syntax.DeclClause) {
	var given []string
	for _, as := range c.Args {
		if as.Name == nil && as.Value != nil && strings.HasPrefix(as.Value.Lit(), "-") {
			given = append(given, as.Value.Lit())
		}
	}
	flags := strings.Join(given, "")
	freezes := c.Variant.Value == "readonly" || strings.ContainsAny(flags, "rluc") && c.Variant.Value != "export"
	if c.Variant.Value == "nameref" || strings.Contains(flags, "n") && c.Variant.Value != "export" {
		a.darken()
	}
	for _, as := range c.Args {
		if as.Name != nil {
			a.attribute(as.Name.Value, flags)
		}
	}
	for _, as := range c.Args {
		switch {
		case as.Name == nil && as.Value != nil:
			a.declareText(a.value(as.Value), flags)
		case as.Naked && as.Name != nil:
			if c.Variant.Value != "export" && c.Variant.Value != "readonly" {
				a.unknown(as.Name.Value) // a local one has no value
			}
			if as.Index != nil {
				a.inner(as)
			}
		default:
			a.assign(as)
		}
	}
	for _, as := range c.Args {
		if freezes && as.Name != nil {
			a.freeze(as.Name.Value)
		}
	}
}

// declareText goes through a word of a declaration that is no assignment by the way it
// is written: an option, or an assignment in quotes.
func (a *analysis) declareText(w arg, flags string) {
	if !w.known || w.pattern {
		a.doubt(w.text, "it cannot be told what is declared")
		a.darken()
		return
	}
	name, value, given := strings.Cut(w.text, "=")
	if strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, "+") {
		if strings.ContainsAny(w.text, "nf") && !strings.HasPrefix(flags, "-") { // it was in quotes
			a.darken()
		}
		return
	}
	name, index, indexed := strings.Cut(strings.TrimSuffix(name, "+"), "[")
	a.attribute(name, flags)
	if indexed && !a.expression(strings.TrimSuffix(index, "]")) || given && a.integers.has(name) && !a.expression(value) {
		a.doubt(w.text, "it is computed, and may be no number: that can run commands")
	}
	if given {
		a.hazard(name, literal(value))
	}
	a.soil(name)
}

// attribute notes what a declaration says about a variable.
func (a *analysis) attribute(name, flags string) {
	if strings.Contains(flags, "i") {
		a.integers = a.integers.with(name, true)
	}
	if strings.Contains(flags, "A") {
		a.keyed = a.keyed.with(name, true)
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
		a.doubt(a.written(as), "it is computed, and may be no number: that can run commands")
	}
	a.hazard(name, arg{text: a.written(as)})
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
			a.doubt(name+"="+v.text, "it is computed, and may be no number: that can run commands")
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

// hazard notes that a variable is set which changes what programs do.
func (a *analysis) hazard(name string, value arg) {
	a.steered(name, value)
	why, bad := hazardousVariable(name, value)
	if !bad {
		return
	}
	if a.loadsOwn(name, value) {
		a.add(Finding{Kind: KindCommand, Subject: name + "=" + value.text, Zone: ZoneBuild, Why: "programs load code of the project", code: true})
		return
	}
	f := Finding{Kind: KindCommand, Subject: name + "=" + value.text, Zone: ZoneMachine, Why: why}
	if strings.HasPrefix(name, "BELAY_") {
		f.Protection = selfCommand
	}
	a.add(f)
	switch name {
	case "PATH", "IFS", "CDPATH":
		a.lost = "what " + name + " says was changed"
	}
}

// loadsOwn reports whether a variable has programs load code from directories of the
// project, and from nowhere else.
func (a *analysis) loadsOwn(name string, value arg) bool {
	if !oneOf(name, "PYTHONPATH NODE_PATH RUBYLIB PERL5LIB") || !value.known || value.pattern || len(a.dirs) == 0 {
		return false
	}
	for dir := range strings.SplitSeq(value.text, ":") {
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
