package toolbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/toolbox"
)

// SPEC D-04
func TestDirectives(t *testing.T) {
	t.Parallel()
	other := scripted.New([]scripted.Step{{Text: "other"}}, &scripted.Options{Name: "test/other", Repeat: true})
	find := func(_ context.Context, name string) (belay.Model, error) {
		if name != "test/other" {
			return nil, errors.New("nobody has heard of it")
		}
		return other, nil
	}
	for _, test := range []struct {
		rule  string
		said  []string
		want  []string // the answer to each message
		asked int      // how often the agent's own model was called, for answers and summaries
	}{
		{"help lists all of them", []string{"/help"}, []string{"/compact: summarize the conversation to free space\n/help: "}, 0},
		{"stop ends the turn", []string{"/stop never mind"}, []string{"Stopped"}, 0},
		{"a name in the middle is a word", []string{"explain /stop and /help", "what does the /model endpoint do?", "and /compact?"}, []string{"own", "own", "own"}, 3},
		{"compact has nothing to do yet", []string{"/compact"}, []string{"nothing to summarize"}, 0},
		{"compact in front of a first message", []string{"/compact hello"}, []string{"own"}, 1},
		{"compact alone is answered", []string{"hello", "/compact"}, []string{"own", "summarized"}, 2},
		{"compact in front of a message", []string{"hello", "/compact go on"}, []string{"own", "own"}, 3},
		{"model without a name tells", []string{"/model"}, []string{"test/own"}, 0},
		{"model swaps", []string{"hello", "/model test/other", "hello"}, []string{"own", "The model is test/other from now on.", "other"}, 1},
		{"model in front of a message", []string{"/model test/other hello"}, []string{"other"}, 0},
		{"model and compact", []string{"hello", "/model\ntest/other /compact"}, []string{"own", "summarized"}, 1},
		{"model and back", []string{"/model test/other", "/model test/own", "hello"}, []string{"other from now on", "own from now on", "own"}, 1},
		{"a dash is the agent's own", []string{"/model test/other", "/model -", "hello"}, []string{"test/other from now on", "The model is test/own from now on.", "own"}, 1},
		{"a dash in front of a message", []string{"/model test/other", "/model - hello"}, []string{"other from now on", "own"}, 1},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			own := scripted.New([]scripted.Step{{Text: "own"}}, &scripted.Options{Name: "test/own", Repeat: true})
			agent, err := belay.New(own, &belay.Options{Directives: toolbox.Directives(), Models: find})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = agent.Close(t.Context()) }()
			for i, text := range test.said {
				turn, err := agent.Session("s").Turn(t.Context(), text)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(turn.Text, test.want[i]) {
					t.Errorf("%q is answered %q, want %q in it", text, turn.Text, test.want[i])
				}
			}
			if n := len(own.Requests()); n != test.asked {
				t.Errorf("the model was asked %d times, want %d", n, test.asked)
			}
		})
	}
}

// SPEC D-04, D-05
func TestDirectiveOfAModelThatIsNotThere(t *testing.T) {
	t.Parallel()
	agent, err := belay.New(scripted.New(nil, nil), &belay.Options{Directives: toolbox.Directives()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Close(t.Context()) }()
	_, err = agent.Session("s").Turn(t.Context(), "/model test/none hello")
	if err == nil || !strings.Contains(err.Error(), "/model") || !strings.Contains(err.Error(), "test/none") {
		t.Errorf("the error is %v", err)
	}
}

// farModel is a model that cannot be reached.
type farModel struct{ belay.Model }

func (farModel) Reach(context.Context) error { return errors.New("nobody answers") }

// A model that cannot be reached is not kept, because every later turn would fail.
//
// SPEC D-04
func TestDirectiveOfAModelThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	own := scripted.New([]scripted.Step{{Text: "own"}}, &scripted.Options{Name: "test/own", Repeat: true})
	agent, err := belay.New(own, &belay.Options{Directives: toolbox.Directives(), Models: func(context.Context, string) (belay.Model, error) {
		return farModel{scripted.New(nil, nil)}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Close(t.Context()) }()
	_, err = agent.Session("s").Turn(t.Context(), "/model test/far")
	if err == nil || !strings.Contains(err.Error(), `model "test/far": nobody answers`) {
		t.Errorf("the error is %v", err)
	}
	if turn, err := agent.Session("s").Turn(t.Context(), "hello"); err != nil || turn.Text != "own" {
		t.Errorf("then %v, %v answers", turn, err)
	}
}

// A command of the user passes the floor like a call of the model, its output is the answer, and
// the model sees both in the next turn.
//
// SPEC U-02
func TestCommandOfTheUser(t *testing.T) {
	t.Parallel()
	model := scripted.New([]scripted.Step{{Text: "own"}}, &scripted.Options{Name: "test/own", Repeat: true})
	k := newKit(t, nil)
	k.put("kept.txt", "kept")
	agent, err := belay.New(model, &belay.Options{
		Directives: toolbox.Directives(), Extensions: []belay.Extension{toolbox.New(openRoot(t, k.dir), nil)},
		Authorizer: authorizerFunc(func(_ context.Context, call belay.ToolCall) (belay.Authorization, error) {
			if strings.Contains(string(call.Input()), "rm ") {
				return belay.Authorization{Decision: belay.ToolDeny, Reason: "nothing is removed here"}, nil
			}
			return belay.Authorization{Decision: belay.ToolPass}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Close(t.Context()) }()
	for _, test := range []struct{ said, want string }{
		{"/sh printf 'hi %s' there", "hi there"},
		{"/sh printf '```'", "````"},
		{"/sh rm kept.txt", "nothing is removed here"},
		{"/sh", "To run a command: /sh COMMAND"},
	} {
		turn, err := agent.Session("s").Turn(t.Context(), test.said)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(turn.Text, test.want) {
			t.Errorf("%q is answered %q, want %q in it", test.said, turn.Text, test.want)
		}
	}
	if k.content("kept.txt") != "kept" {
		t.Error("a denied command ran")
	}
	if n := len(model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	if _, err := agent.Session("s").Turn(t.Context(), "and now?"); err != nil {
		t.Fatal(err)
	}
	seen := ""
	for _, m := range model.Requests()[0].Messages {
		seen += m.Text() + "\n"
	}
	for _, want := range []string{"printf 'hi %s' there", "hi there", "nothing is removed here", "and now?"} {
		if !strings.Contains(seen, want) {
			t.Errorf("the model does not see %q in:\n%s", want, seen)
		}
	}
}
