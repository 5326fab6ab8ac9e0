package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/hook"
)

// asks returns the options of an agent that asks a person before it deploys.
func asks(s belay.Store, ran *atomic.Int64) belay.Options {
	return belay.Options{
		Store: s, OnAsk: belay.AskPark, ApprovalExpiry: time.Hour,
		Tools: []belay.Tool{tool("deploy", func(context.Context, *belay.Invocation) error { ran.Add(1); return nil }, nil)},
		Hooks: []hook.Subscription{belay.ToolPre.On("ask", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
			return belay.Ask("it goes out"), nil
		}, nil)},
	}
}

func allow(t testing.TB, s *memory) {
	t.Helper()
	for a, err := range s.Approvals(t.Context(), belay.ApprovalFilter{Pending: true}) {
		if err == nil {
			_, err = s.Decide(t.Context(), belay.Decision{Approval: a.ID, Hash: a.Hash, Allow: true, By: "ann"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// If nobody answers the question of a parked turn, the turn becomes due when the question
// expires. Then the call is denied and the turn continues.
//
// SPEC P-08, P-09
func TestExpiredQuestion(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *memory) {
		var ran atomic.Int64
		start(t, s, engine.Of(newAgent(t, model{}, asks(s, &ran))), engine.Options{})
		submit(t, s, "main", "a", "call deploy")
		pass(time.Hour - time.Second)
		if let := s.settlements("a", 0); len(let) != 1 || let[0].pause() != time.Hour {
			t.Fatalf("it was settled as %+v, want it due again when the question expires", let)
		}
		if load, err := s.Load(t.Context()); err != nil || load.Parked != 1 {
			t.Errorf("the load is %+v, %v, want one parked turn", load, err)
		}
		pass(time.Second)
		got := texts(t, s, "a")
		if len(got) != 4 || !strings.Contains(got[2], `Denied by "expiry"`) || got[3] != "assistant: done: call deploy" || ran.Load() != 0 {
			t.Errorf("the tool ran %d times and the session says %q, want the call denied", ran.Load(), got)
		}
		idle(t, s)
	})
}

// A turn whose session cannot be opened is retried after pauses that grow up to a minute.
// Load reports the reason.
//
// SPEC L-02
func TestFailuresPause(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *memory) {
		stored, err := s.Open(t.Context(), "a") // like another process that holds the session
		if err != nil {
			t.Fatal(err)
		}
		start(t, s, engine.Of(newAgent(t, model{}, belay.Options{Store: s})), engine.Options{})
		submit(t, s, "main", "a", "hello")
		pass(4 * time.Minute)
		const first, last = 250 * time.Millisecond, time.Minute
		let := s.settlements("a", 0)
		if len(let) < 10 {
			t.Fatalf("it was tried %d times in 4 minutes", len(let))
		}
		for i, of := range let {
			if pause := min(first<<i, last); of.pause() != pause || !strings.Contains(of.why, belay.ErrHeld.Error()) {
				t.Errorf("attempt %d: the pause is %s for %q, want %s, because it is held", i+1, of.pause(), of.why, pause)
			}
		}
		if load, err := s.Load(t.Context()); err != nil || len(load.PutOff) != 1 || !strings.Contains(load.PutOff[0].Why, belay.ErrHeld.Error()) {
			t.Errorf("the load is %+v, %v, want why the turn is put off", load, err)
		}
		if err := s.Release(t.Context(), "a", stored.Epoch); err != nil {
			t.Fatal(err)
		}
		pass(last)
		want(t, s, "a", "user: hello", "assistant: done: hello")
		if end := s.settlements("a", len(let)); len(end) != 1 || end[0].why != "" {
			t.Errorf("at its end it was settled as %+v, want no reason", end)
		}
		idle(t, s)
	})
}

// answers is a fault for memory.breaks. It rejects commits that contain a model's answer.
func answers(of op) error {
	if of.commit != nil && slices.ContainsFunc(of.commit.Messages, func(m *belay.Message) bool { return m.Role == belay.RoleAssistant }) {
		return errDisk
	}
	return nil
}

// A turn that calls its model but cannot be stored is suspended after eight attempts. Then
// it makes no more calls until it is woken.
//
// SPEC L-01
func TestSpendsNotForEver(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *memory) {
		var asked atomic.Int64
		s.breaks(answers)
		start(t, s, engine.Of(newAgent(t, model{asked: func(context.Context, string) { asked.Add(1) }}, belay.Options{Store: s})), engine.Options{})
		submit(t, s, "main", "a", "hello")
		spent := func(times int64, when string) {
			t.Helper()
			pass(24 * time.Hour)
			let := s.settlements("a", 0)
			if last := let[len(let)-1]; asked.Load() != times || !last.again.Equal(belay.Never) || !strings.Contains(last.why, errDisk.Error()) {
				t.Errorf("%s: the model was asked %d times and the turn settled as %+v, want %d times, and that it is put off", when, asked.Load(), last, times)
			}
		}
		spent(8, "at first")
		spent(8, "a day later")
		if err := s.Wake(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		spent(9, "woken")
		s.breaks(nil)
		if err := s.Wake(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		pass(0)
		want(t, s, "a", "user: hello", "assistant: done: hello")
		idle(t, s)
		s.breaks(answers)
		submit(t, s, "main", "a", "another one")
		spent(10+8, "another turn")
	})
}

// Attempts that did not call the model do not count towards the limit of eight.
func TestWaitingIsNoSpending(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *memory) {
		var asked atomic.Int64
		stored, err := s.Open(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		start(t, s, engine.Of(newAgent(t, model{asked: func(context.Context, string) { asked.Add(1) }}, belay.Options{Store: s})), engine.Options{})
		submit(t, s, "main", "a", "hello")
		pass(time.Hour) // the session is still held, so no attempt calls the model
		s.breaks(answers)
		if err := s.Release(t.Context(), "a", stored.Epoch); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		if asked.Load() < 2 {
			t.Errorf("the model was asked %d times, want it tried again", asked.Load())
		}
		s.breaks(nil)
		pass(time.Minute)
		want(t, s, "a", "user: hello", "assistant: done: hello")
	})
}

