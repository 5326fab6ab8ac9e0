package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// wordy returns a model that always answers with many words.
func wordy() *scripted.Model {
	return scripted.New([]scripted.Step{says("one two three four five six seven eight nine ten")}, &scripted.Options{Repeat: true})
}

// watched holds the events that a watcher got, and the number of missed events before
// each of them.
type watched struct {
	events []belay.Event
	missed []int // by index in events
}

// watch reads the events of a watcher until its context ends.
func watch(t testing.TB, events iter.Seq2[belay.Event, error]) watched {
	t.Helper()
	var w watched
	missed := 0
	for event, err := range events {
		if err != nil {
			m, ok := errors.AsType[*belay.MissedError](err)
			if !ok || m.Missed < 1 || m.Error() == "" {
				t.Fatalf("the watcher got %v", err)
			}
			missed += m.Missed
			continue
		}
		w.events, w.missed = append(w.events, event), append(w.missed, missed)
		missed = 0
	}
	return w
}

// wantSequence asserts that the numbers of the events have no gaps except for events that
// were reported as missed.
func (w watched) wantSequence(t testing.TB) {
	t.Helper()
	var before uint64
	for i, e := range w.events {
		if e.Seq != before+uint64(w.missed[i])+1 {
			t.Fatalf("event %d (%s) follows on event %d, and %d are said to be missing", e.Seq, e.Kind, before, w.missed[i])
		}
		before = e.Seq
	}
}

// SPEC L-03.
func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		agent := agentOf(t, wordy(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		all := agent.Watch(ctx, nil)
		one := agent.Watch(ctx, &belay.WatchOptions{Session: "b"})
		seenAll, seenOne := make(chan watched, 1), make(chan watched, 1)
		go func() { seenAll <- watch(t, all) }()
		go func() { seenOne <- watch(t, one) }()
		streamed := takeTurn(t, agent.Session("a").Run(t.Context(), "hello"), belay.EndTurn).events
		say(t, agent.Session("b"), "hello")
		say(t, agent.Session("b"), "again")
		synctest.Wait()
		cancel() // the watchers then end without an error
		w, b := <-seenAll, <-seenOne
		n := len(streamed)
		if diff := cmp.Diff(streamed, w.events[:n], plainMessages, cmp.AllowUnexported(belay.Turn{}), cmpopts.IgnoreUnexported(belay.Event{})); diff != "" {
			t.Errorf("the watcher sees something else than the stream:\n%s", diff)
		}
		watched{streamed, w.missed[:n]}.wantSequence(t)
		b.wantSequence(t)
		wantEqual(t, "the events of one session", kindsOf(b.events), kindsOf(w.events[n:]))
		for _, e := range b.events {
			if e.Session != "b" {
				t.Errorf("the watcher of b sees an event of %q", e.Session)
			}
		}
		ends := 0
		for _, e := range b.events {
			if e.Kind == belay.EventTurnEnd {
				ends++
			}
		}
		if ends != 2 || len(b.events) < n {
			t.Errorf("%d events with %d ends were seen of b", len(b.events), ends)
		}
	})
}

// SPEC L-03.
func TestSlowWatcher(t *testing.T) {
	t.Parallel()
	for _, buffer := range []int{1, 3, 7} {
		t.Run(fmt.Sprintf("with room for %d", buffer), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				agent := agentOf(t, wordy(), nil)
				s := agent.Session("s")
				ctx, cancel := context.WithCancel(t.Context())
				opts := &belay.WatchOptions{Buffer: buffer}
				events := agent.Watch(ctx, opts)
				total := uint64(len(takeTurn(t, s.Run(t.Context(), "nobody reads"), belay.EndTurn).events))
				next, stop := iter.Pull2(events)
				defer stop()
				_, err, _ := next()
				missed, ok := errors.AsType[*belay.MissedError](err)
				if !ok || uint64(missed.Missed) != total-uint64(buffer) {
					t.Fatalf("of %d events, the watcher got the error %v", total, err)
				}
				for i := range buffer {
					if e, err, _ := next(); err != nil || e.Seq != total-uint64(buffer)+uint64(i)+1 {
						t.Fatalf("then comes event %d: %v", e.Seq, err)
					}
				}
				say(t, s, "nobody reads again") // the watcher must not report events as missed that it has read
				_, err, _ = next()
				if missed, ok := errors.AsType[*belay.MissedError](err); !ok || uint64(missed.Missed) != total-uint64(buffer) {
					t.Fatalf("the second time the watcher got the error %v", err)
				}
				for i := range buffer {
					if e, err, _ := next(); err != nil || e.Seq != 2*total-uint64(buffer)+uint64(i)+1 {
						t.Fatalf("then comes event %d: %v", e.Seq, err)
					}
				}
				cancel()
				if _, err, more := next(); more {
					t.Errorf("after the end of its context it gets %v", err)
				}
			})
		})
	}
}

