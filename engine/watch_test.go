package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
)

// A session is watched from any process, from any message on: none is left out and none
// comes twice.
//
// SPEC L-03
func TestWatch(t *testing.T) {
	t.Parallel()
	s := openFile(t, "")
	watchers := openFile(t, s.Path())
	agent := newAgent(t, model{}, belay.Options{Store: s})
	if _, err := agent.Session("a").Turn(t.Context(), "zero"); err != nil {
		t.Fatal(err)
	}
	if err := agent.Session("a").Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	const turns = 5
	start(t, s, engine.Of(agent), engine.Options{})
	for i := range turns {
		submit(t, s, "main", "a", fmt.Sprint(i))
	}
	whole := make(chan []int64, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { // another one stays
		var seen []int64
		for update, err := range engine.Watch(ctx, watchers, "a", 0) {
			if err != nil {
				break
			}
			if update.Message != nil {
				seen = append(seen, update.Message.Seq)
			}
			if len(seen) == 2*turns+2 {
				break
			}
		}
		whole <- seen
	}()
	watch(t, watchers, "a", turns)
	for i, seq := range <-whole {
		if seq != int64(i)+1 {
			t.Fatalf("message %d comes where %d is the next", seq, i+1)
		}
	}
}

// watch watches a session until so many turns have ended after the first, in pieces,
// beginning behind the second message.
func watch(t testing.TB, s belay.TurnStore, session string, turns int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	after := int64(2)
	for after < int64(2*turns+2) { // it is left after each message, and called again
		before := after
		for update, err := range engine.Watch(ctx, s, session, after) {
			if err != nil {
				t.Fatal(err)
			}
			if update.Message == nil {
				continue
			}
			if update.Message.Seq != after+1 {
				t.Fatalf("message %d comes after %d", update.Message.Seq, after)
			}
			after++
			break
		}
		if ctx.Err() != nil || after == before {
			t.Fatalf("watching ended after message %d", after)
		}
	}
	for update, err := range engine.Watch(ctx, s, session, after) {
		if err != nil {
			t.Fatal(err)
		}
		if update.Message != nil {
			t.Fatalf("message %d comes after the last", update.Message.Seq)
		}
		if update.Info.State.Turn == nil && update.Info.State.Turns == turns+1 {
			return
		}
	}
	t.Error("the end of the last turn was not told")
}

// A session that is not there is not watched, and a watcher whose context ends is told
// nothing.
func TestWatchNothing(t *testing.T) {
	t.Parallel()
	s := openFile(t, "")
	for _, err := range engine.Watch(t.Context(), s, "nowhere", 0) {
		if !errors.Is(err, belay.ErrNotFound) {
			t.Errorf("watching a session that is not there: %v", err)
		}
	}
	submit(t, s, "main", "a", "hello")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range engine.Watch(ctx, s, "a", 0) {
		if err != nil {
			t.Errorf("a context that ends is told as %v", err)
		}
		cancel()
	}
}
