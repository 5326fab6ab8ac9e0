package permit

import (
	"path"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// words resolves the words of a command. It also judges the commands inside them.
func (a *analysis) words(list []*syntax.Word) []arg {
	args := make([]arg, 0, len(list))
	for _, w := range list {
		if text, pattern, ok := simpleField(w); ok {
			args = append(args, arg{text: text, known: true, pattern: pattern})
		} else {
			args = append(args, a.fields(w)...)
		}
	}
	for i := range args {
		if args[i].pattern || args[i].below {
			args[i].taken = new(bool)
		}
		if args[i].pattern {
			a.listed(args[i])
		}
	}
	return args
}

// simpleField returns the value of a literal word. Most words are literal.
func simpleField(w *syntax.Word) (text string, pattern, ok bool) {
	text, pattern, ok = plainWord(w)
	return text, pattern, ok && !strings.Contains(text, "{") && (!strings.Contains(text, "~") || !strings.HasPrefix(text, "~") && !laterTilde(w, false))
}

// fields resolves a word that may become several words.
func (a *analysis) fields(w *syntax.Word) []arg {
	if text, pattern, ok := simpleField(w); ok {
		return []arg{{text: text, known: true, pattern: pattern}}
	}
	if braces := braceWords(w); braces != nil {
		if len(braces) > mostBraces {
			return []arg{{text: a.written(w)}}
		}
		var all []arg
		for _, b := range braces {
			all = append(all, a.resolve(b, true)...)
		}
		return all
	}
	return a.resolve(w, true)
}

// value resolves a word that stays one word, as in an assignment.
func (a *analysis) value(w *syntax.Word) arg {
	if w == nil {
		return literal("")
	}
	if text, pattern, ok := plainWord(w); ok && !strings.HasPrefix(text, "~") && !strings.Contains(text, ":~") {
		return arg{text: text, known: true, pattern: pattern}
	}
	return a.resolve(w, false)[0]
}

// resolve resolves a word. If split is set, the word may become several words or none.
func (a *analysis) resolve(w *syntax.Word, split bool) []arg { //nolint:gocognit // one case for each kind of word, in order
	unknown := func() []arg {
		u := a.uncertain(w)
		u.single = !split || isOneWord(w) || a.numeric(w)
		return []arg{u}
	}
	ran, pipe := a.inner(w)
	if pipe {
		return []arg{{text: a.written(w), pipe: true}}
	}
	if ran {
		if text, ok := a.knownOutput(w); ok {
			return []arg{literal(text)}
		}
		if split {
			if names, ok := a.overNames([]*syntax.Word{w}); ok {
				return []arg{names}
			}
		}
		return unknown()
	}
	if laterTilde(w, !split) {
		return unknown()
	}
	if text, pattern, ok := plainWord(w); ok {
		if rest, home := strings.CutPrefix(text, "~"); home && startsTilde(w) {
			switch dir, more, _ := strings.Cut(rest, "/"); {
			case dir == "" && a.floor.home.path != "":
				text = a.floor.home.path
				if strings.HasPrefix(rest, "/") {
					text += "/" + more
				}
			case dir == "+" && len(a.dirs) == 1:
				text = a.dirs[0] + strings.TrimPrefix(rest, "+")
			default:
				return unknown()
			}
		}
		return []arg{{text: text, known: true, pattern: pattern}}
	}
	if pattern, ok := a.patternOf(w); ok {
		return []arg{pattern}
	}
	if !a.certain(w) {
		return unknown()
	}
	if text, ok := a.quotedText(w); ok {
		return []arg{literal(text)}
	}
	env := &known{state: &a.state, floor: a.floor}
	config := &expand.Config{Env: env}
	if !split {
		text, err := expand.Literal(config, w)
		if err != nil || env.missed {
			return unknown()
		}
		return []arg{literal(text)}
	}
	fields, err := expand.Fields(config, w)
	if err != nil || env.missed {
		return unknown()
	}
	args := make([]arg, len(fields))
	for i, text := range fields {
		args[i] = arg{text: text, known: true, pattern: strings.ContainsAny(text, "*?[")}
	}
	return args
}

// quotedText returns the value of a word that has only plain text and known variables in
// double quotes, such as "dir/$f". Package expand would take three times as long.
func (a *analysis) quotedText(w *syntax.Word) (string, bool) {
	env := known{state: &a.state, floor: a.floor}
	var b strings.Builder
	for _, part := range w.Parts {
		if text, ok := onePart(part); ok {
			if _, bare := part.(*syntax.Lit); bare && (strings.HasPrefix(text, "~") || strings.Contains(text, "{")) {
				return "", false
			}
			b.WriteString(text)
			continue
		}
		quoted, ok := part.(*syntax.DblQuoted)
		if !ok || quoted.Dollar {
			return "", false
		}
		for _, inner := range quoted.Parts {
			switch p := inner.(type) {
			case *syntax.Lit:
				if strings.Contains(p.Value, `\`) {
					return "", false
				}
				b.WriteString(p.Value)
			case *syntax.ParamExp:
				if p.Param == nil || !plainParam(p) || !isName(p.Param.Value) {
					return "", false
				}
				b.WriteString(env.Get(p.Param.Value).Str)
			default:
				return "", false
			}
		}
	}
	return b.String(), !env.missed
}

// patternOf returns the pattern of a word that is only the variable of a loop over files,
// or a parameter with a file name.
func (a *analysis) patternOf(w *syntax.Word) (arg, bool) {
	if a.patterns == nil && a.fileParam.pattern == "" || len(w.Parts) != 1 {
		return arg{}, false
	}
	part := w.Parts[0]
	if quoted, ok := part.(*syntax.DblQuoted); ok && len(quoted.Parts) == 1 {
		part = quoted.Parts[0]
	}
	p, ok := part.(*syntax.ParamExp)
	if !ok || p.Param == nil || !plainParam(p) {
		return arg{}, false
	}
	if p.Param.Value == a.fileParam.number {
		if !a.fileParam.follows { // no file is a link
			return arg{text: path.Join(path.Dir(a.fileParam.pattern), "{}"), known: true, below: true}, true
		}
		return arg{text: a.fileParam.pattern, known: true, pattern: true, below: true, follows: true}, true
	}
	text, ok := a.patterns.get(p.Param.Value)
	deep := a.deep.has(p.Param.Value)
	return arg{text: text, known: true, pattern: true, below: deep, follows: deep}, ok
}

func plainParam(p *syntax.ParamExp) bool {
	return !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil && p.Names == 0
}

// certain reports whether a word depends only on the values of its variables. It returns
// false for arithmetic with names, because the shell evaluates their values as
// expressions, which may run commands. Some operators expand values again or use them as
// names.
func (a *analysis) certain(w syntax.Node) bool {
	sure := true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch p := n.(type) {
		case *syntax.ParamExp:
			if p.Excl || p.Names != 0 || p.Index != nil || p.Exp != nil && p.Exp.Op == syntax.OtherParamOps {
				sure = false
			}
			if p.Slice != nil && (!plainArithmetic(p.Slice.Offset) || !plainArithmetic(p.Slice.Length)) {
				sure = false
			}
		case *syntax.ArithmExp:
			sure = sure && plainArithmetic(p.X)
		}
		sure = sure && a.computedAlike(n)
		return sure
	})
	return sure
}

// plainArithmetic reports whether an expression has only numbers and no names.
func plainArithmetic(x syntax.ArithmExpr) bool {
	if x == nil {
		return true
	}
	plain := true
	syntax.Walk(x, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			plain = plain && isNumber(w.Lit())
		}
		return plain
	})
	return plain
}

// known has the variables whose values are known. Package expand uses it as the
// environment.
type known struct {
	*state
	floor  *Floor
	missed bool // an unknown variable was read
}

var _ expand.Environ = (*known)(nil)

// Get returns a variable. If the variable is unknown, Get sets missed.
func (k *known) Get(name string) expand.Variable {
	value, ok := k.vars.get(name)
	if !ok && !k.anyAlias && !k.dirty.has(name) && !k.patterns.has(name) {
		switch name {
		case "@", "*":
			if k.params != nil {
				return expand.Variable{Set: true, Kind: expand.Indexed, List: k.params}
			}
		case "#":
			value, ok = strconv.Itoa(len(k.params)), k.params != nil
		case "HOME":
			value, ok = k.floor.home.path, k.floor.home.path != ""
		case "PWD":
			if ok = len(k.dirs) == 1; ok {
				value = k.dirs[0]
			}
		case "IFS":
			value, ok = " \t\n", true
		case "TMPDIR":
			value, ok = k.floor.temp.path, k.floor.givesTemp
		}
	}
	if n, err := strconv.Atoi(name); !k.anyAlias && err == nil && n > 0 && !ok && k.params != nil {
		if ok = true; n <= len(k.params) {
			value = k.params[n-1]
		}
	}
	if !ok {
		k.missed = true
		return expand.Variable{}
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: value}
}

// Each does nothing, because this package starts no programs.
func (k *known) Each(func(string, expand.Variable) bool) {}

// address records that a command connects to an address.
func (a *analysis) address(w arg, least Zone) {
	if !w.known {
		a.add(Finding{Kind: KindURL, Subject: w.text, Zone: ZoneMachine, Why: "cannot determine this address", opaque: true})
		return
	}
	if r := judgeURL(w.text); r.file != "" {
		a.path(literal(r.file), reads)
		return
	}
	a.add(urlFinding(w.text, least))
}

// urlFinding returns the finding of a command that connects to an address. least is the
// lowest zone of the finding.
func urlFinding(raw string, least Zone) Finding {
	r := judgeURL(raw)
	return Finding{Kind: KindURL, Subject: raw, Zone: max(r.zone, least), Why: r.why, Protection: r.protection}
}
