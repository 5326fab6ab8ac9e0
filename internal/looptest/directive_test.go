package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// directive makes a directive from a function.
func directive(name string, run func(use *belay.DirectiveUse) (belay.DirectiveOutcome, error)) belay.Directive {
	return belay.Directive{Name: name, Run: func(_ context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) { return run(use) }}
}

// noted returns a directive that records its use and does not change the message.
func noted(d *diary, name string) belay.Directive {
	return directive(name, func(use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
		d.notef("%s: %s | %s | %s", use.Name, use.Typed, use.Text, use.Rest)
		return belay.DirectiveOutcome{}, nil
	})
}

// names is an extension that handles typed names, as skills do.
type names struct {
	known []string
	diary *diary
}

func (names) Name() string { return "names" }

func (n names) Binds(_, name string) bool {
	return slices.Contains(n.known, name)
}

func (n names) TypedNames(string) []belay.TypedName { return nil }

func (n names) Expand(_ context.Context, in belay.Submission) (belay.Expansion, error) {
	for _, name := range in.Names {
		n.diary.notef("skill %s: %s | %s", name, in.Typed, in.Text)
	}
	return belay.Expansion{}, nil
}

var (
	_ belay.NameExtension     = names{}
	_ belay.StepToolExtension = (*shifting)(nil)
)

// lastUser returns the last stored message of the user.
func lastUser(t *testing.T, s *belay.Session) *belay.Message {
	t.Helper()
	var last *belay.Message
	for _, m := range transcript(t, s) {
		if m.Kind == belay.KindUser {
			last = m
		}
	}
	return last
}

// SPEC D-02, D-03, D-04, D-06
func TestDirectivesRunBeforeSkills(t *testing.T) {
	t.Parallel()
	var d diary
	agent, model := newAgent(t, &belay.Options{
		Directives: []belay.Directive{noted(&d, "b"), noted(&d, "a"), noted(&d, "both")},
		Extensions: []belay.Extension{names{known: []string{"s", "both"}, diary: &d}},
		Hooks: []hook.Subscription{belay.UserPromptSubmit.On("first", func(_ context.Context, p belay.UserPrompt) (belay.PromptVerdict, error) {
			d.notef("hook: %s", p.Text())
			return belay.RewritePrompt(p.Text() + " /a"), nil
		}, &hook.Options{Capabilities: hook.CanRewritePrompt})},
	})
	s := agent.Session("s")
	takeTurn(t, s.Run(t.Context(), "/s x /b y /unknown /both /A"), belay.EndTurn)
	typed := "/s x /b y /unknown /both /A /a"
	text := "[invoked_extension__skill_s] x [invoked_extension__hook_b] y /unknown [invoked_extension__hook_both] /A [invoked_extension__hook_a]"
	wantEqual(t, "what ran", d.all(), []string{
		"hook: /s x /b y /unknown /both /A",
		"b: " + typed + " | " + text + " | y /unknown /both /A /a",
		"both: " + typed + " | " + text + " | /A /a",
		"a: " + typed + " | " + text + " | ",
		"skill s: " + typed + " | " + text,
	})
	stored := lastUser(t, s)
	wantEqual(t, "the stored text", stored.Text(), text)
	if stored.PreModifiedText == nil || *stored.PreModifiedText != "/s x /b y /unknown /both /A" {
		t.Errorf("what the user typed is kept as %v", stored.PreModifiedText)
	}
	wantEqual(t, "what the model was sent", model.Requests()[0].Messages[0].Text(), text)
}

// SPEC D-02: a directive runs once for each occurrence. Its placeholder in the stored text
// does not run it again.
func TestDirectivesFireOnceForEachOccurrence(t *testing.T) {
	t.Parallel()
	var d diary
	agent, _ := newAgent(t, &belay.Options{Directives: []belay.Directive{noted(&d, "a")}}, says("one"))
	s := agent.Session("s")
	takeTurn(t, s.Run(t.Context(), "/a\n/a /ab x/a"), belay.EndTurn)
	if len(d.all()) != 2 {
		t.Fatalf("it ran %d times: %v", len(d.all()), d.all())
	}
	takeTurn(t, s.Run(t.Context(), lastUser(t, s).Text()), belay.EndTurn)
	if len(d.all()) != 2 {
		t.Errorf("a placeholder made it run: %v", d.all())
	}
}

