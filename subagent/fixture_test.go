package subagent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/sqlite"
	"github.com/belay-run/belay/subagent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onStores runs a test with a store in memory and with a store in a file.
func onStores(t *testing.T, test func(t *testing.T, store belay.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, memstore.New(nil))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, openFile(t, newFile(t)))
	})
}

// newFile returns the path of a new file with an empty store.
var newFile = filetest.Copies("belay.db", func(path string) error {
	s, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	return s.Close()
})

// openFile opens a store, and closes it when the test ends.
func openFile(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// script returns a model that chooses its step by the conversation. So one model can
// serve many sessions.
func script(steps ...scripted.Step) *scripted.Model {
	return scripted.New(steps, &scripted.Options{FollowTranscript: true, Pace: scripted.Pace{Chunk: scripted.Whole}})
}

func says(text string) scripted.Step             { return scripted.Step{Text: text} }
func calls(calls ...scripted.Call) scripted.Step { return scripted.Step{Calls: calls} }

func call(tool string, input any) scripted.Call { return scripted.Call{Tool: tool, Input: input} }

func invoke(name, prompt string) scripted.Call {
	return call("invoke_subagent", map[string]string{"name": name, "prompt": prompt})
}

// tells returns a step whose text contains the last tool results.
func tells(who string) scripted.Step {
	return scripted.Step{Compute: func(_ context.Context, req *belay.Request) (scripted.Step, error) {
		return says(who + " heard " + strings.Join(results(req.Messages), " | ")), nil
	}}
}

// results returns the texts of the tool results in the last message that has any.
func results(messages []*belay.Message) []string {
	var texts []string
	for i := len(messages) - 1; i >= 0 && texts == nil; i-- {
		for _, p := range messages[i].Parts {
			if p.Result != nil {
				texts = append(texts, p.Result.Text)
			}
		}
	}
	return texts
}

func newExtension(t *testing.T, opts *subagent.Options, subagents ...subagent.Subagent) *subagent.Extension {
	t.Helper()
	e, err := subagent.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Add(subagents...); err != nil {
		t.Fatal(err)
	}
	return e
}

// newAgent makes an agent, and closes it when the test ends.
func newAgent(t *testing.T, model belay.Model, opts *belay.Options) *belay.Agent {
	t.Helper()
	agent, err := belay.New(model, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := agent.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return agent
}

// parentOf makes an agent with subagents.
func parentOf(t *testing.T, model belay.Model, store belay.Store, subagents ...subagent.Subagent) *belay.Agent {
	t.Helper()
	return newAgent(t, model, &belay.Options{Store: store, Extensions: []belay.Extension{newExtension(t, nil, subagents...)}})
}

// heard has the events and the end of a turn.
type heard struct {
	events []belay.Event
	end    *belay.Turn
	err    error
}

// take runs a turn and checks that the events of subagents come in pairs.
func take(t *testing.T, stream iter.Seq2[belay.Event, error]) *heard {
	t.Helper()
	h := new(heard)
	for event, err := range stream {
		if err != nil {
			h.err = err
			continue
		}
		h.events = append(h.events, event)
		if event.End != nil && event.Depth == 0 {
			h.end = event.End
		}
	}
	if h.end == nil {
		t.Fatalf("the turn has no end: %v", h.err)
	}
	h.paired(t)
	return h
}

// ended checks how the turn ended.
func (h *heard) ended(t *testing.T, reason belay.EndReason) {
	t.Helper()
	if h.end.Reason != reason {
		t.Errorf("the turn ended %s (%s, %v), want %s", h.end.Reason, h.end.Why, h.err, reason)
	}
}

// paired checks that the events of subagents come in pairs and are nested. The events of
// a child must be between its own pair.
func (h *heard) paired(t *testing.T) {
	t.Helper()
	type run struct {
		parent string
		depth  int
	}
	open := map[string]run{"": {}}
	seen := map[string]bool{}
	for _, e := range h.events {
		switch e.Kind {
		case belay.EventSubagentInvoked:
			above, ok := open[e.Parent]
			if !ok || e.Depth != above.depth+1 || seen[e.Run] || e.Run == "" {
				t.Errorf("run %q of %s begins at depth %d, below %q: %v", e.Run, e.Subagent.Name, e.Depth, e.Parent, open)
			}
			open[e.Run], seen[e.Run] = run{e.Parent, e.Depth}, true
		case belay.EventSubagentCompleted:
			if _, ok := open[e.Run]; !ok || e.Subagent.Status == "" {
				t.Errorf("run %q of %s ends with %q, and is not under way", e.Run, e.Subagent.Name, e.Subagent.Status)
			}
			delete(open, e.Run)
			for id, r := range open {
				if id != "" && r.parent == e.Run {
					t.Errorf("run %q ends after its parent %q", id, e.Run)
				}
			}
		default:
			if r, ok := open[e.Run]; !ok || r.depth != e.Depth || r.parent != e.Parent {
				t.Errorf("%s of run %q at depth %d, below %q, is outside of its brackets", e.Kind, e.Run, e.Depth, e.Parent)
			}
		}
	}
	if len(open) != 1 {
		t.Errorf("runs that never end: %v", open)
	}
	var last uint64
	for _, e := range h.events {
		if e.Seq != last+1 && last != 0 {
			t.Errorf("event %d comes behind %d", e.Seq, last)
		}
		last = e.Seq
	}
}

// brackets returns the start and the end of each child, in order, as "+name" and "-name
// status".
func (h *heard) brackets() string {
	var all []string
	for _, e := range h.events {
		if e.Kind == belay.EventSubagentInvoked {
			all = append(all, "+"+e.Subagent.Name)
		}
		if e.Kind == belay.EventSubagentCompleted {
			all = append(all, fmt.Sprintf("-%s %s", e.Subagent.Name, e.Subagent.Status))
		}
	}
	return strings.Join(all, " ")
}

// results returns the results of the main agent's calls.
func (h *heard) results() []belay.Result {
	var all []belay.Result
	for _, e := range h.events {
		if e.Kind == belay.EventToolUseResult && e.Depth == 0 {
			all = append(all, *e.Result)
		}
	}
	return all
}

// content returns the answer of a subagent from a result.
func content(t *testing.T, r belay.Result) string {
	t.Helper()
	var in struct {
		Subagent string `json:"subagent"`
		Content  string `json:"content"`
	}
	if err := json.Unmarshal([]byte(r.Text), &in); err != nil || r.IsError {
		t.Fatalf("the result is no answer: %v: %s", err, r.Text)
	}
	return in.Content
}

// answers returns a factory whose subagent always gives the same answer.
func answers(text string) subagent.Factory {
	return subagent.Canned(func(context.Context, string) (string, error) { return text, nil })
}

// runner makes a Runner of a function.
type runner func(ctx context.Context, text string) iter.Seq2[belay.Event, error]

func (r runner) Run(ctx context.Context, text string, _ ...belay.Part) iter.Seq2[belay.Event, error] {
	return r(ctx, text)
}

// tellsSystem returns a step whose text is the system prompt.
func tellsSystem() scripted.Step {
	return scripted.Step{Compute: func(_ context.Context, req *belay.Request) (scripted.Step, error) { return says(req.System), nil }}
}