// SPEC L-03.
func TestWatcherLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		agent := agentOf(t, wordy(), nil)
		s := agent.Session("s")
		opts := &belay.WatchOptions{}
		events := agent.Watch(t.Context(), opts)
		if *opts != (belay.WatchOptions{}) {
			t.Errorf("the caller's options were changed: %+v", *opts)
		}
		say(t, s, "hello")
		for event, err := range events {
			if err != nil || event.Kind != belay.EventTurnStart {
				t.Errorf("the first event is %s: %v", event.Kind, err)
			}
			break
		}
		ended, cancel := context.WithCancel(t.Context())
		unread := agent.Watch(ended, nil)
		cancel()
		synctest.Wait()
		say(t, s, "nobody is here")
		for event := range unread {
			t.Errorf("a watcher whose context has ended gets %s", event.Kind)
		}
	})
}

// A cancelled watcher ends after its current event, even if many events are waiting.
//
// SPEC L-03
func TestCancelledWatchersEndWithTheirCurrentEvent(t *testing.T) {
	t.Parallel()
	for what, buffer := range map[string]int{"with all its events": 0, "with a notice of what it missed": 5} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const watchers, event = 50, 200 * time.Millisecond
				agent := agentOf(t, wordy(), nil)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var watching sync.WaitGroup
				for range watchers {
					events := agent.Watch(ctx, &belay.WatchOptions{Buffer: buffer})
					watching.Go(func() {
						for range events {
							time.Sleep(event)
						}
					})
				}
				for range 5 {
					say(t, agent.Session("s"), "hello")
				}
				time.Sleep(event / 2) // now each watcher is handling an event
				cancel()
				began := time.Now()
				watching.Wait()
				if took := time.Since(began); took > event {
					t.Errorf("the watchers took %s to end, want at most one event (%s)", took, event)
				}
			})
		})
	}
}

// slowWatcher is an extension that sleeps for each event.
type slowWatcher struct {
	each time.Duration
	seen []belay.EventKind
}

func (*slowWatcher) Name() string { return "slow" }

func (s *slowWatcher) Watch(_ context.Context, events iter.Seq2[belay.Event, error]) {
	for e := range events {
		time.Sleep(s.each)
		s.seen = append(s.seen, e.Kind)
	}
}

// When an agent is closed, its WatchExtension still gets all events of earlier turns. If
// the context of Close ends first, the extension ends after its current event.
//
// SPEC L-03
func TestClosingAnAgentWaitsForTheEventsOfItsExtensions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for what, patience := range map[string]time.Duration{"all of them": time.Hour, "as long as it may": 2500 * time.Millisecond} {
			slow := &slowWatcher{each: time.Second}
			agent := agentOf(t, wordy(), &belay.Options{Extensions: []belay.Extension{slow}})
			said := len(takeTurn(t, agent.Session("s").Run(t.Context(), "hello"), belay.EndTurn).events)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			err := agent.Close(ctx)
			cancel()
			time.Sleep(slow.each) // wait for the current event
			synctest.Wait()
			seen := len(slow.seen)
			if whole := patience == time.Hour; whole && (seen != said || err != nil) || !whole && (seen != 3 || err == nil) {
				t.Errorf("%s: it saw %d of %d events: %v", what, seen, said, err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(slow.seen) != seen {
				t.Errorf("%s: it saw %d more events", what, len(slow.seen)-seen)
			}
		}
	})
}
