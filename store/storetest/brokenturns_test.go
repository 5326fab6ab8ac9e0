package storetest_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/internal/probetest"
	"github.com/belay-run/belay/store/sqlite"
	"github.com/belay-run/belay/store/storetest"
)

// A correct store passes all rules about turns.
func TestTurns(t *testing.T) {
	t.Parallel()
	storetest.TestTurns(t, func(t testing.TB) belay.TurnStore { return openTurns(t) })
}

// newFile makes a file with an empty store.
var newFile = filetest.Copies("belay.db", func(path string) error {
	s, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	return s.Close()
})

func openTurns(t testing.TB) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), newFile(t), &sqlite.Options{JobPoll: 5 * time.Millisecond, Poll: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Each of the following stores has one fault.

type forgetsModel struct{ belay.TurnStore }

func (s forgetsModel) Submit(ctx context.Context, turn belay.QueuedTurn) error {
	turn.Model = ""
	return s.TurnStore.Submit(ctx, turn)
}

type backwards struct{ belay.TurnStore }

func (s backwards) Queued(ctx context.Context, session string) ([]belay.QueuedTurn, error) {
	turns, err := s.TurnStore.Queued(ctx, session)
	slices.Reverse(turns)
	return turns, err
}

type givesOne struct {
	belay.TurnStore
	mu    sync.Mutex
	first *belay.DueTurn
}

func (s *givesOne) Claim(ctx context.Context, filter belay.TurnFilter) (belay.DueTurn, error) {
	due, err := s.TurnStore.Claim(ctx, filter)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.first == nil {
		s.first = &due
	}
	if err != nil {
		return due, err
	}
	return *s.first, nil
}

type neverSettles struct{ belay.TurnStore }

func (s neverSettles) Settle(context.Context, belay.DueTurn, time.Time) error { return nil }

type dropsAll struct{ belay.TurnStore }

func (s dropsAll) Settle(ctx context.Context, due belay.DueTurn, _ time.Time) error {
	return s.TurnStore.Settle(ctx, due, belay.Never)
}

type putsOffBlindly struct{ belay.TurnStore }

func (s putsOffBlindly) Settle(ctx context.Context, due belay.DueTurn, again time.Time) error {
	if err := s.TurnStore.Settle(ctx, due, again); err != nil || again.IsZero() {
		return err
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if next, err := s.TurnStore.Claim(short, belay.TurnFilter{}); err == nil { // ignores messages that were submitted since the claim
		return s.TurnStore.Settle(ctx, next, belay.Never)
	}
	return nil
}

type neverTakesUp struct{ belay.TurnStore }

func (s neverTakesUp) Commit(ctx context.Context, c *belay.Commit) error {
	c.Queued = ""
	return s.TurnStore.Commit(ctx, c)
}

type sleeps struct{ belay.TurnStore }

func (s sleeps) Wake(context.Context, string) error { return nil }

func (s sleeps) Decide(context.Context, belay.Decision) (belay.Approval, error) {
	return belay.Approval{}, nil
}

type unfiltered struct{ belay.TurnStore }

func (s unfiltered) Claim(ctx context.Context, _ belay.TurnFilter) (belay.DueTurn, error) {
	return s.TurnStore.Claim(ctx, belay.TurnFilter{})
}

type tellsOnce struct{ belay.TurnStore }

func (s tellsOnce) Changes(ctx context.Context, session string) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		for info, err := range s.TurnStore.Changes(ctx, session) {
			yield(info, err)
			return
		}
	}
}

type losesItsPlace struct{ belay.TurnStore }

func (s losesItsPlace) Settle(ctx context.Context, due belay.DueTurn, again time.Time) error {
	if !again.IsZero() && again.Before(time.Now()) {
		again = time.Now()
	}
	return s.TurnStore.Settle(ctx, due, again)
}

type forgetsWhy struct{ belay.TurnStore }

func (s forgetsWhy) Settle(ctx context.Context, due belay.DueTurn, again time.Time) error {
	due.Why = ""
	return s.TurnStore.Settle(ctx, due, again)
}

type neverWorks struct{ belay.TurnStore }

func (s neverWorks) Load(ctx context.Context) (belay.Load, error) {
	load, err := s.TurnStore.Load(ctx)
	for i := range load.Holders {
		load.Holders[i].Worker = false
	}
	return load, err
}

type forgetsWaking struct{ belay.TurnStore }

