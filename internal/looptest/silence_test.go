package looptest_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// streamFunc is a model whose Stream calls f. f gets the number of earlier requests.
type streamFunc struct {
	asked atomic.Int32
	f     func(ctx context.Context, asked int, yield func(belay.Chunk, error) bool)
}

func (m *streamFunc) Stream(ctx context.Context, _ *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) { m.f(ctx, int(m.asked.Add(1))-1, yield) }
}

// answers yields a complete response.
func answers(yield func(belay.Chunk, error) bool, text string) {
	yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text(text)}, StopReason: belay.StopEnd, Usage: belay.Usage{In: 1, Out: 1}}}, nil)
}

// quickly retries almost without a pause.
var quickly = hook.Retry{Attempts: 3, Delay: time.Nanosecond}

// A stream that sends nothing for too long is a failed attempt, like a network failure, and
// is retried.
//
// SPEC L-04
func TestSilentStreamsAreTriedAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limit, want time.Duration
		before      []belay.Chunk // chunks that the model sends before it is silent
		deaf        bool          // the model ignores its context
	}{
		"before the first word, by default":                {0, 5 * time.Minute, nil, false},
		"in the middle":                                    {time.Minute, time.Minute, []belay.Chunk{{Text: "half a"}}, false},
		"in the middle of a call":                          {time.Minute, time.Minute, []belay.Chunk{{Input: &belay.InputDelta{Text: "{"}}}, false},
		"behind a ping":                                    {time.Minute, time.Minute, []belay.Chunk{{}}, false},
		"and does not heed its context":                    {time.Minute, time.Minute + 5*time.Second, nil, true},
		"in the middle, and does not heed its context too": {time.Minute, time.Minute + 5*time.Second, []belay.Chunk{{Text: "half a"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				var failed time.Duration
				model := &streamFunc{f: func(ctx context.Context, asked int, yield func(belay.Chunk, error) bool) {
					if asked > 0 {
						answers(yield, "whole")
						return
					}
					for _, chunk := range test.before {
						time.Sleep(20 * time.Second)
						yield(chunk, nil)
					}
					if test.deaf {
						<-release
						yield(belay.Chunk{Text: "too late"}, nil)
						return
					}
					<-ctx.Done()
					yield(belay.Chunk{}, ctx.Err())
				}}
				began := time.Now()
				agent := agentOf(t, model, &belay.Options{Retry: quickly, Limits: belay.Limits{Idle: test.limit}})
				turn := take(agent.Session("s").Run(t.Context(), "go"))
				failed = time.Since(began) - time.Duration(len(test.before))*20*time.Second
				if turn.Reason != belay.EndTurn || turn.Text != "whole" {
					t.Fatalf("the turn ended %s with %q: %v", turn.Reason, turn.Text, turn.err)
				}
				retried := turn.of(belay.EventError)
				if len(retried) != 1 || !retried[0].Retry || !strings.Contains(retried[0].Text, "network") || !strings.Contains(retried[0].Text, "sent nothing for") {
					t.Errorf("the errors are %+v", retried)
				}
				if failed < test.want || failed > test.want+time.Second {
					t.Errorf("it was given up after %s of silence, want %s", failed, test.want)
				}
			})
		})
	}
}

// A model that has answered at once many times may hang the next time, and ignore its
// context, as a cache in front of a service does.
//
// SPEC L-04
func TestFastModelsMayHang(t *testing.T) {
	t.Parallel()
	const fast = 50 // requests
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		model := &streamFunc{f: func(_ context.Context, asked int, yield func(belay.Chunk, error) bool) {
			if asked == fast || asked == fast+1 {
				<-release
				return
			}
			answers(yield, "whole")
		}}
		s := agentOf(t, model, &belay.Options{Retry: quickly, Limits: belay.Limits{Idle: time.Minute}}).Session("s")
		for range fast {
			takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		if turn, err := s.Turn(ctx, "go"); err == nil || turn.Reason != belay.EndAborted || time.Since(began) > 10*time.Second {
			t.Errorf("the aborted turn ended %s after %s: %v", turn.Reason, time.Since(began), err)
		}

		began = time.Now()
		if turn := takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn); turn.Text != "whole" {
			t.Errorf("the answer is %q", turn.Text)
		}
		if waited := time.Since(began); waited < time.Minute || waited > time.Minute+10*time.Second {
			t.Errorf("the turn waited for %s, want a minute and the grace", waited)
		}
	})
}

