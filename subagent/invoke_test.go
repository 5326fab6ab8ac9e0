package subagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/subagent"
)

// SPEC S-02, S-03, S-04
func TestInvoke(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		child := script(says("looks good"))
		var got []*subagent.Task
		factory := func(ctx context.Context, task *subagent.Task) (subagent.Runner, error) {
			got = append(got, task)
			return subagent.Agent(child, nil)(ctx, task)
		}
		agent := parentOf(t, script(calls(invoke("reviewer", "review it @once")), tells("main"), calls(invoke("reviewer", "again")), says("done")),
			store, subagent.Subagent{Name: "reviewer", Factory: factory})
		h := take(t, agent.Session("s").Run(t.Context(), "a secret that children are not told"))
		h.ended(t, belay.EndTurn)
		if want := `main heard {"subagent":"reviewer","content":"looks good"}`; h.end.Text != want {
			t.Errorf("the model was told %q, want %q", h.end.Text, want)
		}
		if got, want := h.brackets(), "+reviewer -reviewer success"; got != want {
			t.Errorf("brackets = %s, want %s", got, want)
		}
		messages := child.Requests()[0].Messages
		if len(messages) != 1 || messages[0].Text() != "review it @once" {
			t.Errorf("the child saw %d messages, the first of them %q: want the prompt alone", len(messages), messages[0].Text())
		}
		take(t, agent.Session("s").Run(t.Context(), "again")).ended(t, belay.EndTurn)
		if len(got) != 2 || got[0].Name != "reviewer" || got[0].Prompt != "review it @once" || got[1].Prompt != "again" || got[0].Store != store || got[0].Controls == nil || got[0].Resumed {
			t.Errorf("the factory got %+v", got)
		}
		if got[0].Session == got[1].Session || !strings.HasPrefix(got[0].Session, "s/") {
			t.Errorf("sessions = %q and %q, want two below the parent's", got[0].Session, got[1].Session)
		}
		if _, err := got[0].Controls.Child(t.Context(), belay.Child{Name: "x"}, nil); !errors.Is(err, belay.ErrOver) {
			t.Errorf("controls of a call that is over: %v, want ErrOver", err)
		}
	})
}

// SPEC S-04
func TestEventsOfChildrenAreToldOnce(t *testing.T) {
	t.Parallel()
	// The child streams its answer, so that there are text deltas.
	child := scripted.New([]scripted.Step{says("one two three")}, nil)
	agent := parentOf(t, script(calls(invoke("reviewer", "go")), says("done")), nil, subagent.Subagent{Name: "reviewer", Factory: subagent.Agent(child, nil)})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	watching := agent.Watch(ctx, nil)
	h := take(t, agent.Session("s").Run(t.Context(), "go"))
	var seen []belay.Event
	for event, err := range watching {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, event); event.End != nil && event.Depth == 0 {
			break
		}
	}
	if diff := cmp.Diff(kinds(h.events), kinds(seen)); diff != "" {
		t.Errorf("who watches the parent saw something else than who reads the turn (-stream +watcher):\n%s", diff)
	}
	want := []string{
		"turn_start 0", "model_response 0", "token_consumption 0", "tool_use 0", "subagent_invoked 1",
		"turn_start 1", "text_delta 1", "text_delta 1", "text_delta 1", "model_response 1", "token_consumption 1", "turn_end 1",
		"subagent_completed 1", "tool_use_result 0", "model_response 0", "token_consumption 0", "turn_end 0",
	}
	if diff := cmp.Diff(want, kinds(h.events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if e := h.events[5]; e.Agent != "reviewer" || e.Run != h.events[4].Run || e.Parent != "" || !strings.HasPrefix(e.Session, "s/") {
		t.Errorf("the child's first event is %+v", e)
	}
}

func kinds(events []belay.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, fmt.Sprint(e.Kind, " ", e.Depth))
	}
	return all
}

