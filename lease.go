package belay

import "sync"

// Lease is returned when you add something: tools, directives, skills, subagents. Closing
// it removes what was added.
type Lease struct {
	mu    sync.Mutex
	state leaseState
	close func() error
}

type leaseState int

const (
	leaseOpen leaseState = iota
	leaseClosing
	leaseClosed
)

// NewLease makes a lease, for extensions to which things can be added. Closing it calls the
// function once.
func NewLease(takeBack func()) *Lease {
	return newLease(func() error { takeBack(); return nil })
}

// newLease makes a lease that stays open if the function fails.
func newLease(takeBack func() error) *Lease { return &Lease{close: takeBack} }

// Close removes what was added. What begins later does not see it any more. After an error
// Close can be called again. If it has succeeded, or is being called, it does nothing.
func (l *Lease) Close() error {
	l.mu.Lock()
	if l.state != leaseOpen {
		l.mu.Unlock()
		return nil
	}
	l.state = leaseClosing
	l.mu.Unlock()
	err := l.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state = leaseClosed; err != nil {
		l.state = leaseOpen
	}
	return err
}