// A stream that keeps sending chunks in time is not silent, whatever the chunks contain.
//
// SPEC L-04
func TestStreamsThatAreNotSilent(t *testing.T) {
	t.Parallel()
	for name, chunk := range map[string]belay.Chunk{
		"pings": {}, "text": {Text: "a"}, "thinking": {Thinking: "a"}, "the input of a call": {Input: &belay.InputDelta{Text: "{"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := &streamFunc{f: func(ctx context.Context, _ int, yield func(belay.Chunk, error) bool) {
					late := time.NewTimer(0)
					for range 10 {
						late.Reset(59 * time.Second)
						select {
						case <-late.C:
							yield(chunk, nil)
						case <-ctx.Done():
							yield(belay.Chunk{}, ctx.Err())
							return
						}
					}
					answers(yield, "whole")
				}}
				turn := take(agentOf(t, model, &belay.Options{Limits: belay.Limits{Idle: time.Minute}}).Session("s").Run(t.Context(), "go"))
				if turn.Reason != belay.EndTurn || turn.Text != "whole" || len(turn.of(belay.EventError)) > 0 {
					t.Errorf("the turn ended %s with %q: %v", turn.Reason, turn.Text, turn.err)
				}
			})
		})
	}
}

// If a consumer handles an event slowly, this does not count as silence of the model.
//
// SPEC L-04, L-03
func TestASlowConsumerIsNoSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := &streamFunc{f: func(ctx context.Context, _ int, yield func(belay.Chunk, error) bool) {
			_ = ctx.Done() // use the channel, as every model does that watches its context
			for range 3 {
				if !yield(belay.Chunk{Text: "a"}, nil) || ctx.Err() != nil {
					return
				}
			}
			answers(yield, "whole")
		}}
		s := agentOf(t, model, &belay.Options{Limits: belay.Limits{Idle: time.Minute}}).Session("s")
		var kinds []belay.EventKind
		for event, err := range s.Run(t.Context(), "go") {
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, event.Kind)
			time.Sleep(time.Hour)
		}
		if slices.Contains(kinds, belay.EventError) {
			t.Errorf("the events are %v", kinds)
		}
	})
}

// SPEC L-04, L-06
func TestSilentSummariesAreTriedAgain(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			model := &streamFunc{f: func(ctx context.Context, asked int, yield func(belay.Chunk, error) bool) {
				switch {
				case asked != 1:
					answers(yield, "said")
				case deaf:
					<-release
				default:
					<-ctx.Done()
					yield(belay.Chunk{}, ctx.Err())
				}
			}}
			s := agentOf(t, model, &belay.Options{Retry: quickly, Limits: belay.Limits{Idle: time.Minute}}).Session("s")
			say(t, s, "hello")
			if err := s.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := model.asked.Load(); n != 3 {
				t.Errorf("the model was asked %d times, want 3", n)
			}
		})
	}
}

// If a model is always silent, the turn ends with an error. The session can run another
// turn.
//
// SPEC L-04, L-05
func TestAModelThatIsAlwaysSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := true
		model := &streamFunc{f: func(ctx context.Context, _ int, yield func(belay.Chunk, error) bool) {
			if !silent {
				answers(yield, "there")
				return
			}
			<-ctx.Done()
		}}
		s := agentOf(t, model, &belay.Options{Retry: quickly}).Session("s")
		turn := take(s.Run(t.Context(), "go"))
		failure, ok := errors.AsType[*belay.ModelError](turn.err)
		if turn.Reason != belay.EndError || !ok || failure.Kind != belay.ModelNetwork || !strings.Contains(turn.err.Error(), "after 3 attempts") {
			t.Errorf("the turn ended %s: %v", turn.Reason, turn.err)
		}
		silent = false
		say(t, s, "again")
	})
}

// If a stream ignores its context, an aborted turn does not wait for it forever, and drops
// its later chunks.
//
// SPEC L-04, L-05
func TestAbortLeavesADeafStreamBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, said := make(chan struct{}), make(chan bool, 1)
		model := &streamFunc{f: func(_ context.Context, asked int, yield func(belay.Chunk, error) bool) {
			if asked > 0 {
				answers(yield, "there")
				return
			}
			<-release
			said <- yield(belay.Chunk{Text: "too late"}, nil)
		}}
		agent := agentOf(t, model, &belay.Options{Limits: belay.Limits{Grace: 3 * time.Second}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		turn := take(agent.Session("s").Run(ctx, "go"))
		if took := time.Since(began); turn.Reason != belay.EndAborted || took != time.Minute+3*time.Second {
			t.Errorf("the turn ended %s after %s: %v", turn.Reason, took, turn.err)
		}
		watching, stop := context.WithCancel(t.Context())
		defer stop()
		events := agent.Watch(watching, nil)
		close(release)
		if <-said {
			t.Error("the stream was not told that nobody listens")
		}
		synctest.Wait()
		stop()
		for e := range events {
			t.Errorf("unexpected event %s %q", e.Kind, e.Text)
		}
		say(t, agent.Session("s"), "again")
	})
}
