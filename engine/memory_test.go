package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/storetest"
)

// memory is a store in memory with due turns, for tests with a fake clock. It records its
// calls and can be made to fail.
type memory struct {
	*memstore.Store
	t testing.TB

	mu      sync.Mutex
	waiting map[string][]belay.QueuedTurn
	list    map[string]*listed
	worker  bool
	stirred chan struct{}  // closed at the next change
	settled []settlement   // calls of Settle, in order
	claimed []time.Time    // times of the calls of Claim
	fault   func(op) error // returns the error with which an operation fails, or nil
}

// op is an operation of a store. If the operation is a commit, the field commit is set.
type op struct {
	name   string
	commit *belay.Commit
}

// listed is an entry of the queue of turns.
type listed struct {
	belay.DueTurn

	claimed time.Time // time of the claim
	held    bool      // a worker has claimed the turn
	parked  bool      // not due before the time Since
}

// settlement records a call of Settle.
type settlement struct {
	session, why string
	at, again    time.Time
}

func (s settlement) pause() time.Duration { return s.again.Sub(s.at) }

func newMemory(t testing.TB) *memory {
	return &memory{
		Store: memstore.New(nil), t: t, waiting: make(map[string][]belay.QueuedTurn), list: make(map[string]*listed), stirred: make(chan struct{}),
	}
}

