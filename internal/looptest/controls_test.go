package looptest_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// withControls returns a directive that calls do with its controls.
func withControls(name string, do func(ctx context.Context, c *belay.Controls) error) belay.Directive {
	return belay.Directive{Name: name, Run: func(ctx context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
		return belay.DirectiveOutcome{}, do(ctx, use.Controls)
	}}
}

// askerFunc makes an asker from a function.
type askerFunc func(q belay.Inquiry) (string, error)

func (f askerFunc) Ask(_ context.Context, q belay.Inquiry) (string, error) { return f(q) }

// models returns a function that finds scripted models by name.
func models(all ...*scripted.Model) func(context.Context, string) (belay.Model, error) {
	return func(_ context.Context, name string) (belay.Model, error) {
		for _, m := range all {
			if m.Info().Name == name {
				return m, nil
			}
		}
		return nil, errors.New("there is no such model here")
	}
}

func namedScript(name string, steps ...scripted.Step) *scripted.Model {
	return scripted.New(steps, &scripted.Options{Name: name, Repeat: true})
}

// SPEC D-04
func TestControlsOfDirectives(t *testing.T) {
	t.Parallel()
	var read []string
	var held *belay.Controls
	var agent *belay.Agent
	agent, model := newAgent(t, &belay.Options{
		Tools: []belay.Tool{echoTool("echo")},
		Asker: askerFunc(func(q belay.Inquiry) (string, error) { return "answer to " + q.Text + " in " + q.Session, nil }),
		Store: memstore.New(nil),
		Directives: []belay.Directive{
			withControls("see", func(ctx context.Context, c *belay.Controls) error {
				held = c
				for m, err := range c.Messages(ctx) {
					if err != nil {
						return err
					}
					read = append(read, m.Text())
				}
				answer, err := c.Ask(ctx, "why")
				if err != nil {
					return err
				}
				read = append(read, answer, c.Tools()[0].Name, c.Model().Name)
				if _, before := c.Usage(); before != agent.Session("s").Usage() {
					t.Errorf("the session took %+v, and its controls say %+v", agent.Session("s").Usage(), before)
				}
				if c.Agent() != agent || c.Store() == nil {
					t.Error("the controls are of another agent")
				}
				if _, err := c.Agent().Define(noted(new(diary), "later")); err != nil {
					return err
				}
				return c.Append(belay.Text("a note"))
			}),
		},
	}, scripted.Step{Text: "one", Usage: belay.Usage{In: 3}})
	s := agent.Session("s")
	takeTurn(t, s.Run(t.Context(), "first"), belay.EndTurn)
	takeTurn(t, s.Run(t.Context(), "/see /later"), belay.EndTurn)
	wantEqual(t, "what it saw", read, []string{"first", "one", "answer to why in s", "echo", "scripted/script"})
	sent := model.Requests()[1].Messages
	if note := sent[len(sent)-2]; note.Text() != "a note" || note.Kind != belay.KindInjected {
		t.Errorf("the note is %q, %s", note.Text(), note.Kind)
	}
	if text := lastUser(t, s).Text(); !strings.HasSuffix(text, " /later") {
		t.Errorf("a name counts from the next message on, and the text is %q", text)
	}
	for what, err := range map[string]error{
		"append": held.Append(belay.Text("x")), "compact": held.Compact(), "emit": held.Emit(belay.Event{}), "model": held.UseModel(model),
	} {
		if !errors.Is(err, belay.ErrOver) {
			t.Errorf("%s after the directive: %v", what, err)
		}
	}
}

// SPEC D-04: Ask returns ErrNobody if nobody can be asked.
func TestControlsWithoutAnAsker(t *testing.T) {
	t.Parallel()
	agent, _ := newAgent(t, &belay.Options{Directives: []belay.Directive{withControls("ask", func(ctx context.Context, c *belay.Controls) error {
		_, err := c.Ask(ctx, "why")
		return err
	})}})
	if _, err := agent.Session("s").Turn(t.Context(), "/ask"); !errors.Is(err, belay.ErrNobody) {
		t.Error(err)
	}
}