// SPEC S-01, S-03
func TestToolFollowsTheSet(t *testing.T) {
	t.Parallel()
	model := script(calls(call("add", nil)), calls(invoke("b", "x")), calls(call("remove", nil)), calls(invoke("b", "x")), says("done"))
	e := newExtension(t, nil)
	var lease *belay.Lease
	add := belay.NewTool("add", "adds", func(context.Context, struct{}) (string, error) {
		var err error
		lease, err = e.Add(
			subagent.Subagent{Name: "b", Description: "Says <b> & \"more\".\nTwo lines.", Factory: answers("b")},
			subagent.Subagent{Name: "a", Factory: answers("a")},
			subagent.Subagent{Name: "other", Factory: answers("no"), Agents: []string{"other"}},
		)
		return "added", err
	}, nil)
	remove := belay.NewTool("remove", "removes", func(context.Context, struct{}) (string, error) {
		return "removed", errors.Join(lease.Close(), lease.Close())
	}, nil)
	agent := newAgent(t, model, &belay.Options{Tools: []belay.Tool{add, remove}, Extensions: []belay.Extension{e}})
	h := take(t, agent.Session("s").Run(t.Context(), "go"))
	h.ended(t, belay.EndTurn)
	var advertised []string
	for _, r := range model.Requests() {
		description := "-"
		for _, tool := range r.Tools {
			if tool.Name == subagent.InvokeTool {
				_, description, _ = strings.Cut(tool.Description, "\n\n")
			}
		}
		advertised = append(advertised, description)
	}
	list := "<available_subagents>\n<subagent name=\"a\" />\n<subagent name=\"b\">Says &lt;b&gt; &amp; &#34;more&#34;. Two lines.</subagent>\n</available_subagents>"
	if diff := cmp.Diff([]string{"-", list, list, "-", "-"}, advertised); diff != "" {
		t.Errorf("what was advertised (-want +got):\n%s", diff)
	}
	if got := content(t, h.results()[1]); got != "b" {
		t.Errorf("content = %q", got)
	}
	if r := h.results()[3]; !r.IsError {
		t.Errorf("a call of a tool that is gone: %+v, want an error", r)
	}
}

