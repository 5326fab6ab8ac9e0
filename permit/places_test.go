package permit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/sqlite"
)

// swap replaces a file of the project with a link.
func (w *world) swap(t testing.TB, at, to string) {
	t.Helper()
	path := filepath.Join(w.project, filepath.FromSlash(at))
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	w.link(t, at, to)
}

// change is something that happens in the project between the approval of a call and its
// run.
type change struct {
	name, tool string
	input      map[string]any
	happens    func(t testing.TB, w *world)
	want       string // "same", "asked" or "denied"
}

func changes() []change {
	write := func(path string) map[string]any { return map[string]any{"path": path, "content": "x"} }
	run := func(command string) map[string]any { return map[string]any{"command": command} }
	return []change{
		{"a link leads to another directory of the project", "write", write("to/f"), func(t testing.TB, w *world) { w.swap(t, "to", "src") }, "asked"},
		{"a directory becomes a link, as git switch does it", "write", write("docs/f"), func(t testing.TB, w *world) { w.swap(t, "docs", "src") }, "asked"},
		{"a file becomes a link", "write", write("docs/page"), func(t testing.TB, w *world) { w.swap(t, "docs/page", "../src/a.go") }, "asked"},
		{"a link leads out of the project", "write", write("to/f"), func(t testing.TB, w *world) { w.swap(t, "to", w.outside) }, "denied"},
		{"a link leads to what is protected", "write", write("to/pre-commit"), func(t testing.TB, w *world) { w.swap(t, "to", ".git/hooks") }, "denied"},
		{"the path of a command", "shell", run("cp src/a.go to/f"), func(t testing.TB, w *world) { w.swap(t, "to", "src") }, "asked"},
		{"the redirection of a command", "shell", run("echo x > docs/f"), func(t testing.TB, w *world) { w.swap(t, "docs", "src") }, "asked"},
		{"a command that leads out", "shell", run("echo x > docs/f"), func(t testing.TB, w *world) { w.swap(t, "docs", w.outside) }, "asked"},
		{"a missing name becomes a link", "write", write("later/f"), func(t testing.TB, w *world) { w.link(t, "later", "src") }, "asked"},

		{"nothing happens", "write", write("to/f"), func(testing.TB, *world) {}, "same"},
		{"the file has another content", "write", write("docs/page"), func(t testing.TB, w *world) { w.write(t, "docs/page", "other") }, "same"},
		{"the file comes into being", "write", write("docs/new"), func(t testing.TB, w *world) { w.write(t, "docs/new", "x") }, "same"},
		{"the file is replaced by another file", "write", write("docs/page"), func(t testing.TB, w *world) {
			if err := os.Remove(filepath.Join(w.project, "docs", "page")); err != nil {
				t.Fatal(err)
			}
			w.write(t, "docs/page", "x")
		}, "same"},
		{"another link changes", "write", write("docs/f"), func(t testing.TB, w *world) { w.swap(t, "to", "src") }, "same"},
		{"a link is made anew and leads where it led", "write", write("to/f"), func(t testing.TB, w *world) { w.swap(t, "to", "docs") }, "same"},
		{"a link is replaced by a longer way to the same place", "write", write("to/f"), func(t testing.TB, w *world) { w.swap(t, "to", "src/../docs") }, "same"},
		{"a link beside the path of a command", "shell", run("cp src/a.go docs/f"), func(t testing.TB, w *world) { w.swap(t, "to", "src") }, "same"},
		{"the directory that a command goes to comes into being", "shell", run("cd later && echo x > f"), func(t testing.TB, w *world) { w.write(t, "later/g", "x") }, "same"},
		{"a command without paths", "shell", run("git commit -m x"), func(t testing.TB, w *world) { w.swap(t, "to", "src") }, "same"},
	}
}

// mover is an agent in strict mode, which asks about every change. Its project has a
// link. The mover records the questions and the calls that ran.
type mover struct {
	*world
	floor *permit.Floor
	notes []string
}

func newMover(t testing.TB) *mover {
	t.Helper()
	w := newWorld(t)
	w.write(t, "docs/page", "text")
	w.link(t, "to", "docs")
	return &mover{world: w, floor: w.floor(t, permit.Options{Mode: permit.Strict, Sandboxed: true})}
}

func (s *mover) notef(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

func (s *mover) agent(t testing.TB, c *change, store belay.Store, steps []scripted.Step, opts belay.Options) *belay.Agent {
	t.Helper()
	opts.Store, opts.Authorizer = store, s.floor
	tool := func(name string) belay.Tool {
		return belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
				s.notef("ran %s", call.Tool)
				return belay.Result{Text: "done"}, nil
			}, &belay.ToolTraits{Serial: true})
	}
	swapper := belay.NewRawTool(belay.ToolDeclaration{Name: "list", Description: "list", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *belay.Invocation) (belay.Result, error) {
			c.happens(t, s.world)
			return belay.Result{Text: "done"}, nil
		}, &belay.ToolTraits{Serial: true})
	opts.Tools = []belay.Tool{tool("write"), tool("shell"), swapper}
	agent, err := belay.New(scripted.New(steps, nil), &opts)
	if err != nil {
		t.Fatal(err)
	}
	return agent
}