// SPEC D-04: a directive compacts at once, before its message is stored.
func TestControlsCompact(t *testing.T) {
	t.Parallel()
	agent, model := newAgent(t, &belay.Options{Directives: []belay.Directive{
		withControls("compact", func(_ context.Context, c *belay.Controls) error { return c.Compact() }),
	}}, says("one"), says("the gist"), says("two"))
	s := agent.Session("s")
	takeTurn(t, s.Run(t.Context(), "first"), belay.EndTurn)
	turn := takeTurn(t, s.Run(t.Context(), "/compact and go on"), belay.EndTurn)
	wantEqual(t, "the answer", turn.Text, "two")
	sent := model.Requests()[2].Messages
	if len(sent) != 2 || !sent[0].IsCompaction || !strings.Contains(sent[1].Text(), "and go on") {
		t.Errorf("the model was sent %d messages, the first %q", len(sent), sent[0].Text())
	}
}

// SPEC D-04, L-06: if there is nothing to summarize, Compact does nothing: no error, no
// event, no hook, no model request, no stored message.
func TestCompactWithNothingToDo(t *testing.T) {
	t.Parallel()
	var d diary
	fired := func(phase string) { d.notef("%s fired", phase) }
	agent, model := newAgent(t, &belay.Options{
		Directives: []belay.Directive{
			withControls("compact", func(_ context.Context, c *belay.Controls) error { return c.Compact() }),
		},
		Hooks: []hook.Subscription{
			belay.TurnPreCompaction.On("ahead", func(context.Context, belay.CompactionAhead) (belay.CompactionAdvice, error) {
				fired("pre")
				return belay.CompactionAdvice{}, nil
			}, nil),
			belay.TurnPostCompaction.On("done", func(context.Context, belay.CompactionDone) (belay.Note, error) {
				fired("post")
				return belay.Note{}, nil
			}, nil),
		},
	}, says("one"), says("the gist"), says("two"))
	ctx := t.Context()
	s := agent.Session("s")
	if err := s.Compact(ctx); err != nil {
		t.Errorf("an empty session: %v", err)
	}
	turn := takeTurn(t, s.Run(ctx, "/compact and go on"), belay.EndTurn)
	wantEqual(t, "the answer", turn.Text, "one")
	wantEqual(t, "the events of a compaction", len(turn.of(belay.EventCompactionStart))+len(turn.of(belay.EventCompactionEnd)), 0)
	wantEqual(t, "what fired without anything to summarize", d.all(), nil)
	if err := s.Compact(ctx); err != nil { // now there is something to summarize
		t.Fatal(err)
	}
	stored, asked := len(transcript(t, s)), len(model.Requests())
	wantEqual(t, "the requests so far", asked, 2)
	wantEqual(t, "what fired at a compaction", d.all(), []string{"pre fired", "post fired"})
	if err := s.Compact(ctx); err != nil {
		t.Errorf("a session that is a summary: %v", err)
	}
	wantEqual(t, "the messages after a compaction of a summary", len(transcript(t, s)), stored)
	wantEqual(t, "the requests after it", len(model.Requests()), asked)
	turn = takeTurn(t, s.Run(ctx, "/compact again"), belay.EndTurn)
	wantEqual(t, "the answer after it", turn.Text, "two")
}

// SPEC D-04, L-01: if a tool requests another model or a compaction, this happens before
// the next step. The messages that the tool adds are stored after the results.
func TestControlsOfTools(t *testing.T) {
	t.Parallel()
	other := namedScript("test/other", says("from the other"))
	var held *belay.Controls
	tool := anyTool("wish", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		c := call.Controls()
		held = c
		return belay.Result{Text: "done"}, errors.Join(c.Append(belay.Text("by the way")), c.UseModel(other), c.Compact())
	}, nil)
	agent, model := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}}, calls("wish"))
	s := agent.Session("s")
	turn := takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn)
	wantEqual(t, "the answer", turn.Text, "from the other")
	var kinds []belay.MessageKind
	for _, m := range transcript(t, s) {
		kinds = append(kinds, m.Kind)
	}
	wantEqual(t, "the transcript", kinds, []belay.MessageKind{
		belay.KindUser, belay.KindAssistant, belay.KindResults, belay.KindInjected, belay.KindCompaction, belay.KindAssistant,
	})
	if err := held.Append(belay.Text("x")); !errors.Is(err, belay.ErrOver) {
		t.Errorf("the controls outlive the call: %v", err)
	}
	takeTurn(t, s.Run(t.Context(), "again"), belay.EndTurn) // UseModel switched the model for one turn only
	if n := len(model.Requests()); n != 2 {
		t.Errorf("the agent's own model was asked %d times", n)
	}
}

