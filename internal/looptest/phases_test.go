package looptest_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// phaseRow is one row of the table of phases.
type phaseRow struct {
	Name string
	Kind hook.Kind
	Fail string
}

// promisedPhases is the complete table of phases that we promise. Gates fail closed, except
// turn.stop and approval.request. All other phases fail open.
var promisedPhases = []phaseRow{
	{"session.start", hook.Collect, "open"},
	{"user.prompt.submit", hook.Gate, "closed"},
	{"turn.pre_policy", hook.Collect, "open"},
	{"turn.pre_prompt_context", hook.Collect, "open"},
	{"turn.post_preflight_prompt_context", hook.Collect, "open"},
	{"turn.pre_tool_materialization", hook.Collect, "open"},
	{"turn.pre_prompt_compile", hook.Collect, "open"},
	{"turn.post_prompt_compile", hook.Observe, "open"},
	{"model.pre", hook.Collect, "open"},
	{"model.post", hook.Observe, "open"},
	{"tool.pre", hook.Gate, "closed"},
	{"approval.request", hook.Gate, "open"},
	{"approval.decided", hook.Observe, "open"},
	{"tool.post", hook.Collect, "open"},
	{"tool.denied", hook.Observe, "open"},
	{"subagent.start", hook.Gate, "closed"},
	{"subagent.stop", hook.Observe, "open"},
	{"turn.stop", hook.Gate, "open"},
	{"turn.pre_compaction", hook.Collect, "open"},
	{"turn.post_compaction", hook.Observe, "open"},
	{"turn.post_turn", hook.Observe, "open"},
	{"error", hook.Observe, "open"},
	{"session.end", hook.Observe, "open"},
}

// SPEC H-01, H-10, C-12
func TestPhasesAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	var got []phaseRow
	for _, p := range belay.Phases() {
		got = append(got, phaseRow{p.Name(), p.Info().Kind, p.Info().Failure.String()})
	}
	if diff := cmp.Diff(promisedPhases, got); diff != "" {
		t.Errorf("the phases are not those that were promised (-promised +code):\n%s", diff)
	}
}

// belay.Phases must list every declared phase. Otherwise no runtime would know the phase.
//
// SPEC H-01
func TestPhasesAreComplete(t *testing.T) {
	t.Parallel()
	pkg, files := typedRoot(t)
	var declared []string
	for _, name := range pkg.Scope().Names() {
		if object, ok := pkg.Scope().Lookup(name).(*types.Var); ok && isPhase(object.Type()) {
			declared = append(declared, name)
			if !object.Exported() {
				t.Errorf("%s is a phase and not exported: nobody could subscribe to it", name)
			}
		}
	}
	listed := namesIn(files, "allPhases")
	slices.Sort(listed)
	if diff := cmp.Diff(declared, listed); diff != "" {
		t.Errorf("allPhases does not list every phase exactly once (-declared +listed):\n%s", diff)
	}
	var tested, returned []string
	for _, p := range everyPhase() {
		tested = append(tested, p.Name())
	}
	for _, p := range belay.Phases() {
		returned = append(returned, p.Name())
	}
	if diff := cmp.Diff(returned, tested); diff != "" {
		t.Errorf("everyPhase is not belay.Phases, so that the tests leave something out (-Phases +everyPhase):\n%s", diff)
	}
}

// Each gate has its own verdict type, so that the compiler rejects a verdict at the wrong
// gate.
//
// SPEC H-01
func TestEachGateHasItsOwnVerdict(t *testing.T) {
	t.Parallel()
	owner := map[reflect.Type]string{}
	for _, p := range belay.Phases() {
		if p.Info().Kind != hook.Gate {
			continue
		}
		_, out := p.Types()
		if other, taken := owner[out]; taken {
			t.Errorf("%s and %s share the verdict %s", other, p.Name(), out)
		}
		owner[out] = p.Name()
	}
	for _, p := range belay.Phases() {
		if _, out := p.Types(); p.Info().Kind != hook.Gate && owner[out] != "" {
			t.Errorf("%s is no gate and takes the verdict of %s", p.Name(), owner[out])
		}
	}
}

