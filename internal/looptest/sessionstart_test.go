package looptest_test

import (
	"context"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/memstore"
)

// SPEC L-01, L-10: session.start fires once, before the first request, and says how the
// session was opened.
func TestSessionStartSources(t *testing.T) {
	t.Parallel()
	var d logbook
	start := []hook.Subscription{belay.SessionStart.On("start", func(_ context.Context, s belay.SessionOpened) (belay.Aside, error) {
		d.notef("%s: %s with %d messages", s.Session(), s.Source(), s.Messages())
		return belay.Aside{Context: belay.Tell("opened: " + s.Source())}, nil
	}, nil)}
	store := memstore.New(nil)
	opts := func() *belay.Options {
		return &belay.Options{Store: store, Hooks: start, OnAsk: belay.AskPark, Tools: []belay.Tool{echoTool("again")}}
	}
	want := func(entries ...string) {
		t.Helper()
		wantEqual(t, "session.start", d.all(), entries)
		d.entries = nil
	}

	model := scriptOf(says("one"), says("two"))
	agent := agentOf(t, model, opts())
	s := agent.Session("s")
	say(t, s, "a")
	say(t, s, "b")
	want("s: new with 0 messages")
	wantOutline(t, model.Requests()[0].Messages, "user: a", "reminder: opened: new")

	succeeds(t, s.Close(t.Context()))
	model = scriptOf(says("three"), says("four"))
	agent = agentOf(t, model, opts())
	s = agent.Session("s")
	say(t, s, "c")
	want("s: resumed with 5 messages")

	f, err := s.Fork(t.Context(), "f", 3)
	succeeds(t, err)
	say(t, f, "d")
	want("f: forked with 3 messages")
	succeeds(t, f.Close(t.Context()))
	say(t, agentOf(t, scriptOf(says("five")), opts()).Session("f"), "e")
	want("f: resumed with 6 messages")
	succeeds(t, s.Close(t.Context()))

	p := stranded(t, store, belay.Options{Tools: []belay.Tool{echoTool("again")}}, runs(t))
	takeTurn(t, agentOf(t, scriptOf(says("six")), opts()).Session("s").Resume(t.Context()), belay.EndTurn)
	want("s: recovered with 10 messages")
	p.leave()
	<-p.turn
}

// SPEC L-01: if the session has a parked turn, session.start reports it as resumed, not as
// recovered.
func TestSessionStartOfAParkedSession(t *testing.T) {
	t.Parallel()
	var d logbook
	store := memstore.New(nil)
	opts := &belay.Options{
		Store: store, OnAsk: belay.AskPark, Tools: []belay.Tool{echoTool("asked")},
		Hooks: []hook.Subscription{gateOf("gate", belay.Ask("sure?")), belay.SessionStart.On("start", func(_ context.Context, s belay.SessionOpened) (belay.Aside, error) {
			d.notef("%s", s.Source())
			return belay.Aside{}, nil
		}, nil)},
	}
	takeTurn(t, agentOf(t, scriptOf(calls("asked")), opts).Session("s").Run(t.Context(), "a"), belay.EndParked)
	store.Expire("s")
	takeTurn(t, agentOf(t, scriptOf(), opts).Session("s").Resume(t.Context()), belay.EndParked)
	wantEqual(t, "session.start", d.all(), []string{"new", "resumed"})
}