// SPEC S-01: if an agent has no subagents, its requests are the same as without this
// package.
func TestNoSubagentsNoTrace(t *testing.T) {
	t.Parallel()
	request := func(extensions ...belay.Extension) string {
		model := script(says("done"))
		agent := newAgent(t, model, &belay.Options{
			Instructions: "Be kind.", Extensions: extensions,
			Tools: []belay.Tool{belay.NewTool("x", "does x", func(context.Context, struct{}) (string, error) { return "", nil }, nil)},
		})
		take(t, agent.Session("s").Run(t.Context(), "ask @reviewer about it"))
		r := model.Requests()[0]
		text, err := json.Marshal([]any{r.System, r.Tools, r.Messages[0].Parts, r.MaxTokens, len(r.Messages)})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	empty := newExtension(t, &subagent.Options{Delegate: true})
	gone := newExtension(t, &subagent.Options{Delegate: true})
	lease, err := gone.Add(subagent.Subagent{Name: "reviewer", Factory: answers("x")})
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	elsewhere := newExtension(t, nil, subagent.Subagent{Name: "reviewer", Factory: answers("x"), Agents: []string{"other"}})
	want := request()
	for rule, e := range map[string]*subagent.Extension{"none added": empty, "none left": gone, "none for this agent": elsewhere} {
		if got := request(e); got != want {
			t.Errorf("%s: the request is %s, want %s", rule, got, want)
		}
	}
	if some := request(newExtension(t, nil, subagent.Subagent{Name: "reviewer", Factory: answers("x")})); some == want || !strings.Contains(some, "ask @reviewer about it") {
		t.Errorf("with a subagent the request is %s: want its tool, and @reviewer left alone", some)
	}
}

// SPEC S-01
func TestStepToolsAreTheSame(t *testing.T) {
	t.Parallel()
	e := newExtension(t, &subagent.Options{Delegate: true}, subagent.Subagent{Name: "a", Factory: answers("a")})
	first, again := e.StepTools("main"), e.StepTools("main")
	if len(first) != 2 || first[0] != again[0] || first[1] != again[1] {
		t.Errorf("tools = %v, then %v: want the same two", first, again)
	}
	if _, err := e.Add(subagent.Subagent{Name: "b", Factory: answers("b")}); err != nil {
		t.Fatal(err)
	}
	if changed := e.StepTools("main"); changed[0] == first[0] {
		t.Error("the tool is the same, with another list of subagents")
	}
}

// SPEC S-03
func TestAChildThatFailsIsAnErrorResult(t *testing.T) {
	t.Parallel()
	runs := func(r runner) subagent.Factory {
		return func(context.Context, *subagent.Task) (subagent.Runner, error) { return r, nil }
	}
	for _, test := range []struct {
		rule    string
		name    string
		prompt  string
		factory subagent.Factory
		want    string
		class   belay.ResultClass
		status  string
	}{
		{"an unknown name", "reviwer", "x", answers("x"), `there is no subagent "reviwer" (did you mean "reviewer"?): available are other, reviewer`, belay.ClassNotFound, ""},
		{"an empty prompt", "reviewer", " \n", answers("x"), "the prompt is empty", belay.ClassInvalid, ""},
		{"a factory that fails", "reviewer", "x", func(context.Context, *subagent.Task) (subagent.Runner, error) { return nil, errors.New("no key") }, "its factory failed: no key", belay.ClassFailed, "error"},
		{"a factory that panics", "reviewer", "x", func(context.Context, *subagent.Task) (subagent.Runner, error) { panic("oops") }, "panicked: oops", belay.ClassFailed, "error"},
		{"a factory that ends its goroutine", "reviewer", "x", func(context.Context, *subagent.Task) (subagent.Runner, error) { runtime.Goexit(); return nil, nil }, "runtime.Goexit", belay.ClassFailed, "error"},
		{"a factory that returns nothing", "reviewer", "x", func(context.Context, *subagent.Task) (subagent.Runner, error) { return nil, nil }, "returned nothing to run", belay.ClassFailed, "error"},
		{"a factory that returns a session that is none", "reviewer", "x", func(context.Context, *subagent.Task) (subagent.Runner, error) { return (*belay.Session)(nil), nil }, "returned nothing to run", belay.ClassFailed, "error"},
		{"a run without events", "reviewer", "x", runs(func(context.Context, string) iter.Seq2[belay.Event, error] { return nil }), "no events", belay.ClassFailed, "error"},
		{"a run that panics", "reviewer", "x", runs(func(context.Context, string) iter.Seq2[belay.Event, error] { panic("oops") }), "panicked: oops", belay.ClassFailed, "error"},
		{"a run that fails in the middle", "reviewer", "x", runs(func(context.Context, string) iter.Seq2[belay.Event, error] {
			return func(yield func(belay.Event, error) bool) {
				_ = yield(belay.Event{Kind: belay.EventTextDelta, Text: "half of"}, nil) && yield(belay.Event{}, errors.New("the line was cut"))
			}
		}), "the line was cut\n\nIts last message:\nhalf of", belay.ClassFailed, "error"},
		{"a function that fails", "reviewer", "x", subagent.Canned(func(context.Context, string) (string, error) { return "", errors.New("closed") }), "closed", belay.ClassFailed, "error"},
		{"function is nil", "reviewer", "x", subagent.Canned(nil), "function is nil", belay.ClassFailed, "error"},
		{"no model", "reviewer", "x", subagent.Agent(nil, nil), "the model is nil", belay.ClassFailed, "error"},
		{"no agent", "reviewer", "x", subagent.Built(func(context.Context, *subagent.Task) (*belay.Agent, error) { return nil, nil }), "neither an agent nor an error", belay.ClassFailed, "error"},
		{"a builder that fails", "reviewer", "x", subagent.Built(func(context.Context, *subagent.Task) (*belay.Agent, error) { return nil, errors.New("no such model") }), "no such model", belay.ClassFailed, "error"},
		{
			"a turn of too many steps", "reviewer", "x",
			subagent.Agent(script(scripted.Step{Text: "on my way", Calls: []scripted.Call{call("none", nil)}}), &belay.Options{Limits: belay.Limits{Steps: 1}}),
			"the subagent's turn ended with max_steps\n\nIts last message:\non my way", belay.ClassFailed, "error",
		},
		{
			"a turn that costs too much", "reviewer", "x",
			subagent.Agent(script(scripted.Step{Text: "expensive", Calls: []scripted.Call{call("none", nil)}, Usage: belay.Usage{In: 100}}), &belay.Options{Budget: belay.Budget{TurnTokens: 10}}),
			"the subagent's turn ended with budget: the turn has used 100 tokens, and its limit is 10\n\nIts last message:\nexpensive", belay.ClassFailed, "error",
		},
		{"a model that refuses", "reviewer", "x", subagent.Agent(script(scripted.Step{Text: "I will not", Stop: belay.StopRefusal}), nil), "the subagent's turn ended with refused\n\nIts last message:\nI will not", belay.ClassFailed, "error"},
		{"a model that fails", "reviewer", "x", subagent.Agent(script(), nil), "the script ends after step 0", belay.ClassFailed, "error"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			agent := parentOf(t, script(calls(invoke(test.name, test.prompt)), says("I go on")), nil,
				subagent.Subagent{Name: "reviewer", Factory: test.factory}, subagent.Subagent{Name: "other", Factory: answers("x")})
			h := take(t, agent.Session("s").Run(t.Context(), "go"))
			h.ended(t, belay.EndTurn)
			if r := h.results()[0]; !r.IsError || r.Class != test.class || !strings.Contains(r.Text, test.want) {
				t.Errorf("the result is %+v, want %q of class %s", r, test.want, test.class)
			}
			want := ""
			if test.status != "" {
				want = "+reviewer -reviewer " + test.status
			}
			if got := h.brackets(); got != want {
				t.Errorf("brackets = %s, want %s", got, want)
			}
		})
	}
}

