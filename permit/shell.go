package permit

import (
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// longestScript is the length of the longest command that is analysed, in bytes. A
	// longer command is unknown.
	longestScript = 64 << 10
	// deepest is how deeply shells, functions and wrappers may be nested.
	deepest = 12
	// mostFindings is how many findings a command may have.
	mostFindings = 2_000
	// mostSteps is how many statements are analysed. A statement in a loop or a function
	// counts each time.
	mostSteps = 5_000
	// mostBrackets is how many brackets a command may open. The parser recurses for each
	// bracket.
	mostBrackets = 2_000
	// mostDirectories is how many possible working directories are tracked.
	mostDirectories = 8
)

// analysis collects what a shell does when it runs a script. Other comments call this
// script the line, even if it has several lines. The analysis follows the line as the
// shell would run it, and tracks variables and the working directory as far as possible.
// In doubt it assumes the worse case.
type analysis struct {
	floor *Floor
	found []Finding
	state
	depth   int
	steps   int
	line    uint     // line number in the current script
	calls   []string // active functions, outermost first
	forks   bool     // the current statement runs in the background or in a pipe
	owner   int      // index of the current command's finding, plus 1
	exits   []*state // the states at break, continue and return of the active loops and functions, outermost first
	names   names    // the names in the pipe that the current statement reads
	looks   int      // how many files were examined for patterns and links
	located []located
	// ownRepository is a directory where git finds the project's own repository.
	ownRepository string
	// links has the links below a directory that lead out of the project. The key is the
	// directory.
	links map[string][]spot
	// tracked is set if the current command is git and its paths come from git's index.
	tracked bool
	// confined is set if the line runs in a sandbox.
	confined bool
	src      string
	// fed is set if the shell itself, and so everything that it runs, reads from a pipe
	// or a redirection.
	fed bool
	// posix is set if sh runs the line: dash on some machines, bash on others.
	posix bool
}

// analyse returns what a shell does with a command that starts in the project.
func (f *Floor) analyse(command string) []Finding { return f.analyseIn(command, false) }

// analyseIn is like analyse. confined says whether the command runs in a sandbox.
func (f *Floor) analyseIn(command string, confined bool) []Finding {
	a := &analysis{floor: f, confined: confined, posix: f.plainShell, state: state{dirs: []string{f.project.path}}}
	a.parse(command)
	a.reachesOwn()
	a.keepApart()
	if len(a.found) > mostFindings {
		a.found = append(a.found[:mostFindings:mostFindings], Finding{Kind: KindUnknown, Subject: "the rest", Zone: ZoneMachine, Why: "the command has too many parts to check"})
	}
	return a.found
}

// reachesOwn lowers the zone of requests to this machine if the line starts a server of
// the project in the background. In the sandbox, the line has a network of its own. So it
// can connect only to servers that it has started.
func (a *analysis) reachesOwn() {
	if !a.confined || !slices.ContainsFunc(a.found, func(f Finding) bool { return f.beside && f.code && f.Zone == ZoneBuild }) {
		return
	}
	own := map[int]bool{} // commands that connect only to this machine
	for i := range a.found {
		if f := &a.found[i]; f.Kind == KindURL {
			if f.Protection != netLoopback {
				return
			}
			own[f.owner-1] = true
		}
	}
	for i := range a.found {
		if f := &a.found[i]; f.Kind == KindCommand && f.Zone >= ZoneNetwork && !own[i] {
			return // something else needs the network
		}
	}
	for i := range a.found {
		if f := &a.found[i]; f.Kind == KindURL || own[i] && f.Zone <= ZoneExternal {
			f.Zone, f.Protection, f.Why = ZoneBuild, "", "it connects only to a server that this line has started"
		}
	}
}

// keepApart raises the zone of code of the project if another part of the line uses the
// network. That part may have downloaded the code. The code could also use the network,
// because the sandbox gives network access to the whole line.
func (a *analysis) keepApart() {
	fetches := false
	var wraps []int // commands that run the command which uses the network, such as python -m pip
	for i := range a.found {
		f := &a.found[i]
		if f.Kind != KindCommand && f.Kind != KindURL || f.Zone != ZoneNetwork && f.Zone != ZoneExternal {
			continue
		}
		fetches = true
		for owner := f.owner; owner > 0; owner = a.found[owner-1].owner {
			wraps = append(wraps, owner-1)
		}
	}
	for i := range a.found {
		if f := &a.found[i]; fetches && f.code && f.Zone == ZoneBuild && !slices.Contains(wraps, i) {
			f.Zone, f.Why = ZoneMachine, "another part of the line uses the network, so this code could use it, too: run them as two commands"
		}
	}
}

// add records a finding, unless there are too many.
func (a *analysis) add(f Finding) {
	if len(a.found) <= mostFindings {
		f.Line, f.owner, f.beside = int(a.line), a.owner, a.forks
		if a.found == nil {
			a.found = make([]Finding, 0, 4) // enough for most commands
		}
		a.found = append(a.found, f)
	}
}

// doubt records something that the analysis cannot determine.
func (a *analysis) doubt(subject, why string) {
	a.add(Finding{Kind: KindUnknown, Subject: subject, Zone: ZoneMachine, Why: why})
}

