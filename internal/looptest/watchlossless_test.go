package looptest_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
)

// A lossless watcher gets every event, however slow it is and however small its buffer.
// Other watchers and the stream still get the events at once.
//
// SPEC L-03, E-11
func TestLosslessWatchersMissNothing(t *testing.T) {
	t.Parallel()
	for _, after := range []string{"", "0"} {
		for _, buffer := range []int{1, 3} {
			t.Run(fmt.Sprintf("with room for %d, after %q", buffer, after), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					agent := agentOf(t, wordy(), nil)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					slow := agent.Watch(ctx, &belay.WatchOptions{Session: "s", Buffer: buffer, Lossless: true, After: after})
					quick := agent.Watch(ctx, &belay.WatchOptions{Session: "s"})
					seenSlow, seenQuick := make(chan watched, 1), make(chan watched, 1)
					go func() {
						seenSlow <- watch(t, func(yield func(belay.Event, error) bool) {
							slow(func(e belay.Event, err error) bool {
								time.Sleep(time.Second)
								return yield(e, err)
							})
						})
					}()
					go func() {
						seenQuick <- watch(t, func(yield func(belay.Event, error) bool) {
							quick(func(e belay.Event, err error) bool {
								if late := time.Since(e.Time); late > 0 {
									t.Errorf("the other watcher got %s %s late", e.Kind, late)
								}
								return yield(e, err)
							})
						})
					}()
					began := time.Now()
					streamed := takeTurn(t, agent.Session("s").Run(t.Context(), "hello"), belay.EndTurn).events
					if took := time.Since(began); took > time.Duration(len(streamed))*time.Second {
						t.Errorf("the turn took %s, longer than its watcher needs for %d events", took, len(streamed))
					}
					time.Sleep(time.Minute) // time for the events that are still in the buffer
					cancel()
					s, q := <-seenSlow, <-seenQuick
					wantEqual(t, "what the lossless watcher saw", kindsOf(s.events), kindsOf(streamed))
					wantEqual(t, "what the other watcher saw", kindsOf(q.events), kindsOf(streamed))
					if after == "" {
						s.wantSequence(t)
					}
					for i, missed := range s.missed {
						if missed > 0 {
							t.Errorf("it missed %d events before event %d", missed, i)
						}
					}
				})
			})
		}
	}
}

// A lossless watcher that takes no events blocks only the turns of its own session. The
// blocking ends when the turn or the watcher is cancelled, when the watcher's loop ends,
// or when the agent is closed.
//
// SPEC L-03, E-11
func TestTurnsStopWaitingForALosslessWatcher(t *testing.T) {
	t.Parallel()
	for how, release := range map[string]func(w *stuckWatcher){
		"when the turn is cancelled":                  func(w *stuckWatcher) { w.cancelTurn() },
		"when the context of the watcher is done":     func(w *stuckWatcher) { w.cancelWatcher() },
		"when the loop over the events ends":          func(w *stuckWatcher) { close(w.leave) },
		"when the agent is closed":                    func(w *stuckWatcher) { w.closeAgent() },
		"when the watcher itself closes the agent":    func(w *stuckWatcher) { w.inLoop <- w.closeAgent },
		"when the watcher itself cancels the turn":    func(w *stuckWatcher) { w.inLoop <- w.cancelTurn },
		"when it is cancelled, and then its watcher":  func(w *stuckWatcher) { w.cancelTurn(); w.cancelWatcher() },
		"when the watcher is cancelled, and then it":  func(w *stuckWatcher) { w.cancelWatcher(); w.cancelTurn() },
		"when the agent is closed and the loop ended": func(w *stuckWatcher) { close(w.leave); w.closeAgent() },
	} {
		for _, after := range []string{"", "0"} {
			t.Run(fmt.Sprintf("%s, after %q", how, after), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newStuckWatcher(t, after)
					synctest.Wait()
					select {
					case <-w.ended:
						t.Fatal("the turn did not wait for the watcher")
					default:
					}
					say(t, w.agent.Session("other"), "this session is not watched")
					release(w)
					synctest.Wait()
					select {
					case <-w.ended:
					default:
						t.Error("the turn still waits")
						w.cancelTurn()
						w.cancelWatcher()
					}
				})
			})
		}
	}
}

