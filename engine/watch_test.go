package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
)

// Any process can watch a session from any message. No message is skipped or repeated.
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
	go func() { // another watcher reads all messages without a break
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
			t.Fatalf("got message %d, want %d", seq, i+1)
		}
	}
}

// watch watches a session until a number of turns have ended. It begins after the second
// message, and calls Watch again after each message.
func watch(t testing.TB, s belay.TurnStore, session string, turns int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	after := int64(2)
	for after < int64(2*turns+2) { // stop after each message and call Watch again
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

// Watch yields an error for a session that does not exist. If the context has already
// ended, Watch yields nothing.
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

// changing is a store that reports the changes that the test defines. It has no messages.
type changing struct {
	belay.TurnStore
	changes iter.Seq2[belay.SessionInfo, error]
}

func (s changing) Changes(context.Context, string) iter.Seq2[belay.SessionInfo, error] {
	return s.changes
}

func (s changing) Read(context.Context, string, int64) iter.Seq2[*belay.Message, error] {
	return func(func(*belay.Message, error) bool) {}
}

// inTurn returns a session with the given number of turns. turn is nil between turns.
func inTurn(turns int, turn *belay.TurnState) belay.SessionInfo {
	return belay.SessionInfo{ID: "a", State: belay.SessionState{Turns: turns, Turn: turn}}
}

// Watch yields a state only if the state differs from the last yielded state.
func TestWatchTellsStatesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		under, parked := inTurn(1, &belay.TurnState{ID: "1"}), inTurn(1, &belay.TurnState{ID: "1", Parked: true})
		ended := inTurn(1, nil)
		ended.State.Last = belay.EndTurn
		blocked := inTurn(2, nil)
		blocked.State.Last = belay.EndBlocked
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		away := 0
		store := changing{changes: func(yield func(belay.SessionInfo, error) bool) {
			for _, info := range []belay.SessionInfo{under, under, parked, parked, under, ended, ended, inTurn(2, &belay.TurnState{ID: "2"}), blocked} {
				if away > 0 { // after a failure, report the current state
					info = blocked
				}
				if !yield(info, nil) {
					return
				}
			}
			if away++; away > 2 {
				cancel()
				return
			}
			yield(belay.SessionInfo{}, errAway)
		}}
		var got []string
		for update, err := range engine.Watch(ctx, store, "a", 0) {
			if err != nil {
				t.Fatal(err)
			}
			state := "ended " + string(update.Info.State.Last)
			if turn := update.Info.State.Turn; turn != nil {
				state = fmt.Sprintf("turn %s, parked %t", turn.ID, turn.Parked)
			}
			got = append(got, state)
		}
		all := []string{"turn 1, parked false", "turn 1, parked true", "turn 1, parked false", "ended end_turn", "turn 2, parked false", "ended blocked"}
		if !slices.Equal(got, all) {
			t.Errorf("the states that were told are\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(all, "\n  "))
		}
	})
}

// If the store is unreachable, Watch retries for a while. Then it returns the error.
func TestWatchIsPatient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		const returns = 5
		back, last := 0, time.Now()
		store := changing{changes: func(yield func(belay.SessionInfo, error) bool) {
			if time.Since(last) > 20*time.Second && back < returns {
				back++
				last = time.Now()
				if !yield(inTurn(back, nil), nil) {
					return
				}
			}
			yield(belay.SessionInfo{}, errAway)
		}}
		seen, failed := 0, false
		for update, err := range engine.Watch(ctx, store, "a", 7) {
			if err == nil {
				seen = update.Info.State.Turns
				continue
			}
			failed = true
			if !errors.Is(err, errAway) || !strings.Contains(err.Error(), `session "a" from message 7`) {
				t.Errorf("watching fails with %v", err)
			}
		}
		if seen != returns || !failed || ctx.Err() != nil {
			t.Errorf("the store was seen to be back %d times, and that it is away was told: %t, want %d times, and that it is told", seen, failed, returns)
		}
	})
}

// readingAhead is a store whose sequences ignore their context.
type readingAhead struct{ belay.TurnStore }

func (readingAhead) Changes(context.Context, string) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		for i := range 50 {
			if !yield(inTurn(i, nil), nil) {
				return
			}
		}
	}
}

func (readingAhead) Read(_ context.Context, _ string, after int64) iter.Seq2[*belay.Message, error] {
	return func(yield func(*belay.Message, error) bool) {
		for seq := after + 1; seq <= after+50; seq++ {
			if !yield(&belay.Message{Seq: seq}, nil) {
				return
			}
		}
	}
}

// If its context is cancelled, Watch ends after the current update, even if the store has
// already read more.
//
// SPEC L-03
func TestCancelledWatchEndsWithItsCurrentUpdate(t *testing.T) {
	t.Parallel()
	for cancelled, what := range map[int]string{1: "a message", 50: "the last message before a state", 51: "a state"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				seen := 0
				for _, err := range engine.Watch(ctx, readingAhead{}, "a", 0) {
					if err != nil {
						t.Fatal(err)
					}
					if seen++; seen == cancelled {
						cancel()
					}
					time.Sleep(200 * time.Millisecond)
				}
				if seen != cancelled {
					t.Errorf("it was cancelled in update %d, and got %d", cancelled, seen)
				}
			})
		})
	}
}