// SPEC D-04: if another call parks the turn, the messages that a tool added are kept.
func TestControlsAppendSurvivesParking(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	tools := []belay.Tool{
		anyTool("add", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
			return belay.Result{Text: "added"}, call.Controls().Append(belay.Text("by the way"))
		}, nil),
		anyTool("wait", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
			if call.Wait == "" {
				return belay.Result{}, belay.Park("rain")
			}
			return belay.Result{Text: "it rains"}, nil
		}, nil),
	}
	first, _ := newAgent(t, &belay.Options{Tools: tools, Store: store}, calls("add", "wait"))
	takeTurn(t, first.Session("s").Run(t.Context(), "go"), belay.EndParked)
	second, model := newAgent(t, &belay.Options{Tools: tools, Store: store})
	takeTurn(t, second.Session("s").Resume(t.Context()), belay.EndTurn)
	sent := model.Requests()[0].Messages
	if last := sent[len(sent)-1]; last.Text() != "by the way" || sent[len(sent)-2].Kind != belay.KindResults {
		t.Errorf("the last message is %q, behind %s", last.Text(), sent[len(sent)-2].Kind)
	}
}

// SPEC D-04: a directive, a hook or Go code can swap the model, for one turn or from now
// on.
func TestModelSwap(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	own, a, b := namedScript("test/own", says("own")), namedScript("test/a", says("a")), namedScript("test/b", says("b"))
	swap := func(name string, keep bool) belay.Directive {
		return withControls(name+map[bool]string{true: "-on"}[keep], func(ctx context.Context, c *belay.Controls) error {
			m, err := c.FindModel(ctx, "test/"+name)
			if err != nil {
				return err
			}
			if keep {
				return c.KeepModel(m)
			}
			return c.UseModel(m)
		})
	}
	opts := func() *belay.Options {
		return &belay.Options{
			Store: store, Models: models(a, b), Directives: []belay.Directive{swap("a", false), swap("a", true), swap("b", true), swap("own", true), swap("c", false)},
			Hooks: []hook.Subscription{belay.TurnPrePolicy.On("policy", func(_ context.Context, in belay.TurnBegun) (belay.TurnPolicy, error) {
				if name, ok := strings.CutPrefix(in.Text(), "policy "); ok {
					return belay.SetPolicy(belay.PolicyModel.Set(name)), nil
				}
				return belay.TurnPolicy{}, nil
			}, nil)},
		}
	}
	agent := agentOf(t, own, opts())
	s := agent.Session("s")
	ask := func(s *belay.Session, text, want string) {
		t.Helper()
		if got := takeTurn(t, s.Run(t.Context(), text), belay.EndTurn).Text; got != want {
			t.Errorf("%q was answered by %q, not %q", text, got, want)
		}
	}
	ask(s, "hello", "own")
	ask(s, "/a hello", "a")
	ask(s, "hello", "own")
	ask(s, "/a-on hello", "a")
	ask(s, "hello", "a")
	ask(s, "policy test/b", "b")
	ask(s, "hello", "a")
	succeeds(t, s.SetModel(t.Context(), b))
	ask(s, "hello", "b")
	if _, err := s.Turn(t.Context(), "/c hello"); err == nil || !strings.Contains(err.Error(), `"test/c"`) {
		t.Errorf("a model that is not there: %v", err)
	}
	if _, err := s.Turn(t.Context(), "policy test/c"); err == nil || !strings.Contains(err.Error(), `"test/c"`) {
		t.Errorf("a policy that names a model which is not there: %v", err)
	}
	succeeds(t, s.Close(t.Context()))

	again := agentOf(t, own, opts()).Session("s") // another process finds the model by its name
	ask(again, "hello", "b")
	ask(again, "/own-on hello", "own")
	ask(again, "hello", "own")
	ask(again, "/b-on hello", "b")
	succeeds(t, again.Close(t.Context()))

	less := opts()
	less.Models, less.Directives = nil, nil
	lost := agentOf(t, own, less).Session("s")
	turn := takeTurn(t, lost.Run(t.Context(), "hello"), belay.EndTurn)
	if turn.Text != "own" || !slices.ContainsFunc(turn.Diagnostics, func(d hook.Diagnostic) bool { return d.Code == codes.ModelUnavailable }) {
		t.Errorf("%q answered, with %v", turn.Text, turn.Diagnostics)
	}
}

