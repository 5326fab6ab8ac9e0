package chat

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// inquiry asks a question that needs text as its answer.
func (b *bench) inquiry(id, text string) chan belay.Decision {
	b.t.Helper()
	reply := make(chan belay.Decision, 1)
	b.send(askMsg{belay.Question{Approval: belay.Approval{ID: id, Reason: text}}, Advice{words: true}, reply})
	return reply
}

// SPEC E-07
func TestInquiryAnswers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		keys []string
		want *belay.Decision
	}{
		{"what is typed is the answer", []string{"on Thursday", "enter"}, &belay.Decision{Allow: true, Reason: "on Thursday"}},
		{"y is a letter", []string{"y"}, nil},
		{"y can be the answer", []string{"y", "enter"}, &belay.Decision{Allow: true, Reason: "y"}},
		{"nothing is no answer", []string{" ", "enter"}, &belay.Decision{}},
		{"esc gives none, whatever was typed", []string{"on", "esc"}, &belay.Decision{}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			b := begun(t)
			b.keys("draft")
			b.wait(time.Second)
			reply := b.inquiry("1", "Where to?\n  1. staging\n  2. production")
			shows(t, "the view", b.view(), "The agent asks", "  Where to?", "1. staging", "2. production", "type your answer")
			hides(t, "the view", b.view(), "May ", "allow once")
			b.keys(test.keys...)
			if test.want == nil {
				undecided(t, reply)
				return
			}
			if got := decision(t, reply); got.Allow != test.want.Allow || got.Reason != test.want.Reason {
				t.Errorf("answered %+v, want %+v", got, test.want)
			}
			if text := b.m.editor.text(); text != "draft" {
				t.Errorf("the editor holds %q, want what was being typed", text)
			}
		})
	}
}

// Questions about calls and questions for text are asked one after another. A withdrawn
// question leaves no typed text behind.
func TestInquiriesWaitTheirTurn(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.wait(time.Second)
	first, call, last := b.inquiry("1", "When?"), b.question("2", "shell", `{"command":"rm -rf build"}`), b.inquiry("3", "Where?")
	shows(t, "the view", b.view(), "The agent asks (1 of 3)", "When?")
	b.keys("soon")
	b.send(withdrawMsg{"1"})
	undecided(t, first)
	b.wait(quiet)
	shows(t, "the view", b.view(), "Allow shell to run? (1 of 2)")
	b.keys("y")
	if !decision(t, call).Allow {
		t.Error("the call was not allowed")
	}
	b.wait(quiet)
	b.keys("here", "enter")
	if got := decision(t, last).Reason; got != "here" {
		t.Errorf("the answer is %q", got)
	}
}

// A question that is too long for the view is printed in full.
func TestInquiryIsShownWhole(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.wait(time.Second)
	b.inquiry("1", strings.Repeat("a line\n", 60)+"the last line")
	shows(t, "the screen", b.screen(), "the whole question:", "the last line", "more")
}

// atDesk answers questions in place of a person.
type atDesk func(belay.Question, Advice) (belay.Decision, error)

func (f atDesk) ask(_ context.Context, q belay.Question, a Advice) (belay.Decision, error) {
	return f(q, a)
}

func (atDesk) note(string) {}

func TestChatAsks(t *testing.T) {
	t.Parallel()
	c := New(nil)
	in := belay.Inquiry{Session: "s", Turn: "1", Agent: "main", Text: "When?"}
	if _, err := c.Ask(t.Context(), in); err == nil {
		t.Error("with nobody at the terminal there is an answer")
	}
	var ids []string
	c.at(atDesk(func(q belay.Question, a Advice) (belay.Decision, error) {
		ids = append(ids, q.ID)
		if q.Reason != "When?" || !a.words {
			t.Errorf("asked %+v, %+v", q, a)
		}
		return belay.Decision{Allow: true, Reason: "soon"}, nil
	}))
	for range 2 {
		if said, err := c.Ask(t.Context(), in); err != nil || said != "soon" {
			t.Errorf("the answer is %q, %v", said, err)
		}
	}
	if len(ids) != 2 || ids[0] == ids[1] {
		t.Errorf("two questions have the ids %q", ids)
	}
	c.at(atDesk(func(belay.Question, Advice) (belay.Decision, error) { return belay.Decision{}, errors.New("gone") }))
	if _, err := c.Ask(t.Context(), in); err == nil {
		t.Error("an error is an answer")
	}
}