// A runner need not yield turn_end. Its text is then the answer.
func TestARunnerMaySayTextAlone(t *testing.T) {
	t.Parallel()
	agent := parentOf(t, script(calls(invoke("echo", "hello")), says("done")), nil, subagent.Subagent{Name: "echo", Factory: func(context.Context, *subagent.Task) (subagent.Runner, error) {
		return runner(func(_ context.Context, text string) iter.Seq2[belay.Event, error] {
			return func(yield func(belay.Event, error) bool) {
				_ = yield(belay.Event{Kind: belay.EventTextDelta, Text: text}, nil) && yield(belay.Event{Kind: belay.EventTextDelta, Text: " you"}, nil)
			}
		}), nil
	}})
	h := take(t, agent.Session("s").Run(t.Context(), "go"))
	if got := content(t, h.results()[0]); got != "hello you" {
		t.Errorf("content = %q", got)
	}
}

// SPEC S-02: the child handles the directives in its prompt, and the parent does not.
func TestDirectivesInAPromptAreTheChilds(t *testing.T) {
	t.Parallel()
	var mine, theirs []string
	directive := func(said *[]string) belay.Directive {
		return belay.Directive{Name: "shout", Run: func(_ context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
			*said = append(*said, use.Text)
			return belay.DirectiveOutcome{}, nil
		}}
	}
	with, without := script(says("ok")), script(says("ok"))
	e := newExtension(t, nil,
		subagent.Subagent{Name: "with", Factory: subagent.Agent(with, &belay.Options{Directives: []belay.Directive{directive(&theirs)}})},
		subagent.Subagent{Name: "without", Factory: subagent.Agent(without, nil)})
	agent := newAgent(t, script(calls(invoke("with", "/shout this")), calls(invoke("without", "/shout that")), says("done")),
		&belay.Options{Extensions: []belay.Extension{e}, Directives: []belay.Directive{directive(&mine)}})
	take(t, agent.Session("s").Run(t.Context(), "go")).ended(t, belay.EndTurn)
	if len(mine) != 0 || len(theirs) != 1 {
		t.Errorf("the parent's directive ran for %q and the child's for %q: want the child's once", mine, theirs)
	}
	if got := without.Requests()[0].Messages[0].Text(); got != "/shout that" {
		t.Errorf("a child without directives was asked %q", got)
	}
	if got := with.Requests()[0].Messages[0].Text(); got == "/shout this" {
		t.Error("the child's directive left no trace in its prompt")
	}
}