// A resumed turn continues with the model that was chosen for the turn.
//
// SPEC D-04
func TestModelSwapSurvivesParking(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	own, a := namedScript("test/own", says("own")), scripted.New([]scripted.Step{calls("wait"), says("a")}, &scripted.Options{Name: "test/a"})
	tool := anyTool("wait", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		if call.Wait == "" {
			return belay.Result{}, belay.Park("rain")
		}
		return belay.Result{Text: "it rains"}, nil
	}, nil)
	opts := &belay.Options{Store: store, Models: models(a), Tools: []belay.Tool{tool}, Directives: []belay.Directive{
		withControls("a", func(_ context.Context, c *belay.Controls) error { return c.UseModel(a) }),
	}}
	takeTurn(t, agentOf(t, own, opts).Session("s").Run(t.Context(), "/a go"), belay.EndParked)
	turn := takeTurn(t, agentOf(t, own, opts).Session("s").Resume(t.Context()), belay.EndTurn)
	wantEqual(t, "who answered", turn.Text, "a")
}

// pickyModel is a model that rejects one tool.
type pickyModel struct {
	belay.Model
	refuses string
}

func (m pickyModel) CheckTools(tools []belay.ToolDeclaration) error {
	for _, d := range tools {
		if d.Name == m.refuses {
			return errors.New("tool " + d.Name + ": rename it")
		}
	}
	return nil
}

// SPEC D-04: if a model cannot declare one of the agent's tools, New, AddTools and SetModel
// return an error.
func TestModelsThatRefuseTools(t *testing.T) {
	t.Parallel()
	picky := pickyModel{scripted.New([]scripted.Step{says("hm")}, nil), "long"}
	if _, err := belay.New(picky, &belay.Options{Tools: []belay.Tool{echoTool("long")}}); err == nil || !strings.Contains(err.Error(), "rename it") {
		t.Errorf("new: %v", err)
	}
	agent := agentOf(t, picky, &belay.Options{Tools: []belay.Tool{echoTool("short")}})
	if _, err := agent.AddTools(echoTool("long")); err == nil {
		t.Error("the tool was added")
	}
	long := agentOf(t, scripted.New(nil, nil), &belay.Options{Tools: []belay.Tool{echoTool("long")}})
	if err := long.Session("s").SetModel(t.Context(), picky); err == nil {
		t.Error("the model was set")
	}
}

// SPEC D-04: KeepModel sets the model of later turns, even if UseModel then chooses another
// model for this turn.
func TestModelsAreKeptAsAsked(t *testing.T) {
	t.Parallel()
	a, b := namedScript("test/a", says("a")), namedScript("test/b", says("b"))
	tool := anyTool("swap", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		c := call.Controls()
		return belay.Result{Text: "swapped"}, errors.Join(c.KeepModel(a), c.UseModel(b))
	}, nil)
	agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}, Models: models(a, b)}, calls("swap"))
	s := agent.Session("s")
	wantEqual(t, "this turn", takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn).Text, "b")
	wantEqual(t, "the next one", takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn).Text, "a")
}

// funcModel is a model whose type cannot be compared with ==.
type funcModel func(yield func(belay.Chunk, error) bool)

func (f funcModel) Stream(context.Context, *belay.Request) iter.Seq2[belay.Chunk, error] {
	return iter.Seq2[belay.Chunk, error](f)
}

func TestModelsThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	model := funcModel(func(yield func(belay.Chunk, error) bool) {
		yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text("hello")}, StopReason: belay.StopEnd}}, nil)
	})
	s := agentOf(t, model, nil).Session("s")
	succeeds(t, s.SetModel(t.Context(), model))
	wantEqual(t, "the answer", takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn).Text, "hello")
}

// SPEC D-04: if a directive's reply has the reason parked or aborted, or an unknown reason,
// the turn ends with an error.
func TestRepliesEndTurns(t *testing.T) {
	t.Parallel()
	for reason, sound := range map[belay.EndReason]bool{belay.EndParked: false, belay.EndAborted: false, "nonsense": false, belay.EndError: true} {
		agent, _ := newAgent(t, &belay.Options{Directives: []belay.Directive{directive("end", func(*belay.DirectiveUse) (belay.DirectiveOutcome, error) {
			return belay.DirectiveOutcome{Reply: &belay.Reply{Text: "over", Reason: reason, Why: "because"}}, nil
		})}})
		turn, err := agent.Session("s").Turn(t.Context(), "/end")
		if err == nil || turn.Reason != belay.EndError || strings.Contains(err.Error(), "because") != sound {
			t.Errorf("%s: the turn ended %s: %v", reason, turn.Reason, err)
		}
	}
}
