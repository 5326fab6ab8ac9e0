package memory_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/provider/scripted"
)

// results returns the results of a turn's calls, in order.
func results(turn *belaytest.Turn) []*belay.Result {
	var all []*belay.Result
	for _, m := range turn.Messages {
		if m.Kind != belay.KindResults {
			continue
		}
		for _, p := range m.Parts {
			all = append(all, &p.Result.Result)
		}
	}
	return all
}

// loosening is a hook that allows all access.
var loosening = belay.TurnPrePolicy.On("loosening", func(context.Context, belay.TurnBegun) (belay.TurnPolicy, error) {
	return belay.SetPolicy(memory.PolicyWrite.Set(true), memory.PolicyRead.Set(true)), nil
}, nil)

// A user's memories, and the notes of an agent about a user, are never recalled for another
// user. Another user cannot find, read or forget them. The memories of a project are
// shared.
//
// SPEC E-08
func TestUsersDoNotShare(t *testing.T) {
	t.Parallel()
	memories, sessions := newStore(t), newSessions(t)
	opts := memory.Options{User: sessionUser, Project: "website"}
	ann := newAgent(t, memories, sessions, opts, belay.Options{},
		call(memory.RememberTool, `{"text": "The salary of Ann is 90000.", "scope": "agent"}`), call(memory.RememberTool, `{"text": "The salary is paid in May.", "scope": "user"}`),
		call(memory.RememberTool, `{"text": "The site shows no salary.", "scope": "project"}`), scripted.Step{Text: "Good."}, scripted.Step{Text: "It is 90000."})
	says(t, ann, "ann-1", "Note what matters.")
	notes := all(t, memories, memory.Filter{})
	shared, hers := notes[0], notes[1:]
	if got := sent(says(t, ann, "ann-2", "What is the salary?")); !strings.Contains(got, "90000") || !strings.Contains(got, "in May") {
		t.Errorf("in another session Ann was told\n%s\nwant what she said", got)
	}
	steps := []scripted.Step{call(memory.SearchTool, `{"query": "salary Ann"}`)}
	for _, m := range hers {
		steps = append(steps, call(memory.LookupTool, `{"id": "`+m.ID+`"}`), call(memory.ForgetTool, `{"id": "`+m.ID+`"}`))
	}
	bob := newAgent(t, memories, sessions, opts, belay.Options{}, append(steps, scripted.Step{Text: "I do not know."})...)
	turn := says(t, bob, "bob-1", "What is the salary of Ann?")
	if got := sent(turn); strings.Contains(got, "90000") || strings.Contains(got, "in May") || !strings.Contains(got, shared.Text) {
		t.Errorf("Bob was told\n%s\nwant what is the project's alone", got)
	}
	for i, r := range results(turn)[1:] {
		if r.Class != belay.ClassNotFound {
			t.Errorf("call %d about a note of Ann's answers %+v, want that there is none", i+1, r)
		}
	}
	wantTexts(t, "left", texts(t, memories, memory.Active), "The salary is paid in May.", "The salary of Ann is 90000.", "The site shows no salary.")
}

// Two different pairs of agent and user never have the same scope.
//
// SPEC E-08
func TestUsersOfAgentsAreApart(t *testing.T) {
	t.Parallel()
	memories, sessions := newStore(t), newSessions(t)
	as := func(name string) func(context.Context, string) (string, error) {
		return func(context.Context, string) (string, error) { return name, nil }
	}
	first := newAgent(t, memories, sessions, memory.Options{User: as("c")}, belay.Options{Name: "a/b"},
		call(memory.RememberTool, `{"text": "The salary is 90000.", "scope": "agent"}`), scripted.Step{Text: "Good."})
	says(t, first, "one", "Note it.")
	second := newAgent(t, memories, sessions, memory.Options{User: as("b/c")}, belay.Options{Name: "a"}, scripted.Step{Text: "I do not know."})
	if got := sent(says(t, second, "two", "What is the salary?")); strings.Contains(got, "90000") {
		t.Errorf("user b/c of agent a was told\n%s\nwant nothing of user c of agent a/b", got)
	}
}

