package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
)

var errAway = errors.New("the store is away")

// If the store is unreachable, the worker retries claims with growing pauses. After a
// success the pauses begin again with the shortest pause.
func TestClaimPauses(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *memory) {
		fails := func(of op) error {
			if of.name == "claim" {
				return errAway
			}
			return nil
		}
		claims := func() []time.Time {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Clone(s.claimed)
		}
		grows := func(all []time.Time, when string) {
			t.Helper()
			const first, last = 250 * time.Millisecond, 5 * time.Second
			if len(all) < 8 {
				t.Fatalf("%s: a store that is away was asked %d times", when, len(all))
			}
			for i := range len(all) - 1 {
				if pause := min(first<<i, last); all[i+1].Sub(all[i]) != pause {
					t.Errorf("%s: pause %d is %s, want %s", when, i+1, all[i+1].Sub(all[i]), pause)
				}
			}
		}
		s.breaks(fails)
		start(t, s, engine.Of(newAgent(t, model{}, belay.Options{Store: s})), engine.Options{})
		pass(time.Minute)
		grows(claims(), "at first")
		s.breaks(nil)
		submit(t, s, "main", "a", "hello")
		pass(5 * time.Second)
		want(t, s, "a", "user: hello", "assistant: done: hello")

		s.breaks(fails) // the waiting claim fails when it looks for turns again
		known, away := len(claims()), time.Now()
		if err := s.Wake(t.Context(), "nowhere"); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		grows(append([]time.Time{away}, claims()[known:]...), "again")
	})
}

// If the store is closed, Run returns that error.
func TestStoreIsClosed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *memory) {
		s.breaks(func(of op) error {
			if of.name == "claim" {
				return fmt.Errorf("claim a turn: %w", belay.ErrClosed)
			}
			return nil
		})
		w, err := engine.New(s, engine.Of(newAgent(t, model{}, belay.Options{Store: s})), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(t.Context()); !errors.Is(err, belay.ErrClosed) {
			t.Errorf("Run: %v, want %v", err, belay.ErrClosed)
		}
	})
}

// If Agents panics, the worker leaves the turns of that agent to others and continues with
// other agents.
func TestSuddenEndOfFinding(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *memory) {
		own := newAgent(t, model{}, belay.Options{Store: s})
		submit(t, s, "bad", "a", "hello")
		submit(t, s, "none", "b", "hello")
		c := start(t, s, func(_ context.Context, name string) (*belay.Agent, error) {
			switch name {
			case "bad":
				panic("no such folder")
			case "none":
				return nil, nil
			default:
				return own, nil
			}
		}, engine.Options{})
		synctest.Wait()
		submit(t, s, "main", "c", "hello")
		synctest.Wait()
		for session, why := range map[string]string{"a": "no such folder", "b": belay.ErrNotFound.Error()} {
			if taken := c.next(t); taken.Session != session && taken.Err == nil {
				t.Errorf("%+v was taken", taken)
			}
			if let := s.settlements(session, 0); len(let) != 1 || !strings.Contains(let[0].why, why) {
				t.Errorf("the turn of session %s was settled as %+v, want it put back with %q", session, let, why)
			}
		}
		want(t, s, "c", "user: hello", "assistant: done: hello")
		if load, err := s.Load(t.Context()); err != nil || load.Waiting != 2 {
			t.Errorf("the load is %+v, %v, want two turns that wait for others", load, err)
		}
	})
}

// If a claim cannot be settled, the worker retries until the store is reachable again.
func TestSettleIsTriedAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *memory) {
		var asked, tries atomic.Int64
		s.breaks(func(of op) error {
			if of.name == "settle" {
				tries.Add(1)
				return errAway
			}
			return nil
		})
		start(t, s, engine.Of(newAgent(t, model{asked: func(context.Context, string) { asked.Add(1) }}, belay.Options{Store: s})), engine.Options{})
		submit(t, s, "main", "a", "hello")
		pass(time.Hour)
		if tries.Load() < 2 || asked.Load() != 1 {
			t.Errorf("the claim was settled %d times and the model asked %d times, want it tried again, and one question", tries.Load(), asked.Load())
		}
		s.breaks(nil)
		pass(time.Minute)
		idle(t, s)
		want(t, s, "a", "user: hello", "assistant: done: hello")
	})
}

// If the store accepts no writes, a stopped worker ends when its grace period is over. If
// the store is closed, it ends at once, because closing the store releases its claims.
func TestSettleDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault error
		most  time.Duration
	}{
		"away":   {errAway, 10 * time.Second},
		"closed": {belay.ErrClosed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *memory) {
				s.breaks(func(of op) error {
					if of.name == "settle" {
						return test.fault
					}
					return nil
				})
				c := start(t, s, engine.Of(newAgent(t, model{}, belay.Options{Store: s})), engine.Options{Grace: 10 * time.Second})
				submit(t, s, "main", "a", "hello")
				synctest.Wait()
				began := time.Now()
				c.stop()
				if took := time.Since(began); took > test.most {
					t.Errorf("the worker took %s to end, want %s at most", took, test.most)
				}
				want(t, s, "a", "user: hello", "assistant: done: hello")
			})
		})
	}
}