// SPEC D-04, D-06
func TestDirectivesRewrite(t *testing.T) {
	t.Parallel()
	var d diary
	to := func(name, text string) belay.Directive {
		return directive(name, func(*belay.DirectiveUse) (belay.DirectiveOutcome, error) {
			return belay.DirectiveOutcome{Text: &text}, nil
		})
	}
	agent, model := newAgent(t, &belay.Options{
		Directives: []belay.Directive{to("once", "/a again"), to("empty", ""), noted(&d, "a")},
		Extensions: []belay.Extension{names{known: []string{"s"}, diary: &d}},
	}, says("one"))
	s := agent.Session("s")
	takeTurn(t, s.Run(t.Context(), "/once /a /s"), belay.EndTurn)
	wantEqual(t, "what ran", d.all(), []string{
		"a: /once /a /s | /a again | /s", // the text that a directive returns is not scanned again
		"skill s: /once /a /s | /a again",
	})
	wantEqual(t, "the stored text", lastUser(t, s).Text(), "/a again")
	wantEqual(t, "what the user typed", *lastUser(t, s).PreModifiedText, "/once /a /s")

	takeTurn(t, s.Run(t.Context(), "/empty hello"), belay.EndTurn)
	sent := model.Requests()[1].Messages
	if text := sent[len(sent)-1].Text(); strings.Contains(text, "hello") {
		t.Errorf("the model was sent %q, which was rewritten to nothing", text)
	}
}

// SPEC D-04: on a short circuit, the message and the answer are stored, later directives
// and skills do not run, and the model is not called.
func TestDirectivesShortCircuit(t *testing.T) {
	t.Parallel()
	var d diary
	agent, model := newAgent(t, &belay.Options{
		Directives: []belay.Directive{noted(&d, "a"), directive("stop", func(*belay.DirectiveUse) (belay.DirectiveOutcome, error) {
			return belay.DirectiveOutcome{Reply: &belay.Reply{Text: "Enough.", Reason: belay.EndBlocked, Why: "as you say", Usage: belay.Usage{Out: 7, Cost: 0.5}}}, nil
		})},
		Extensions: []belay.Extension{names{known: []string{"s"}, diary: &d}},
	})
	s := agent.Session("s")
	turn := takeTurn(t, s.Run(t.Context(), "/stop /a /s"), belay.EndBlocked)
	if len(d.all()) != 0 || len(model.Requests()) != 0 {
		t.Errorf("%v ran, and the model was asked %d times", d.all(), len(model.Requests()))
	}
	if turn.Text != "Enough." || turn.Why != "as you say" || turn.By != "/stop" || turn.Usage.Out != 7 || s.Usage().Cost != 0.5 {
		t.Errorf("the turn is %+v, the session took %+v", turn.Turn, s.Usage())
	}
	var stored []string
	for _, m := range transcript(t, s) {
		stored = append(stored, string(m.Kind)+": "+m.Text())
	}
	wantEqual(t, "the transcript", stored, []string{
		"user: [invoked_extension__hook_stop] [invoked_extension__hook_a] [invoked_extension__skill_s]", "assistant: Enough.",
	})
}

// SPEC D-05
func TestDirectivesThatFail(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() (belay.DirectiveOutcome, error){
		"an error": func() (belay.DirectiveOutcome, error) { return belay.DirectiveOutcome{}, errors.New("no paper") },
		"a panic":  func() (belay.DirectiveOutcome, error) { panic("no paper") },
		"text not in UTF-8": func() (belay.DirectiveOutcome, error) {
			bad := "\xff no paper"
			return belay.DirectiveOutcome{Text: &bad}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d diary
			agent, model := newAgent(t, &belay.Options{
				Directives: []belay.Directive{noted(&d, "a"), noted(&d, "late"), directive("print", func(*belay.DirectiveUse) (belay.DirectiveOutcome, error) { return fail() })},
			})
			s := agent.Session("s")
			turn, err := s.Turn(t.Context(), "/a /print /late")
			if err == nil || turn.Reason != belay.EndError {
				t.Fatalf("the turn ended %s: %v", turn.Reason, err)
			}
			for _, part := range []string{"/print", "/a"} { // /print failed, and /a ran before, so its effects remain
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not name %s: %v", part, err)
				}
			}
			if len(transcript(t, s)) != 0 || len(model.Requests()) != 0 || len(d.all()) != 1 {
				t.Errorf("stored %d messages, asked the model %d times, ran %v", len(transcript(t, s)), len(model.Requests()), d.all())
			}
			takeTurn(t, s.Run(t.Context(), "go on"), belay.EndTurn)
		})
	}
}

