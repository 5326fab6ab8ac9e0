package permit

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// declare goes through export, declare, local, readonly and the like.
func (a *analysis) declare(c *syntax.DeclClause) {
	freezes := c.Variant.Value == "readonly"
	for _, as := range c.Args {
		if as.Name == nil && as.Value != nil && strings.HasPrefix(as.Value.Lit(), "-") && strings.Contains(as.Value.Lit(), "r") {
			freezes = true
		}
	}
	for _, as := range c.Args {
		switch {
		case as.Name == nil && as.Value != nil:
			w := a.value(as.Value)
			switch {
			case !w.known:
				a.doubt(w.text, "it cannot be told what is declared")
				a.vars, a.patterns = nil, nil
			case strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "n"):
				a.vars, a.patterns = nil, nil // a name for another variable
			default:
				if name, value, ok := strings.Cut(w.text, "="); ok {
					a.hazard(strings.TrimSuffix(name, "+"), literal(value))
					a.forget(literal(strings.TrimSuffix(name, "+")))
				}
			}
		case as.Naked:
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

// assign goes through an assignment, and says what is wrong with setting the
// variable.
func (a *analysis) assign(as *syntax.Assign) {
	if as.Array != nil || as.Index != nil {
		a.inner(as)
		delete(a.vars, as.Name.Value)
		a.hazard(as.Name.Value, arg{text: a.written(as)})
		return
	}
	v := literal("")
	if as.Value != nil {
		v = a.value(as.Value)
	}
	if as.Append {
		old, ok := a.vars[as.Name.Value]
		v = arg{text: old + v.text, known: ok && v.known}
	}
	a.hazard(as.Name.Value, v)
	a.set(as.Name.Value, v)
}

func (a *analysis) set(name string, v arg) {
	delete(a.patterns, name)
	if a.frozen[name] {
		return
	}
	if !v.known || v.pipe || v.pattern {
		delete(a.vars, name)
		if v.pattern && v.known {
			if a.patterns == nil {
				a.patterns = map[string]string{}
			}
			a.patterns[name] = v.text
		}
		return
	}
	if a.vars == nil {
		a.vars = map[string]string{}
	}
	a.vars[name] = v.text
}

// hazard notes that a variable is set which changes what programs do.
func (a *analysis) hazard(name string, value arg) {
	why, bad := hazardousVariable(name, value)
	if !bad {
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
