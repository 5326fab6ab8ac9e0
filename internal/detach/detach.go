// Package detach lets the handler of a hook hand over work that goes on after the dispatch,
// so that the journal still gets the end of that work.
package detach

// Work is what such a handler returns as its error. The hook runtime then leaves the run
// started, begins the work, and records the end of the run when the work has ended. An
// explanation does not begin it.
type Work struct { //nolint:errname // it is an error only so that a handler can return it
	// Begin starts the work and returns without waiting for it. When the work has ended, it
	// calls ended once, with why the work failed, or nil. ended returns when the end is
	// recorded.
	Begin func(ended func(err error))
}

// Error says that the handler did not fail. Only a caller that does not know this package
// uses it.
func (w *Work) Error() string { return "the work of the hook continues in the background" }