type approver func(q belay.Question) belay.Decision

func (f approver) Approve(_ context.Context, q belay.Question) (belay.Decision, error) {
	return f(q), nil
}

// expectNotes checks the recorded questions and calls.
func (s *mover) expectNotes(t *testing.T, c *change, result string) {
	t.Helper()
	want := map[string][]string{
		"same":   {"asked", "ran " + c.tool},
		"asked":  {"asked", "asked again", "ran " + c.tool},
		"denied": {"asked"},
	}[c.want]
	if diff := cmp.Diff(want, s.notes); diff != "" {
		t.Errorf("%s\n%s", diff, result)
	}
}

// asks records a question.
func (s *mover) asks(q *belay.Question) {
	if strings.Contains(q.Reason, "leads to another file than when the call was approved") {
		s.notef("asked again")
	} else {
		s.notef("asked")
	}
}

// If a path leads to another file when the approved call runs, the call needs approval
// again. If the floor denies access to the new file, it denies the call. In this test the
// process does not restart: the path changes while the approver decides.
//
// SPEC P-16
func TestPathsThatMoveAreAskedAboutAgain(t *testing.T) {
	t.Parallel()
	for _, c := range changes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newMover(t)
			steps := []scripted.Step{{Calls: []scripted.Call{{Tool: c.tool, Input: string(input(t, c.input))}}}, {Text: "done"}}
			agent := s.agent(t, &c, memstore.New(nil), steps, belay.Options{OnAsk: belay.AskWait, Approver: approver(func(q belay.Question) belay.Decision {
				s.asks(&q)
				if len(s.notes) == 1 {
					c.happens(t, s.world)
				}
				return belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: true, By: "ann"}
			})})
			turn, err := agent.Session("s").Turn(t.Context(), "go")
			if err != nil {
				t.Fatal(err)
			}
			s.expectNotes(t, &c, string(turn.Reason))
		})
	}
}

// Like TestPathsThatMoveAreAskedAboutAgain, but the process restarts: another agent with
// the same database decides the question and resumes the turn.
//
// SPEC P-16
func TestPathsThatMoveAreAskedAboutAgainAfterARestart(t *testing.T) {
	t.Parallel()
	for _, c := range changes() {
		for _, resumed := range []belay.AskMode{belay.AskPark, belay.AskWait} {
			t.Run(c.name+", and then "+string(resumed), func(t *testing.T) {
				t.Parallel()
				c.restarts(t, resumed)
			})
		}
	}
}

// newFile makes a file with an empty store.
var newFile = filetest.Copies("belay.db", func(path string) error {
	s, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	return s.Close()
})

// restarts lets one process ask about a call and the next process run it. resumed is the
// AskMode of the next process.
func (c change) restarts(t *testing.T, resumed belay.AskMode) {
	t.Helper()
	s := newMover(t)
	path := newFile(t)
	steps := []scripted.Step{{Calls: []scripted.Call{{Tool: c.tool, Input: string(input(t, c.input))}}}}
	decide := func(q *belay.Question) belay.Decision {
		s.asks(q)
		return belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: true, By: "ann"}
	}
	for begun := false; ; begun = true {
		store, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		opts := belay.Options{OnAsk: belay.AskPark}
		if begun && resumed == belay.AskWait {
			opts = belay.Options{OnAsk: belay.AskWait, Approver: approver(func(q belay.Question) belay.Decision { return decide(&q) })}
		}
		session := s.agent(t, &c, store, steps, opts).Session("s")
		var turn *belay.Turn
		if begun {
			turn, err = belay.Await(session.Resume(t.Context()))
		} else {
			turn, err = session.Turn(t.Context(), "go")
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range turn.Waits {
			if _, err := store.Decide(t.Context(), decide(&q)); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if len(turn.Waits) == 0 {
			break
		}
		if !begun {
			c.happens(t, s.world)
		}
		steps = []scripted.Step{{Text: "done"}}
	}
	s.expectNotes(t, &c, "")
}

// A response has several calls. One call may change where the paths of a later, approved
// call lead. Then the approved call does not run, and the model can make the call again.
//
// SPEC P-16
func TestPathsThatMoveWhileOtherCallsRun(t *testing.T) {
	t.Parallel()
	for _, c := range changes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newMover(t)
			call := scripted.Call{Tool: c.tool, Input: string(input(t, c.input))}
			steps := []scripted.Step{{Calls: []scripted.Call{{Tool: "list", Input: `{"path":"src"}`}, call}}, {Text: "done"}}
			agent := s.agent(t, &c, memstore.New(nil), steps, belay.Options{OnAsk: belay.AskWait, Approver: approver(func(q belay.Question) belay.Decision {
				s.asks(&q)
				return belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: true, By: "ann"}
			})})
			if _, err := agent.Session("s").Turn(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
			want := []string{"asked"}
			if c.want == "same" {
				want = append(want, "ran "+c.tool)
			}
			if diff := cmp.Diff(want, s.notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}