// keyless is a model that always fails.
type keyless struct{}

func (keyless) Info() belay.ModelInfo { return belay.ModelInfo{Name: "keyless"} }

func (keyless) Stream(context.Context, *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		yield(belay.Chunk{}, &belay.ModelError{Kind: belay.ModelAuth, Err: errors.New("there is no key")})
	}
}

// A turn whose error is stored has ended. It does not count as a turn that cannot be
// stored. So even after many such turns the next turn runs.
func TestFailedTurnsAreTaken(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *memory) {
		const turns = 12
		for i := range turns {
			submit(t, s, "main", "a", fmt.Sprint("message ", i))
		}
		start(t, s, engine.Of(newAgent(t, keyless{}, belay.Options{Store: s})), engine.Options{})
		pass(time.Hour)
		said := 0
		for _, text := range texts(t, s, "a") {
			if strings.HasPrefix(text, "user: message") {
				said++
			}
		}
		if said != turns {
			t.Errorf("%d of %d turns were taken", said, turns)
		}
		idle(t, s)
	})
}

// A turn that is resumed without one of its tools does not call its model. Workers retry
// it until a worker has the tool.
//
// SPEC L-01, P-08
func TestLackingToolIsNotPutOff(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *memory) {
		var ran atomic.Int64
		var equipped atomic.Bool
		has := newAgent(t, model{}, asks(s, &ran))
		opts := asks(s, &ran)
		opts.Tools = nil
		lacks := newAgent(t, model{}, opts)
		equipped.Store(true)
		start(t, s, func(context.Context, string) (*belay.Agent, error) {
			if equipped.Load() {
				return has, nil
			}
			return lacks, nil
		}, engine.Options{})
		submit(t, s, "main", "a", "call deploy")
		synctest.Wait()
		equipped.Store(false)
		allow(t, s)
		pass(time.Hour)
		failed := s.settlements("a", 1)
		if len(failed) < 20 {
			t.Fatalf("without the tool it was looked at %d times in an hour", len(failed))
		}
		for i, of := range failed {
			if of.pause() > time.Minute || !strings.Contains(of.why, "deploy") {
				t.Errorf("look %d: the pause is %s for %q, want a minute at most, and the tool's name", i+1, of.pause(), of.why)
			}
		}
		equipped.Store(true)
		pass(time.Minute)
		if ran.Load() != 1 {
			t.Errorf("the tool ran %d times", ran.Load())
		}
		want(t, s, "a", "user: call deploy", "call: deploy", "result: deploy is done", "assistant: done: call deploy")
		idle(t, s)
	})
}