// If the policy of a turn cannot be determined, the turn reads and writes nothing, even if
// another hook allows it. The reason is reported.
//
// SPEC E-08, H-20
func TestWhatCannotBeFoundOutIsForbidden(t *testing.T) {
	t.Parallel()
	failing := errors.New("zebra: it does not work")
	classify := func(f func() (memory.Access, error)) memory.Options {
		return memory.Options{Classify: func(context.Context, belay.TurnBegun) (memory.Access, error) { return f() }}
	}
	user := func(name string, err error) memory.Options {
		return memory.Options{User: func(context.Context, string) (string, error) { return name, err }}
	}
	for _, test := range []struct {
		rule string
		opts memory.Options
		code codes.Code
		why  string
	}{
		{"a classifier that fails", classify(func() (memory.Access, error) { return memory.Access{Read: true, Write: true}, failing }), codes.Error, "Options.Classify failed"},
		{"a classifier that panics", classify(func() (memory.Access, error) { panic(failing) }), codes.Panic, ""},
		{"a session whose user is not known", user("ann", failing), codes.Error, "cannot determine the user of the session"},
		{"a session whose user has no name", user("", nil), codes.Error, "cannot determine the user of the session"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			memories, sessions := newStore(t), newSessions(t)
			add(t, memories, memory.Draft{Text: "The tea is in the kitchen."}, memory.Draft{Text: "The green tea is in the attic.", Scope: memory.Scope{Kind: memory.User, Name: "ann"}},
				memory.Draft{Text: "The black tea is in the cellar.", Scope: memory.Scope{Kind: memory.Agent, Name: "main"}})
			agent := newAgent(t, memories, sessions, test.opts, belay.Options{Hooks: []hook.Subscription{loosening}}, call(memory.RememberTool, `{"text": "Planted."}`), scripted.Step{Text: "Good."})
			turn := says(t, agent, "one", "I prefer green tea.")
			if got := sent(turn); strings.Contains(got, "is in the") {
				t.Errorf("recalled:\n%s", got)
			}
			wantTexts(t, "tools", toolsOf(turn))
			work(t, agent.Agent, sessions, 1)
			if got := texts(t, memories); len(got) != 3 {
				t.Errorf("remembered are %q, want nothing new", got)
			}
			if !slices.ContainsFunc(turn.Diagnostics, func(d hook.Diagnostic) bool {
				return d.Subscription == "memory.policy" && d.Code == test.code && strings.Contains(d.Message, test.why) && !strings.Contains(d.Message, "zebra")
			}) {
				t.Errorf("the diagnostics are %+v, want why, in words that may be stored", turn.Diagnostics)
			}
		})
	}
}

// If the user becomes unknown in the middle of a turn, nothing is recalled, a tool fails,
// and extraction is retried.
//
// SPEC E-08
func TestUserThatGetsLost(t *testing.T) {
	t.Parallel()
	memories, sessions := newStore(t), newSessions(t)
	add(t, memories, memory.Draft{Text: "The tea is in the kitchen."}, memory.Draft{Text: "The green tea is in the attic.", Scope: memory.Scope{Kind: memory.User, Name: "ann"}})
	asked, back := 0, false
	agent := newAgent(t, memories, sessions, memory.Options{User: func(context.Context, string) (string, error) {
		if asked++; asked == 1 || back {
			return "ann", nil
		}
		return "", errors.New("the directory is not there")
	}}, belay.Options{}, call(memory.RememberTool, `{"text": "Planted."}`), call(memory.SearchTool, `{"query": "tea"}`), scripted.Step{Text: "Good."})
	turn := says(t, agent, "one", "I prefer green tea, and nothing else.")
	if got := sent(turn); strings.Contains(got, "is in the") {
		t.Errorf("recalled:\n%s", got)
	}
	for _, r := range results(turn) {
		if !r.IsError {
			t.Errorf("a tool answers %+v, want that it fails", r)
		}
	}
	for _, of := range []string{"memory.recall", "memory.active"} {
		if !slices.ContainsFunc(turn.Diagnostics, func(d hook.Diagnostic) bool { return d.Subscription == of }) {
			t.Errorf("the diagnostics are %+v, want one of %s", turn.Diagnostics, of)
		}
	}
	if run := work(t, agent.Agent, sessions, 1)[0]; run.State != hook.Failed || len(texts(t, memories)) != 2 {
		t.Errorf("the extraction %s and left %q, want that it failed and left nothing", run.State, texts(t, memories))
	}
	back = true
	work(t, agent.Agent, sessions, 1)
	if got := all(t, memories, memory.Filter{Session: "one"}); len(got) != 1 || got[0].Scope.String() != "user:ann" {
		t.Errorf("remembered when the user is back: %+v, want what Ann said, as hers", got)
	}
}

// stopped is a clock that never advances.
type stopped struct{ at time.Time }

func (s stopped) Now() time.Time { return s.at }

