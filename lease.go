package belay

import "sync"

// Lease is returned when you add something: tools, directives, skills, subagents. Closing
// it removes what was added.
type Lease struct {
	once  sync.Once
	close func()
}

// NewLease makes a lease, for extensions to which things can be added. Closing it calls the
// function once.
func NewLease(takeBack func()) *Lease { return &Lease{close: takeBack} }

// Close removes what was added. What begins later does not see it any more. Close never
// waits, and a second call does nothing.
func (l *Lease) Close() error {
	l.once.Do(l.close)
	return nil
}