// text analyses a string that a shell runs as a script.
func (a *analysis) text(script arg) {
	if !script.isText() {
		a.doubt(script.text, "a shell runs a script that Belay cannot determine")
		a.lose("an earlier part of the line runs an unknown script")
		return
	}
	a.deeper(script.text, func() { a.parse(script.text) })
}

// deeper calls a function one nesting level deeper. If the nesting is too deep, it
// records that instead.
func (a *analysis) deeper(what string, do func()) {
	if a.depth >= deepest || len(a.found) > mostFindings {
		a.doubt(what, "it is nested too deeply to check")
		return
	}
	src, line := a.src, a.line
	a.depth++
	do()
	a.depth--
	a.src, a.line = src, line
}

// bashParsers keeps parsers for reuse. A new parser takes 2.5 KB, a fifth of the memory
// that judging a command allocates.
var bashParsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// parseBash parses a script. A parser that panics is not used again.
func parseBash(script string) (*syntax.File, error) {
	parser := bashParsers.Get().(*syntax.Parser)
	file, err := parser.Parse(strings.NewReader(script), "")
	bashParsers.Put(parser)
	return file, err //nolint:wrapcheck // the caller says what it was about
}

func (a *analysis) parse(script string) {
	if why := unreadable(script); why != "" {
		a.doubt(script, why)
		a.lose("an earlier part of the line runs an unknown script")
		return
	}
	file, err := parseBash(script)
	if err != nil {
		a.doubt(script, "Belay cannot parse this: "+strings.TrimPrefix(err.Error(), ":"))
		a.lose("an earlier part of the line cannot be parsed")
		return
	}
	a.src = script
	if why := disagreement(script, file); why != "" {
		a.doubt(script, why)
		defer a.lose("an earlier part of the line runs an unknown script")
	}
	if a.posix && bashOnly(file) {
		plain, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(script), "")
		if err != nil {
			a.doubt(script, "Belay does not know how sh reads this: use bash")
		} else {
			a.apart(func() { a.statements(plain.Stmts) })
		}
	}
	a.statements(file.Stmts)
}

// unreadable returns why the analysis does not read a script, or "" if it does.
func unreadable(script string) string {
	if len(script) > longestScript {
		return "it is too long to check"
	}
	brackets := 0
	for i := range len(script) {
		switch script[i] {
		case '(', '{', '[', '`':
			brackets++
		case 0:
			return "it contains a zero byte"
		}
	}
	if brackets > mostBrackets {
		return "it is nested too deeply to check"
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

// statement analyses a statement. stdin is its standard input, if a pipe or an enclosing
// statement determines it.
func (a *analysis) statement(s *syntax.Stmt, stdin arg, piped bool) {
	a.line = s.Pos().Line()
	if a.steps++; a.steps > mostSteps {
		if a.steps == mostSteps+1 {
			a.doubt("the rest", "the command has too many parts to check")
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

// apart analyses something in a subshell. Afterwards it restores the state, except for
// changes to files.
func (a *analysis) apart(do func()) {
	before, exits := a.state, a.exits
	a.exits, a.trapped = nil, false // a subshell does not inherit traps
	do()
	moved := a.moved != before.moved
	before.moved, before.movedIn = a.moved, a.movedIn
	if a.state, a.exits = before, exits; moved {
		a.disturbTrap()
	}
}

func (a *analysis) plain(s *syntax.Stmt, stdin arg, piped bool) {
	names := a.names
	for _, r := range s.Redirs {
		if in, ok := a.redirect(r); ok {
			stdin, piped, a.names = in, true, noNames
			if call, ok := s.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 && call.Args[0].Lit() == "exec" {
				a.fed = true
			}
		}
		if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
			name := strings.Trim(r.N.Value, "{}")
			a.hazard(name, arg{text: "a descriptor"})
			a.count(name)
		}
	}
	defer func() { a.names = names }()
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
		a.coprocess(c)
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		a.inner(s.Cmd)
	default:
		a.doubt(a.written(s), "Belay does not understand this construct")
	}
}

// coprocess analyses a coprocess. It runs in the background, and sets variables to its
// file descriptors and its process number.
func (a *analysis) coprocess(c *syntax.CoprocClause) {
	name := literal("COPROC")
	if c.Name != nil {
		name = a.value(c.Name)
	}
	forks := a.forks
	a.forks = true
	a.apart(func() { a.statement(c.Stmt, arg{}, true) })
	a.forks = forks
	if !name.known {
		a.lose("an earlier command sets an unknown variable")
	}
	a.hazard(name.text, arg{text: "descriptors"})
	a.hazard(name.text+"_PID", arg{text: "a number"})
	a.forget(name, arg{text: name.text + "_PID", known: name.known})
}

// group analyses statements that share their standard input.
func (a *analysis) group(list []*syntax.Stmt, stdin arg, piped bool) {
	if len(list) != 1 {
		stdin = arg{} // nobody knows which statement reads which part
	}
	for _, s := range list {
		a.statement(s, stdin, piped)
	}
}