func (s stopped) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// If a turn began before a fact was forgotten, its extraction does not store the fact
// again. Facts from later turns and from other users are stored.
//
// SPEC E-08
func TestForgottenStaysForgotten(t *testing.T) {
	t.Parallel()
	const said = "My cat is called Tom."
	remembers := call(memory.RememberTool, `{"text": "The user has a cat whose name is Tom."}`)
	good := scripted.Step{Text: "Good."}
	forget := func(t *testing.T, memories *memory.Store) {
		t.Helper()
		for _, m := range all(t, memories, memory.Filter{States: []memory.State{memory.Active}}) {
			if _, err := memories.Forget(t.Context(), m.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		rule  string
		clock hook.Clock
		steps []scripted.Step
		do    func(*testing.T, *memory.Store, *belaytest.Agent, func(jobs int))
		want  []string
	}{
		{
			"the turn that it is from is not gone through any more", nil,
			[]scripted.Step{remembers, good},
			func(t *testing.T, memories *memory.Store, agent *belaytest.Agent, work func(int)) {
				says(t, agent, "one-1", said)
				forget(t, memories)
				work(1)
			}, nil,
		},
		{
			"nor if the clock of the file is slow",
			stopped{time.Unix(1, 0)},
			[]scripted.Step{remembers, good},
			func(t *testing.T, memories *memory.Store, agent *belaytest.Agent, work func(int)) {
				says(t, agent, "one-1", said)
				forget(t, memories)
				work(1)
			}, nil,
		},
		{
			"nor another turn that began before", nil,
			[]scripted.Step{good, good},
			func(t *testing.T, memories *memory.Store, agent *belaytest.Agent, work func(int)) {
				says(t, agent, "one-1", said)
				work(1)
				says(t, agent, "one-2", "As I said: my cat is big. My cat is called Tom.")
				forget(t, memories)
				work(1)
			}, nil,
		},
		{
			"nor the turn in which it is forgotten", nil,
			[]scripted.Step{
				good,
				{Compute: func(_ context.Context, req *belay.Request) (scripted.Step, error) {
					_, id, _ := strings.Cut(req.Messages[len(req.Messages)-1].Text(), `<memory id="`)
					id, _, _ = strings.Cut(id, `"`)
					return call(memory.ForgetTool, `{"id": "`+id+`"}`), nil
				}},
				good,
			},
			func(t *testing.T, _ *memory.Store, agent *belaytest.Agent, work func(int)) {
				says(t, agent, "one-1", said)
				work(1)
				if turn := says(t, agent, "one-2", "Please erase my cat. My cat is called Tom."); len(results(turn)) != 1 || results(turn)[0].IsError {
					t.Fatalf("the turn forgets nothing: %+v", results(turn))
				}
				work(1)
			}, nil,
		},
		{
			"what is said later is remembered", nil,
			[]scripted.Step{good, good},
			func(t *testing.T, memories *memory.Store, agent *belaytest.Agent, work func(int)) {
				says(t, agent, "one-1", said)
				work(1)
				forget(t, memories)
				says(t, agent, "one-1", said)
				work(1)
			},
			[]string{said},
		},
		{
			"and what another user said", nil,
			[]scripted.Step{good, good},
			func(t *testing.T, memories *memory.Store, agent *belaytest.Agent, work func(int)) {
				says(t, agent, "one-1", said)
				work(1)
				says(t, agent, "two-1", "I live in Rome.")
				forget(t, memories)
				work(1)
			},
			[]string{"I live in Rome."},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "memory.db")
			memories, err := memory.Open(t.Context(), path, &memory.StoreOptions{Clock: test.clock})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = memories.Close() }()
			sessions := newSessions(t)
			agent := newAgent(t, memories, sessions, memory.Options{User: sessionUser}, belay.Options{}, test.steps...)
			test.do(t, memories, agent, func(jobs int) {
				for _, run := range work(t, agent.Agent, sessions, jobs) {
					if run.State != hook.Completed {
						t.Errorf("the extraction %s: %v", run.State, run.Diagnostics)
					}
				}
			})
			wantTexts(t, "remembered", texts(t, memories, memory.Active), test.want...)
			if len(all(t, memories, memory.Filter{States: []memory.State{memory.Forgotten}})) == 0 {
				t.Error("nothing was forgotten: the test shows nothing")
			}
			sound(t, path)
		})
	}
}