// SPEC D-07
func TestDirectivesInMessagesOfManyParts(t *testing.T) {
	t.Parallel()
	var d diary
	agent, model := newAgent(t, &belay.Options{
		Directives: []belay.Directive{noted(&d, "a")},
		Hooks: []hook.Subscription{belay.UserPromptSubmit.On("see", func(_ context.Context, p belay.UserPrompt) (belay.PromptVerdict, error) {
			d.notef("hook: %q", p.Text())
			return belay.PromptVerdict{}, nil
		}, nil)},
	})
	s := agent.Session("s")
	image := belay.Part{Type: belay.PartMedia, Media: &belay.Media{MIME: "image/png", Data: []byte("png")}}
	takeTurn(t, s.Run(t.Context(), "look", image, belay.Text("/a"), belay.Text("end")), belay.EndTurn)
	wantEqual(t, "what ran", d.all(), []string{`hook: "look\n/a\nend"`, "a: look\n/a\nend | look\n[invoked_extension__hook_a]\nend | end"})
	sent := model.Requests()[0].Messages[0].Parts
	if len(sent) != 2 || sent[0].Text != "look\n[invoked_extension__hook_a]\nend" || sent[1].Media == nil {
		t.Errorf("the model was sent %+v", sent)
	}
}

// SPEC D-08
func TestDirectivesAreTold(t *testing.T) {
	t.Parallel()
	var d diary
	agent, _ := newAgent(t, &belay.Options{Directives: []belay.Directive{directive("a", func(use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
		d.notef("ran")
		return belay.DirectiveOutcome{}, use.Controls.Emit(belay.Event{Kind: belay.EventSkillInvoked, Text: "mine", Invoked: &belay.InvokedEvent{Name: "mine", Source: belay.SourceAgent, Args: "x"}})
	})}})
	var order []string
	for event, err := range agent.Session("s").Run(t.Context(), "/a") {
		if err != nil {
			t.Fatal(err)
		}
		if event.Invoked != nil {
			order = append(order, fmt.Sprintf("%s %s %s %s%v", event.Kind, event.Invoked.Name, event.Invoked.Source, event.Invoked.Args, d.all()))
		}
	}
	wantEqual(t, "the events", order, []string{"hook_invoked a user []", "skill_invoked mine agent x[ran]"})
}

// SPEC D-09
func TestDirectivesComeAndGo(t *testing.T) {
	t.Parallel()
	var d diary
	agent, _ := newAgent(t, &belay.Options{Directives: []belay.Directive{noted(&d, "a")}}, says("one"), says("two"))
	s := agent.Session("s")
	lease, err := agent.Define(noted(&d, "b"))
	if err != nil {
		t.Fatal(err)
	}
	takeTurn(t, s.Run(t.Context(), "/b"), belay.EndTurn)
	succeeds(t, lease.Close())
	succeeds(t, lease.Close())
	takeTurn(t, s.Run(t.Context(), "/b"), belay.EndTurn)
	wantEqual(t, "what ran", len(d.all()), 1)
	wantEqual(t, "the text without it", lastUser(t, s).Text(), "/b")

	var listed []string
	for _, known := range agent.Directives() {
		listed = append(listed, known.Name)
	}
	wantEqual(t, "the directives", listed, []string{"a"})

	for _, test := range []struct {
		name string
		add  []belay.Directive
		want string
	}{
		{"a name that the agent has", []belay.Directive{noted(&d, "c"), noted(&d, "a")}, `"a"`},
		{"a name twice", []belay.Directive{noted(&d, "c"), noted(&d, "c")}, `"c"`},
		{"a name that nobody can type", []belay.Directive{noted(&d, "c"), noted(&d, "two words")}, `"two words"`},
		{"nothing to run", []belay.Directive{noted(&d, "c"), {Name: "idle"}}, `"idle"`},
	} {
		if _, err := agent.Define(test.add...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if n := len(agent.Directives()); n != 1 {
		t.Errorf("what was refused left %d directives behind", n-1)
	}
	if _, err := belay.New(scripted.New(nil, nil), &belay.Options{Directives: []belay.Directive{noted(&d, "9")}}); err == nil {
		t.Error("an agent was made with a directive that nobody can type")
	}
}

// SPEC D-04
func TestDirectivesAlone(t *testing.T) {
	t.Parallel()
	for text, alone := range map[string]bool{
		"/a": true, " /a\n": true, "/a /b": false, "/b /a": true, "/s /a": false, "/a x": false, "/a /unknown": false, "/a [invoked_extension__hook_]": false, "/a [invoked_extension__x_y]": false,
	} {
		var got []bool
		agent, _ := newAgent(t, &belay.Options{
			Directives: []belay.Directive{directive("a", func(use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
				got = append(got, use.Alone())
				return belay.DirectiveOutcome{}, nil
			}), noted(new(diary), "b")},
			Extensions: []belay.Extension{names{known: []string{"s"}, diary: new(diary)}},
		})
		takeTurn(t, agent.Session("s").Run(t.Context(), text), belay.EndTurn)
		if got[0] != alone {
			t.Errorf("%q: alone is %t", text, got[0])
		}
	}
}
