package looptest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// steering makes an agent whose tool "work" sends messages to the running turn, and returns when
// they wait for the next step. refused gets the error of each message. It must run in a bubble of
// package synctest.
func steering(t *testing.T, texts []string, hooks []hook.Subscription, steps ...scripted.Step) (*belay.Agent, chan error) {
	t.Helper()
	refused := make(chan error, len(texts))
	var agent *belay.Agent
	work := anyTool("work", func(_ context.Context, _ *belay.Invocation) (belay.Result, error) {
		for _, text := range texts {
			go func() { refused <- agent.Session("s").Steer(t.Context(), text) }()
		}
		synctest.Wait()
		return belay.Result{Text: "worked"}, nil
	}, nil)
	agent, _ = newAgent(t, &belay.Options{Tools: []belay.Tool{work}, Hooks: hooks}, steps...)
	return agent, refused
}

// A message for a running turn reaches the model at a later step, and is stored in its place.
//
// SPEC U-02
func TestSteer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testSteer)
}

func testSteer(t *testing.T) {
	agent, refused := steering(t, []string{"not there"}, nil, calls("work"), says("as you say"))
	s := agent.Session("s")
	var steered []string
	for e, err := range s.Run(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == belay.EventSteered {
			steered = append(steered, e.Text)
		}
	}
	if err := <-refused; err != nil {
		t.Error(err)
	}
	var kinds []string
	for m, err := range s.Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind == belay.KindUser {
			kinds = append(kinds, m.Text())
		}
	}
	if strings.Join(kinds, "|") != "go|not there" || strings.Join(steered, "|") != "not there" {
		t.Errorf("the user's messages are %q, the events say %q", kinds, steered)
	}
}

// A hook of user.prompt.submit can block a message for a running turn. The turn goes on.
//
// SPEC U-02
func TestSteerIsChecked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testSteerIsChecked)
}

func testSteerIsChecked(t *testing.T) {
	gate := belay.UserPromptSubmit.On("gate", func(_ context.Context, p belay.UserPrompt) (belay.PromptVerdict, error) {
		if strings.Contains(p.Text(), "secret") {
			return belay.DenyPrompt("no secrets"), nil
		}
		return belay.PromptVerdict{}, nil
	}, nil)
	agent, refused := steering(t, []string{"a secret"}, []hook.Subscription{gate}, calls("work"), says("done"))
	takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	if err := <-refused; err == nil || !strings.Contains(err.Error(), "gate blocked the message: no secrets") {
		t.Errorf("the error is %v", err)
	}
}

// Without a running turn nothing is stored.
//
// SPEC U-02
func TestSteerWithoutTurn(t *testing.T) {
	t.Parallel()
	agent, _ := newAgent(t, nil, says("done"))
	s := agent.Session("s")
	if err := s.Steer(t.Context(), "hello"); !errors.Is(err, belay.ErrNotSteered) {
		t.Errorf("before the first turn: %v", err)
	}
	takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn)
	if err := s.Steer(t.Context(), "hello"); !errors.Is(err, belay.ErrNotSteered) {
		t.Errorf("after the turn: %v", err)
	}
	if err := s.Steer(t.Context(), " "); err == nil || errors.Is(err, belay.ErrNotSteered) {
		t.Errorf("an empty message: %v", err)
	}
}
