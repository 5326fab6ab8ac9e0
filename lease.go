package belay

import "sync"

// Lease is what adding something returns: tools, directives, skills, subagents.
// Closing it takes back what was added.
type Lease struct {
	once  sync.Once
	close func()
}

// NewLease makes a lease, for an extension that has things added to it. Closing it
// calls the function, once.
func NewLease(takeBack func()) *Lease { return &Lease{close: takeBack} }

// Close takes back what was added: nothing that begins later finds it. It never
// waits, and twice is harmless.
func (l *Lease) Close() error {
	l.once.Do(l.close)
	return nil
}