// do performs an operation and wakes waiters. It fails if fault returns an error.
func (s *memory) do(of op, f func() error) error {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault != nil {
		if err := fault(of); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := f(); err != nil {
		return err
	}
	close(s.stirred)
	s.stirred = make(chan struct{})
	return nil
}

// breaks makes operations fail with the errors of fault. If fault is nil, operations work
// again.
func (s *memory) breaks(fault func(op) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

func (s *memory) Submit(ctx context.Context, turn belay.QueuedTurn) error {
	return s.do(op{name: "submit"}, func() error {
		if stored, err := s.Open(ctx, turn.Session); err == nil { // creates the session
			if err := s.Release(ctx, turn.Session, stored.Epoch); err != nil {
				return err
			}
		}
		s.waiting[turn.Session] = append(s.waiting[turn.Session], turn)
		if s.list[turn.Session] == nil {
			s.list[turn.Session] = &listed{DueTurn: belay.DueTurn{Session: turn.Session, Agent: turn.Agent, Model: turn.Model, Since: time.Now()}}
		}
		s.wake(turn.Session)
		return nil
	})
}

func (s *memory) Queued(_ context.Context, session string) ([]belay.QueuedTurn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.waiting[session]), nil
}

func (s *memory) Commit(ctx context.Context, c *belay.Commit) error {
	return s.do(op{"commit", c}, func() error {
		queued := s.waiting[c.Session]
		at := slices.IndexFunc(queued, func(turn belay.QueuedTurn) bool { return turn.ID == c.Queued })
		if c.Queued != "" && at < 0 {
			return fmt.Errorf("turn %q is not queued: %w", c.Queued, belay.ErrConflict)
		}
		if err := s.Store.Commit(ctx, c); err != nil {
			return err
		}
		if at >= 0 {
			s.waiting[c.Session] = slices.Delete(queued, at, at+1)
		}
		return nil
	})
}

func (s *memory) Decide(ctx context.Context, d belay.Decision) (a belay.Approval, err error) {
	err = s.do(op{name: "decide"}, func() (err error) {
		if a, err = s.Store.Decide(ctx, d); err != nil {
			return err
		}
		for id := a.Session; id != ""; {
			s.wake(id)
			id = id[:max(0, strings.LastIndexByte(id, '/'))]
		}
		return nil
	})
	return a, err
}

func (s *memory) Wake(_ context.Context, session string) error {
	return s.do(op{name: "wake"}, func() error { s.wake(session); return nil })
}

// wake makes a turn due. The caller holds s.mu.
func (s *memory) wake(session string) {
	if at := s.list[session]; at != nil {
		if at.Mark++; at.parked {
			at.parked, at.Since = false, time.Now()
		}
	}
}

// hotClaims is the maximum number of claims at the same time of the fake clock. More
// would be a busy loop.
const hotClaims = 1000

func (s *memory) Claim(ctx context.Context, filter belay.TurnFilter) (due belay.DueTurn, err error) {
	s.mu.Lock()
	s.worker = true
	s.claimed = append(s.claimed, time.Now())
	n := len(s.claimed)
	hot := n > hotClaims && s.claimed[n-1].Equal(s.claimed[n-hotClaims])
	s.mu.Unlock()
	if hot {
		s.t.Error("turns are claimed again and again, and no time passes")
		return due, belay.ErrClosed
	}
	for {
		var found bool
		var wait time.Duration
		s.mu.Lock()
		stirred := s.stirred
		s.mu.Unlock()
		err := s.do(op{name: "claim"}, func() error {
			if due, found, wait = s.claim(filter); !found {
				return errNothingDue
			}
			return nil
		})
		if found || err != errNothingDue { //nolint:errorlint // it is that very one
			return due, err
		}
		next := make(<-chan time.Time)
		if wait > 0 {
			next = time.After(wait)
		}
		select {
		case <-stirred:
		case <-next:
		case <-ctx.Done():
			return due, context.Cause(ctx)
		}
	}
}

var errNothingDue = fmt.Errorf("nothing is due: %w", belay.ErrNotFound)

// claim claims the turn that has been due longest. If no turn is due, wait is the time
// until a turn is due, or 0 if there is no such turn. The caller holds s.mu.
func (s *memory) claim(filter belay.TurnFilter) (due belay.DueTurn, found bool, wait time.Duration) {
	now := time.Now()
	var first *listed
	for _, l := range s.list {
		switch {
		case l.held || slices.Contains(filter.ExceptAgents, l.Agent) || slices.Contains(filter.ExceptModels, l.Model),
			l.Model == "" && slices.Contains(filter.ExceptOwn, l.Agent):
		case l.parked && l.Since.After(now):
			if left := l.Since.Sub(now); !l.Since.Equal(belay.Never) && (wait == 0 || left < wait) {
				wait = left
			}
		case first == nil || cmp.Or(l.Since.Compare(first.Since), cmp.Compare(l.Session, first.Session)) < 0:
			first = l
		}
	}
	if first == nil {
		return due, false, wait
	}
	first.held, first.parked, first.claimed, first.Why = true, false, now, ""
	return first.DueTurn, true, 0
}

func (s *memory) Settle(_ context.Context, due belay.DueTurn, again time.Time) error {
	return s.do(op{name: "settle"}, func() error {
		now := time.Now()
		s.settled = append(s.settled, settlement{due.Session, due.Why, now, again})
		l := s.list[due.Session]
		if l == nil || !l.held {
			return nil
		}
		l.held = false
		queued, same := s.waiting[due.Session], l.Mark == due.Mark
		switch {
		case again.IsZero() && same && len(queued) == 0:
			delete(s.list, due.Session)
		case again.IsZero():
			if l.Since = now; len(queued) > 0 {
				l.Agent, l.Model = queued[0].Agent, queued[0].Model
			}
		case same && again.After(now):
			l.parked, l.Since, l.Why = true, again, due.Why
		default:
			l.Since, l.Why = again, due.Why
			if again.After(now) {
				l.Since = now
			}
		}
		return nil
	})
}

func (s *memory) Load(context.Context) (load belay.Load, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, self := time.Now(), belay.HolderLoad{Self: true, Worker: s.worker}
	for _, l := range s.list {
		switch {
		case l.held:
			self.Turns = append(self.Turns, l.DueTurn)
		case !l.parked || !l.Since.After(now):
			load.Waiting++
			load.OldestAge = max(load.OldestAge, now.Sub(l.Since))
		case l.Why == "":
			load.Parked++
		default:
			put := l.DueTurn
			put.Since, put.Again = l.claimed, l.Since
			load.PutOff = append(load.PutOff, put)
		}
	}
	slices.SortFunc(load.PutOff, func(a, b belay.DueTurn) int { return a.Since.Compare(b.Since) })
	load.PutOff = load.PutOff[:min(20, len(load.PutOff))]
	load.Holders = []belay.HolderLoad{self}
	return load, nil
}

func (s *memory) Changes(ctx context.Context, session string) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		for {
			s.mu.Lock()
			stirred := s.stirred
			s.mu.Unlock()
			found := false
			for info, err := range s.Sessions(ctx, belay.SessionFilter{Prefix: session}) {
				if err != nil || info.ID == session {
					if found = true; !yield(info, err) {
						return
					}
				}
			}
			if !found {
				yield(belay.SessionInfo{}, fmt.Errorf("session %q: %w", session, belay.ErrNotFound))
				return
			}
			select {
			case <-stirred:
			case <-ctx.Done():
				return
			}
		}
	}
}

// settlements returns the settlements of a session, without the first known settlements.
func (s *memory) settlements(session string, known int) (all []settlement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.settled {
		if of.session == session {
			all = append(all, of)
		}
	}
	return all[min(known, len(all)):]
}

// memory passes the suite for stores.
func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.TestTurns(t, func(t testing.TB) belay.TurnStore { return newMemory(t) })
}

// bubble runs a test with a fake clock.
func bubble(t *testing.T, test func(t *testing.T, s *memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newMemory(t)) })
}

// pass lets time pass, and waits until all goroutines are idle.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
