// Package detach lets the handler of a hook return while its work continues, so that the
// journal still gets the end of that work.
package detach

import "sync"

// Work is what such a handler returns as its error. The hook runtime then leaves the run
// started, and records the end of the run when [Work.End] is called.
type Work struct { //nolint:errname // it is an error only so that a handler can return it
	mu     sync.Mutex
	ended  bool
	err    error
	record func(err error)
}

// Error says that the handler did not fail. Only a caller that does not know this package
// uses it.
func (w *Work) Error() string { return "the work of the hook continues in the background" }

// End says that the work has ended. err is why it failed, or nil. End returns when the end is
// recorded. Call it once.
func (w *Work) End(err error) {
	w.mu.Lock()
	w.ended, w.err = true, err
	record := w.record
	w.mu.Unlock()
	if record != nil {
		record(err)
	}
}

// OnEnd sets the function that records the end. It calls the function now if the work has
// ended already.
func (w *Work) OnEnd(record func(err error)) {
	w.mu.Lock()
	ended, err := w.ended, w.err
	w.record = record
	w.mu.Unlock()
	if ended {
		record(err)
	}
}