// SPEC H-01
func TestPhasesMakeARuntime(t *testing.T) {
	t.Parallel()
	rt, err := hook.NewRuntime(belay.Phases(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(rt.Phases()), len(promisedPhases); got != want {
		t.Errorf("the runtime knows %d phases, want %d", got, want)
	}
	snapshot := rt.Snapshot()
	for _, p := range everyPhase() {
		in, err := p.decode(testScope, []byte("{}"))
		if err != nil {
			t.Errorf("%s: %v", p.Name(), err)
			continue
		}
		outcome, err := p.dispatch(t.Context(), snapshot, in)
		if err != nil || !reflect.ValueOf(outcome.out).IsZero() {
			t.Errorf("%s with nobody subscribed answers %+v, %v, want nothing", p.Name(), outcome.out, err)
		}
	}
}

// If a handler returns the answer of another phase, the program does not compile.
//
// SPEC H-01
func TestWrongAnswersDoNotCompile(t *testing.T) {
	t.Parallel()
	const program = `package misuse

import (
	"context"

	"github.com/belay-run/belay"
)

func sections(context.Context, belay.ToolCall) (_ belay.PromptSections, _ error) { return }
func judge(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Pass, nil }

var _ = []any{sections, judge}
`
	for _, test := range []struct {
		rule, body, want string
	}{
		{"a tool.pre handler that answers with a tool verdict compiles", `var _ = belay.ToolPre.On("a", judge, nil)`, ""},
		{"a tool.pre handler that answers with prompt sections does not", `var _ = belay.ToolPre.On("a", sections, nil)`, "cannot use sections"},
		{"a tool.post handler does not take a tool call", `var _ = belay.ToolPost.On("a", judge, nil)`, "cannot use judge"},
		{"a tool verdict cannot be given at turn.stop", `var _ = belay.TurnStop.Fallback(belay.Deny(""))`, "cannot use belay.Deny"},
		{"an input cannot be written to", `func _(c belay.ToolCall) { c.Tool() = "x" }`, "cannot assign"},
		{"an input cannot be made from outside", `var _ = belay.ToolCall{input: nil}`, "cannot refer to unexported field input"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			_, _, err := typecheck(map[string]string{"misuse.go": program + test.body + "\n"}, "misuse")
			switch {
			case test.want == "" && err != nil:
				t.Errorf("it does not compile: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("the compiler says %v, want %q", err, test.want)
			}
		})
	}
}

// isPhase reports whether a type is a hook.Phase.
func isPhase(t types.Type) bool {
	named, ok := t.(*types.Named)
	return ok && named.Obj().Name() == "Phase" && named.Obj().Pkg().Path() == "github.com/belay-run/belay/hook"
}

// namesIn returns the names in the list that is the value of a package variable.
func namesIn(files []*ast.File, variable string) []string {
	var names []string
	for _, file := range files {
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && v.Names[0].Name == variable {
					for _, element := range v.Values[0].(*ast.CompositeLit).Elts {
						names = append(names, element.(*ast.Ident).Name)
					}
				}
			}
		}
	}
	return names
}

// typedRoot type-checks the root package from its source.
func typedRoot(t *testing.T) (*types.Package, []*ast.File) {
	t.Helper()
	names, err := filepath.Glob("../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources[name] = string(text)
	}
	pkg, files, err := typecheck(sources, "github.com/belay-run/belay")
	if err != nil {
		t.Fatal(err)
	}
	return pkg, files
}

// typecheck checks the source files of a package, given by file name. The package may
// import the root package and everything that the root package imports.
func typecheck(sources map[string]string, path string) (*types.Package, []*ast.File, error) {
	exports, err := exportData()
	if err != nil {
		return nil, nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for name, src := range sources {
		file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, file)
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	pkg, err := config.Check(path, fset, files, nil)
	return pkg, files, err
}

// exportData returns the files with the compiler's export data of the root package and its
// imports.
var exportData = sync.OnceValues(func() (map[string]string, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "github.com/belay-run/belay")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // what other steps have compiled
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("go list: %w: %s", err, exit.Stderr)
	}
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	return exports, nil
})
