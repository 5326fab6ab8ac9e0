package belay

import "sync"

// Lease is returned when you add something: tools, directives, skills or subagents. Close
// it to remove what you added.
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

// NewLease makes a lease whose Close calls the function once. Use it in extensions that let
// callers add things.
func NewLease(takeBack func()) *Lease {
	return newLease(func() error { takeBack(); return nil })
}

// newLease makes a lease that stays open if the function returns an error.
func newLease(takeBack func() error) *Lease { return &Lease{close: takeBack} }

// Close removes what was added. Steps and turns that begin later do not have it. After an
// error you can call Close again. Close does nothing while another call of Close runs,
// and after Close has succeeded.
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
