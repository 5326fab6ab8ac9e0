package permit

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// longestScript is how many bytes of a command are looked at. A longer one is not
	// understood.
	longestScript = 64 << 10
	// deepest is how many shells, functions and wrappers may be inside one another.
	deepest = 12
	// mostFindings is how much a command may do.
	mostFindings = 2_000
	// mostSteps is how many statements are gone through: loops and functions go through
	// theirs again and again.
	mostSteps = 5_000
	// mostBrackets is how many brackets a command may open: the parser goes down one
	// level for each.
	mostBrackets = 2_000
	// mostDirectories is how many directories a line may be in, as far as it can be
	// told.
	mostDirectories = 8
)

// analysis gathers what a shell does with a text. It goes through the text as the
// shell would, and knows of variables and of the working directory what the text
// says about them. Where it is in doubt it takes the worse.
type analysis struct {
	floor *Floor
	found []Finding
	state
	depth int
	steps int
	line  uint     // of the text at hand
	calls []string // functions under way, outermost first
	forks bool     // the statement at hand runs beside others
	owner int      // the finding of the command at hand, from 1
	src   string
}

// analyse says what a shell does with a command, started in the project.
func (f *Floor) analyse(command string) []Finding {
	a := &analysis{floor: f, state: state{dirs: []string{f.project.path}}}
	a.parse(command)
	if len(a.found) > mostFindings {
		a.found = append(a.found[:mostFindings:mostFindings], Finding{Kind: KindUnknown, Subject: "the rest", Zone: ZoneMachine, Why: "the command does too much to be told"})
	}
	return a.found
}

// add notes a finding.
func (a *analysis) add(f Finding) {
	if len(a.found) <= mostFindings {
		f.Line, f.owner = int(a.line), a.owner
		a.found = append(a.found, f)
	}
}

// doubt notes something that cannot be resolved.
func (a *analysis) doubt(subject, why string) {
	a.add(Finding{Kind: KindUnknown, Subject: subject, Zone: ZoneMachine, Why: why})
}

// text goes through what a shell is given to run.
func (a *analysis) text(script arg) {
	if !script.known {
		a.doubt(script.text, "a shell runs what cannot be told from here")
		a.lose("a text was run that cannot be told")
		return
	}
	a.deeper(script.text, func() { a.parse(script.text) })
}

// deeper does something one level down, or says that it is too deep.
func (a *analysis) deeper(what string, do func()) {
	if a.depth >= deepest || len(a.found) > mostFindings {
		a.doubt(what, "it is nested too deeply to be told")
		return
	}
	src, line := a.src, a.line
	a.depth++
	do()
	a.depth--
	a.src, a.line = src, line
}

func (a *analysis) parse(script string) {
	if why := unreadable(script); why != "" {
		a.doubt(script, why)
		a.lose("a text was run that cannot be told")
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		a.doubt(script, "it cannot be parsed: "+strings.TrimPrefix(err.Error(), ":"))
		a.lose("a text was run that cannot be parsed")
		return
	}
	a.src = script
	if evaluatesText(file) {
		a.doubt(script, "arithmetic, or an index, may run what stands in quotes")
	}
	a.statements(file.Stmts)
}

// evaluatesText reports whether a text has something that takes values for expressions,
// which may run commands, and a command in quotes that it might find there. What
// honest lines have is one or the other.
func evaluatesText(file *syntax.File) bool {
	takes, hidden, dollar, paren := false, false, false, false
	text := func(value string) {
		hidden = hidden || strings.Contains(value, "$(") || strings.Contains(value, "`")
		dollar = dollar || strings.HasSuffix(value, "$")
		paren = paren || strings.HasPrefix(value, "(")
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.LetClause, *syntax.DeclClause, *syntax.TestClause, *syntax.ArithmCmd, *syntax.ArithmExp, *syntax.ArrayExpr, *syntax.CStyleLoop:
			takes = true
		case *syntax.ParamExp:
			takes = takes || n.Excl || n.Slice != nil || n.Index != nil
		case *syntax.Assign:
			takes = takes || n.Index != nil
		case *syntax.SglQuoted:
			text(n.Value)
		case *syntax.Lit:
			if strings.Contains(n.Value, `\`) {
				text(strings.ReplaceAll(n.Value, `\`, ""))
			}
		}
		return true
	})
	return takes && (hidden || dollar && paren)
}

// unreadable says why a text is not looked at, or nothing.
func unreadable(script string) string {
	if len(script) > longestScript {
		return "it is too long to be told"
	}
	brackets := 0
	for i := range len(script) {
		switch script[i] {
		case '(', '{', '[', '`':
			brackets++
		case 0:
			return "it has a zero byte in it"
		}
	}
	if brackets > mostBrackets {
		return "it is nested too deeply to be told"
	}
	return ""
}

func (a *analysis) statements(list []*syntax.Stmt) {
	for _, s := range list {
		if len(a.found) > mostFindings {
			return
		}
		a.statement(s, arg{}, false)
	}
}

// statement goes through a statement. stdin is what it reads, if a pipe or an
// enclosing statement says so.
func (a *analysis) statement(s *syntax.Stmt, stdin arg, piped bool) {
	a.line = s.Pos().Line()
	if a.steps++; a.steps > mostSteps {
		if a.steps == mostSteps+1 {
			a.doubt("the rest", "the command does too much to be told")
		}
		return
	}
	if s.Background || s.Coprocess || s.Disown {
		forks := a.forks
		a.forks = true
		a.apart(func() { a.plain(s, stdin, piped) })
		a.forks = forks
		return
	}
	a.plain(s, stdin, piped)
}

// apart goes through something in a shell of its own: what it learns is forgotten.
func (a *analysis) apart(do func()) {
	before := a.state.copied()
	do()
	a.state = before
}

func (a *analysis) plain(s *syntax.Stmt, stdin arg, piped bool) {
	for _, r := range s.Redirs {
		if in, ok := a.redirect(r); ok {
			stdin, piped = in, true
		}
	}
	switch c := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		a.simple(c, stdin, piped)
	case *syntax.BinaryCmd:
		a.binary(c, stdin, piped)
	case *syntax.Block:
		a.group(c.Stmts, stdin, piped)
	case *syntax.Subshell:
		a.apart(func() { a.group(c.Stmts, stdin, piped) })
	case *syntax.IfClause:
		a.branch(c, stdin, piped)
	case *syntax.WhileClause:
		a.loop(append(slices.Clone(c.Cond), c.Do...), nil, stdin, piped)
	case *syntax.ForClause:
		a.each(c, stdin, piped)
	case *syntax.CaseClause:
		a.cases(c, stdin, piped)
	case *syntax.FuncDecl:
		a.define(c)
	case *syntax.DeclClause:
		a.declare(c)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			a.statement(c.Stmt, stdin, piped)
		}
	case *syntax.CoprocClause:
		a.apart(func() { a.statement(c.Stmt, arg{}, true) })
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		a.inner(s.Cmd)
	default:
		a.doubt(a.written(s), "it is not understood")
	}
}

// group goes through statements that share what they read.
func (a *analysis) group(list []*syntax.Stmt, stdin arg, piped bool) {
	if len(list) != 1 {
		stdin = arg{} // who reads what cannot be told
	}
	for _, s := range list {
		a.statement(s, stdin, piped)
	}
}