// A worker runs exactly as many turns as its limits allow: in total, per agent and per
// model, for names that the options list and for other names.
func TestExactLimits(t *testing.T) {
	t.Parallel()
	const n = 5 // number of turns of each agent
	for name, test := range map[string]struct {
		opts engine.Options
		want map[string]int // number of turns that run at once, by agent
	}{
		"no bound but the default":         {engine.Options{}, map[string]int{"x": n, "y": n, "z": n}},
		"a bound on the worker":            {engine.Options{Turns: 1}, map[string]int{"x": 1}},
		"a bound on an agent":              {engine.Options{PerAgent: map[string]int{"y": 2}}, map[string]int{"x": n, "y": 2, "z": n}},
		"a bound on agents without a name": {engine.Options{PerAgent: map[string]int{"y": 2, "*": 3}}, map[string]int{"x": 3, "y": 2, "z": 3}},
		"a bound on a model":               {engine.Options{PerModel: map[string]int{"my": 2}}, map[string]int{"x": n, "y": 2, "z": n}},
		"a bound on models without a name": {engine.Options{PerModel: map[string]int{"my": 2, "*": 1}}, map[string]int{"x": 1, "y": 2, "z": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *memory) {
				var mu sync.Mutex
				now := make(map[string]int)
				goOn := make(map[string]chan struct{})
				var agents []*belay.Agent
				for _, name := range []string{"x", "y", "z"} {
					goOn[name] = make(chan struct{})
					agents = append(agents, newAgent(t, model{name: "m" + name, asked: func(context.Context, string) {
						mu.Lock()
						now[name]++
						mu.Unlock()
						<-goOn[name]
						mu.Lock()
						now[name]--
						mu.Unlock()
					}}, belay.Options{Name: name, Store: s}))
					for i := range n {
						submit(t, s, name, fmt.Sprint(name, i), "hello")
					}
				}
				start(t, s, engine.Of(agents...), test.opts)
				counted := func(when string) {
					t.Helper()
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					for _, name := range []string{"x", "y", "z"} {
						if now[name] != test.want[name] {
							t.Errorf("%s: %d turns of %s are under way, want %d", when, now[name], name, test.want[name])
						}
					}
				}
				counted("at first")
				for name, most := range test.want {
					if most < n {
						goOn[name] <- struct{}{}
						counted("when one of " + name + " has ended")
					}
				}
				for _, all := range goOn {
					close(all)
				}
				synctest.Wait()
				idle(t, s)
			})
		})
	}
}

// lackingModel runs a worker with two agents. Agent x uses the model m by default. Agent
// y does not have the model m, but its turn names m.
func lackingModel(t *testing.T, s *memory, asked func(context.Context, string), opts engine.Options) {
	t.Helper()
	x := newAgent(t, model{name: "m", asked: asked}, belay.Options{Name: "x", Store: s})
	y := newAgent(t, model{name: "small"}, belay.Options{Name: "y", Store: s, Models: func(context.Context, string) (belay.Model, error) {
		return nil, errors.New("it has no key")
	}})
	start(t, s, engine.Of(x, y), opts)
	submit(t, s, "x", "first", "hello") // now the worker knows the model of agent x
	synctest.Wait()
	turn, err := belay.NewQueuedTurn("lacks", "y", "hello")
	if turn.Model = "m"; err == nil {
		err = s.Submit(t.Context(), turn)
	}
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	let := s.settlements("lacks", 0)
	if len(let) == 0 || len(let) > 2 || !strings.Contains(let[0].why, "it has no key") { // a claim that was already running may find the turn a second time
		t.Fatalf("the turn whose model is unavailable was settled as %+v, want it left to others", let)
	}
}

// A turn of agent y is left to other workers because y does not have the model m. The
// worker still runs turns of agent x, whose default model is m.
func TestOwnModelIsNotLacking(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *memory) {
		lackingModel(t, s, nil, engine.Options{})
		submit(t, s, "x", "second", "hello")
		synctest.Wait() // no time passes
		want(t, s, "second", "user: hello", "assistant: done: hello")
	})
}

// If the limit of the model m is reached, the worker claims no turns of agent x, whose
// default model is m.
func TestLackingModelIsFull(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *memory) {
		under, goOn := make(chan string, 10), make(chan struct{})
		lackingModel(t, s, func(_ context.Context, task string) {
			if task == "wait" {
				under <- task
				<-goOn
			}
		}, engine.Options{PerModel: map[string]int{"m": 1}})
		for _, session := range []string{"second", "third"} {
			submit(t, s, "x", session, "wait")
		}
		synctest.Wait()
		if len(under) != 1 {
			t.Errorf("%d turns ask the model, want 1", len(under))
		}
		close(goOn)
		synctest.Wait()
		for _, session := range []string{"second", "third"} {
			want(t, s, session, "user: wait", "assistant: done: wait")
		}
	})
}