// stuckWatcher has a lossless watcher that takes one event and then no more, and a turn
// that waits for this watcher.
type stuckWatcher struct {
	t                         *testing.T
	agent                     *belay.Agent
	cancelTurn, cancelWatcher context.CancelFunc
	leave                     chan struct{} // closed to end the loop of the watcher
	inLoop                    chan func()   // functions that the loop of the watcher calls
	ended                     chan struct{} // closed when the turn has ended
}

func newStuckWatcher(t *testing.T, after string) *stuckWatcher {
	t.Helper()
	w := &stuckWatcher{t: t, agent: agentOf(t, wordy(), nil), leave: make(chan struct{}), inLoop: make(chan func()), ended: make(chan struct{})}
	var turn, watcher context.Context
	turn, w.cancelTurn = context.WithCancel(t.Context())
	watcher, w.cancelWatcher = context.WithCancel(t.Context())
	t.Cleanup(func() { w.cancelTurn(); w.cancelWatcher() })
	events := w.agent.Watch(watcher, &belay.WatchOptions{Session: "s", Buffer: 1, Lossless: true, After: after})
	go func() {
		for range events {
			select {
			case <-w.leave:
				return
			case do := <-w.inLoop:
				do()
			case <-watcher.Done():
				return
			}
		}
	}()
	go func() {
		defer close(w.ended)
		_, _ = w.agent.Session("s").Turn(turn, "hello") // ignore the error: the turn may be aborted
	}()
	return w
}

func (w *stuckWatcher) closeAgent() {
	if err := w.agent.Close(w.t.Context()); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

// Closing the agent, or cancelling the turn, releases the turn. The watcher still gets all
// events.
//
// SPEC L-03, E-11
func TestLosslessWatchersGetEverythingAfterARelease(t *testing.T) {
	t.Parallel()
	for how, byClose := range map[string]bool{"closed": true, "cancelled": false} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				agent := agentOf(t, wordy(), nil)
				slow := agent.Watch(t.Context(), &belay.WatchOptions{Buffer: 1, Lossless: true})
				all := agent.Watch(t.Context(), nil)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_, _ = agent.Session("s").Turn(ctx, "hello") // ignore the error: the turn may be aborted
				}()
				synctest.Wait() // wait until the turn waits for the watcher
				if !byClose {
					cancel()
					<-ended
				}
				if err := agent.Close(t.Context()); err != nil {
					t.Error(err)
				}
				<-ended
				got, want := watch(t, slow), watch(t, all)
				wantEqual(t, "the events", kindsOf(got.events), kindsOf(want.events))
				if n := len(want.events); n < 3 || want.events[n-1].Kind != belay.EventTurnEnd {
					t.Errorf("the turn has only the events %v", kindsOf(want.events))
				}
			})
		})
	}
}

// If a watcher's loop waits for the turn that it watches, both wait for each other. Here
// the loop runs the turn itself. The agent logs a warning.
//
// SPEC L-03, E-11
func TestATurnThatWaitsForItsWatcherIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		agent := agentOf(t, wordy(), &belay.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		events := agent.Watch(t.Context(), &belay.WatchOptions{Buffer: 1, Lossless: true})
		_, err := agent.Session("s").Turn(ctx, "nobody reads")
		if err == nil {
			t.Error("the turn ended without its watcher")
		}
		if said := log.String(); strings.Count(said, "lossless watcher") != 1 || !strings.Contains(said, "session=s") {
			t.Errorf("the log says %q", said)
		}
		for range events {
			break
		}
		say(t, agent.Session("s"), "nobody watches any more")
	})
}

// lockedBuffer is a buffer that several goroutines may use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