func (s forgetsWaking) Settle(ctx context.Context, due belay.DueTurn, again time.Time) error {
	for again.IsZero() && due.Mark < 5 { // ignores messages and wake-ups since the claim
		due.Mark++
		if err := s.TurnStore.Settle(ctx, due, again); err != nil {
			return err
		}
	}
	return s.TurnStore.Settle(ctx, due, again)
}

// For every rule about turns, one of the broken stores fails.
func TestTurnsCatch(t *testing.T) { //nolint:tparallel // what the stores are caught at is looked at when all have been
	t.Parallel()
	broken := map[string]func(belay.TurnStore) belay.TurnStore{
		"forgets the model":                       func(s belay.TurnStore) belay.TurnStore { return forgetsModel{s} },
		"lists queued turns in reverse order":     func(s belay.TurnStore) belay.TurnStore { return backwards{s} },
		"gives the same turn to every claim":      func(s belay.TurnStore) belay.TurnStore { return &givesOne{TurnStore: s} },
		"never settles":                           func(s belay.TurnStore) belay.TurnStore { return neverSettles{s} },
		"suspends every turn":                     func(s belay.TurnStore) belay.TurnStore { return dropsAll{s} },
		"suspends a turn although a message came": func(s belay.TurnStore) belay.TurnStore { return putsOffBlindly{s} },
		"never starts a queued turn":              func(s belay.TurnStore) belay.TurnStore { return neverTakesUp{s} },
		"ignores Wake and decisions":              func(s belay.TurnStore) belay.TurnStore { return sleeps{s} },
		"ignores the filter":                      func(s belay.TurnStore) belay.TurnStore { return unfiltered{s} },
		"gives a returned turn a new place":       func(s belay.TurnStore) belay.TurnStore { return losesItsPlace{s} },
		"forgets why a turn is suspended":         func(s belay.TurnStore) belay.TurnStore { return forgetsWhy{s} },
		"is never listed as a worker":             func(s belay.TurnStore) belay.TurnStore { return neverWorks{s} },
		"ends a turn although Wake came":          func(s belay.TurnStore) belay.TurnStore { return forgetsWaking{s} },
		"reports only the first change":           func(s belay.TurnStore) belay.TurnStore { return tellsOnce{s} },
	}
	var mu sync.Mutex
	caught := make(map[string]bool)
	t.Run("stores", func(t *testing.T) {
		for name, breaks := range broken {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				found := 0
				for _, rule := range storetest.TurnRules() {
					p := probetest.Run(t, func(t testing.TB) { rule.Check(t, breaks(openTurns(t))) })
					if len(p.Failures()) > 0 {
						found++
						mu.Lock()
						caught[rule.Name] = true
						mu.Unlock()
					}
				}
				if found == 0 {
					t.Errorf("no rule catches a store that %s", name)
				}
			})
		}
	})
	for _, rule := range storetest.TurnRules() {
		if !caught[rule.Name] {
			t.Errorf("nothing breaks the rule %q: it may be one that cannot fail", rule.Name)
		}
	}
}

// A correct store passes all rules about the claims of dead processes.
func TestTurnsOfTheGone(t *testing.T) {
	t.Parallel()
	storetest.TestTurnsOfTheGone(t, func(t testing.TB) belay.TurnStore { return openTurns(t) }, endTurns)
}

// endTurns closes a store, like a process that ends, and opens it again.
func endTurns(t testing.TB, s belay.TurnStore) belay.TurnStore {
	t.Helper()
	former := s.(*sqlite.Store)
	if err := former.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := sqlite.Open(context.Background(), former.Path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
	return again
}

// says is a store that returns the same agent and the same model for all turns.
type says struct {
	belay.TurnStore
	agent, model string
}

func (s says) Claim(ctx context.Context, filter belay.TurnFilter) (belay.DueTurn, error) {
	due, err := s.TurnStore.Claim(ctx, filter)
	due.Agent, due.Model = s.agent, s.model
	return due, err
}

// For every rule about the claims of dead processes, one of the broken stores fails.
func TestTurnsOfTheGoneCatch(t *testing.T) {
	t.Parallel()
	for _, rule := range storetest.GoneRules() {
		caught := false
		for _, broken := range []says{{agent: "x", model: "m"}, {agent: "y"}} { // one store always returns the first turn, the other always the next turn
			p := probetest.Run(t, func(t testing.TB) {
				rule.Check(t, openTurns(t), func(t testing.TB, s belay.TurnStore) belay.TurnStore {
					return says{endTurns(t, s), broken.agent, broken.model}
				})
			})
			caught = caught || len(p.Failures()) > 0
		}
		if !caught {
			t.Errorf("nothing breaks the rule %q: it may be one that cannot fail", rule.Name)
		}
	}
}