// The worker forgets the failures of a session as soon as its turn could be stored or no
// turn is left.
func TestFailuresAreForgotten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		task string
		heal func(t *testing.T, s *memory)
		then func(t *testing.T, s *memory) // makes the session due again
	}{
		"when its turn has ended": {
			"hello",
			func(_ *testing.T, s *memory) { s.breaks(nil) },
			func(t *testing.T, s *memory) { submit(t, s, "main", "a", "hello again") },
		},
		"when its turn has parked": {
			"call deploy",
			func(_ *testing.T, s *memory) { s.breaks(nil) },
			func(t *testing.T, s *memory) { allow(t, s) },
		},
		"when another process ran its turn": {
			"hello",
			func(t *testing.T, s *memory) { // another process runs the turn
				s.breaks(nil)
				other := newAgent(t, model{}, belay.Options{Store: s}).Session("a")
				for _, err := range other.Resume(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
				}
				if err := other.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			func(t *testing.T, s *memory) { submit(t, s, "main", "a", "hello again") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *memory) {
				var ran atomic.Int64
				s.breaks(answers)
				start(t, s, engine.Of(newAgent(t, model{}, asks(s, &ran))), engine.Options{})
				submit(t, s, "main", "a", test.task)
				pass(10 * time.Second)
				failed := s.settlements("a", 0)
				if n := len(failed); n < 3 || failed[n-1].pause() <= failed[0].pause() {
					t.Fatalf("it failed as %+v, want pauses that grow", failed)
				}
				test.heal(t, s)
				pass(time.Minute)
				known := len(s.settlements("a", 0))
				if known != len(failed)+1 {
					t.Fatalf("then it was settled as %+v, want it to end", s.settlements("a", len(failed)))
				}
				s.breaks(answers)
				test.then(t, s)
				synctest.Wait()
				if let := s.settlements("a", known); len(let) != 1 || let[0].pause() != failed[0].pause() {
					t.Errorf("the next failure was settled as %+v, want the first pause, %s", let, failed[0].pause())
				}
			})
		})
	}
}

// A model that never answers does not block a worker for ever, even if the model ignores
// its context.
//
// SPEC L-04
func TestASilentModelFreesItsWorker(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *memory) {
			release := make(chan struct{})
			defer close(release)
			silent := model{asked: func(ctx context.Context, task string) {
				switch {
				case task != "silence":
				case deaf:
					<-release
				default:
					<-ctx.Done()
				}
			}}
			agent := newAgent(t, silent, belay.Options{Store: s, Retry: hook.Retry{Attempts: 2, Delay: time.Second}})
			start(t, s, engine.Of(agent), engine.Options{Turns: 1})
			submit(t, s, "main", "a", "silence")
			pass(time.Second)
			submit(t, s, "main", "b", "hello")
			pass(12 * time.Minute) // enough for two attempts of 5 minutes
			want(t, s, "b", "user: hello", "assistant: done: hello")
		})
	}
}