// Any hook with hook.CanAddTools can add tools with the route "memory", and then the
// extension runs the calls to them. The calls can do only what the turn's policy and the
// extension's options allow.
//
// SPEC E-08
func TestBundlesOfOthersAreHeldToThePolicy(t *testing.T) {
	t.Parallel()
	declared := func(name string) belay.ToolDeclaration {
		return belay.ToolDeclaration{Name: name, Description: "Helps."}
	}
	smuggling := belay.TurnPreToolMaterialization.On("aa.smuggling", func(context.Context, belay.TurnSoFar) (belay.ToolBundles, error) {
		var bundles []belay.ToolBundle
		for _, tool := range fourTools {
			bundles = append(bundles, belay.ToolBundle{ID: "smuggled." + tool, Route: "memory", Tools: []belay.ToolDeclaration{declared(tool)}})
		}
		return belay.ToolBundles{Bundles: bundles}, nil
	}, &hook.Options{Capabilities: hook.CanAddTools, Priority: -1})
	for _, test := range []struct {
		rule, text  string
		opts        memory.Options
		read, write bool
		forget      bool
	}{
		{rule: "a turn that may do all", text: "Go on.", read: true, write: true, forget: true},
		{rule: "a turn that may not write", text: "Off the record: go on.", read: true, forget: true},
		{rule: "a turn that may not read", text: "Go on without your memory.", write: true, forget: true},
		{rule: "a turn that may do neither", text: "Do not use your memory."},
		{rule: "an extension that only reads", text: "Go on.", opts: memory.Options{ReadOnly: true}, read: true},
		{rule: "an extension whose tools are a subagent's", text: "Go on.", opts: memory.Options{Subagent: "archivist"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			memories, sessions := newStore(t), newSessions(t)
			id := add(t, memories, memory.Draft{Text: "The zebra is striped."})[0].ID
			agent := newAgent(t, memories, sessions, test.opts, belay.Options{Hooks: []hook.Subscription{smuggling}},
				call(memory.SearchTool, `{"query": "zebra"}`), call(memory.LookupTool, `{"id": "`+id+`"}`), call(memory.RememberTool, `{"text": "Planted."}`), call(memory.ForgetTool, `{"id": "`+id+`"}`), scripted.Step{Text: "Good."})
			turn := says(t, agent, "one", test.text)
			for i, want := range []bool{test.read, test.read, test.write, test.forget} {
				if r := results(turn)[i]; r.IsError == want || !want && r.Class != belay.ClassDenied {
					t.Errorf("%s answers %+v, want that it works: %t", fourTools[i], r, want)
				}
			}
			left := []string{"The zebra is striped."}
			if test.forget {
				left = nil
			}
			if test.write {
				left = append([]string{"Planted."}, left...)
			}
			wantTexts(t, "left", texts(t, memories, memory.Active), left...)
		})
	}
}

// With Options.ReadOnly or Options.Subagent, Route denies calls that change memories.
//
// SPEC E-08
func TestRouteOfAReadOnlyExtension(t *testing.T) {
	t.Parallel()
	memories := newStore(t)
	id := add(t, memories, memory.Draft{Text: "The zebra is striped."})[0].ID
	for _, opts := range []memory.Options{{ReadOnly: true}, {Subagent: "archivist"}} {
		extension, err := memory.New(memories, &opts)
		if err != nil {
			t.Fatal(err)
		}
		for tool, input := range map[string]string{memory.RememberTool: `{"text": "Planted."}`, memory.ForgetTool: `{"id": "` + id + `"}`} {
			result, err := extension.Route(t.Context(), &belay.Invocation{Tool: tool, Input: []byte(input), Session: "one", Agent: "main"})
			if err != nil || result.Class != belay.ClassDenied {
				t.Errorf("%s of an extension with %+v: %+v, %v, want that it is denied", tool, opts, result, err)
			}
		}
	}
	wantTexts(t, "left", texts(t, memories, memory.Active), "The zebra is striped.")
}

// memory_remember rejects text that looks like a secret, and tells the model why.
//
// SPEC E-08
func TestSecretsAreNotNoted(t *testing.T) {
	t.Parallel()
	memories, sessions := newStore(t), newSessions(t)
	agent := newAgent(t, memories, sessions, memory.Options{}, belay.Options{},
		call(memory.RememberTool, `{"text": "The password of the router is hunter22."}`), call(memory.RememberTool, `{"text": "The router.", "tags": ["sk-abcdefghijklmnop1234"]}`),
		call(memory.RememberTool, `{"text": "The router is in the hall."}`), scripted.Step{Text: "Good."})
	got := results(says(t, agent, "one", "Note it all."))
	for i, want := range []bool{false, false, true} {
		if got[i].IsError == want || !want && !strings.Contains(got[i].Text, "looks like a password") {
			t.Errorf("call %d answers %+v, want that it is kept: %t", i+1, got[i], want)
		}
	}
	wantTexts(t, "remembered", texts(t, memories), "The router is in the hall.")
}
