package hook

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Lease is returned when you install something. Closing the lease removes what you
// installed.
type Lease struct {
	rt      *Runtime
	entries []*installed
	from    uint64 // the number of the first generation that has the entries
	jobs    []string

	mu     sync.Mutex
	closed bool
	until  uint64 // the number of the first generation without the entries
}

// Close removes what the lease added, except what [Runtime.Remove] has already removed. It
// never waits: running turns keep their snapshot. A second call does nothing. If other
// subscriptions name one of the lease's subscriptions in After or Before, Close removes
// nothing and returns an *InUseError. Close the leases of both together with [CloseAll].
func (l *Lease) Close() error { return CloseAll(l) }

// CloseAll closes several leases of one runtime in one step, so that subscriptions that
// depend on each other can be removed together.
func CloseAll(leases ...*Lease) error {
	var rt *Runtime
	for _, l := range leases {
		if l == nil {
			continue
		}
		if rt != nil && l.rt != rt {
			return errors.New("close: the leases belong to different runtimes: close the leases of each runtime separately")
		}
		rt = l.rt
	}
	if rt == nil {
		return nil
	}
	rt.changing.Lock()
	defer rt.changing.Unlock()
	var remove []*installed
	var closing []*Lease
	for _, l := range leases {
		if l != nil && !l.isClosed() {
			remove = append(remove, l.entries...)
			closing = append(closing, l)
		}
	}
	if len(closing) == 0 {
		return nil
	}
	gone, err := rt.change(remove, nil)
	if err != nil {
		return changeError("close", err)
	}
	for _, l := range closing {
		l.close(gone.from)
	}
	return nil
}

// Replace closes the lease and installs subscriptions in its place, in one step: all or
// nothing. The old lease can still be drained.
func (l *Lease) Replace(subs ...Subscription) (*Lease, error) {
	l.rt.changing.Lock()
	defer l.rt.changing.Unlock()
	if l.isClosed() {
		return nil, fmt.Errorf("replace: %w", ErrClosed)
	}
	next, err := l.rt.change(l.entries, subs)
	if err != nil {
		return nil, err
	}
	l.close(next.from)
	return next, nil
}

// changeError says what failed, with the problems of an install error.
func changeError(doing string, err error) error {
	if install, ok := errors.AsType[*InstallError](err); ok {
		err = errors.Join(install.Problems...)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func (l *Lease) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// close marks the lease as closed and removes its job handlers. until is the number of the
// first generation without the lease's entries. The caller holds rt.changing.
func (l *Lease) close(until uint64) {
	l.mu.Lock()
	l.closed, l.until = true, until
	l.mu.Unlock()
	l.rt.forgetJobs(l.jobs)
}

// Drain closes the lease. It then waits until no turn uses what the lease added, and until
// its abandoned and detached runs have ended. Do not call Drain from a handler that the
// lease added: it would wait for its own turn until ctx is done.
func (l *Lease) Drain(ctx context.Context) error {
	if err := l.Close(); err != nil {
		return err
	}
	l.mu.Lock()
	from, until := l.from, l.until
	l.mu.Unlock()
	for {
		g := l.rt.holderOf(from, until)
		if g == nil {
			return nil
		}
		select {
		case <-g.drained:
		case <-ctx.Done():
			return fmt.Errorf("drain: running turns still use the lease: %w", context.Cause(ctx))
		}
	}
}

// holderOf returns a generation in [from, until) that a snapshot still uses, or nil.
func (rt *Runtime) holderOf(from, until uint64) *generation {
	rt.holding.Lock()
	defer rt.holding.Unlock()
	for g := range rt.alive {
		if from <= g.number && g.number < until {
			return g
		}
	}
	return nil
}
