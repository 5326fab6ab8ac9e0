// Package storetest is the test kit for [belay.Store]. It tests implementations of a store.
// It also makes a store fail, to test code that uses a store.
//
// # Usage
//
// [Test] checks a store against the contract of the interface. Call it in a test of your
// store:
//
//	func TestStore(t *testing.T) {
//		storetest.Test(t, func(t testing.TB) belay.Store { return open(t) }, nil)
//	}
//
// [Options] add two operations that the interface does not have: opening the stored data
// again, and making a holder count as gone. Package hooktest has suites for the journal and
// the queue of a [belay.JournalStore]. This suite only tests that a commit stores runs and
// jobs in the same transaction as messages.
//
// [Faulty] wraps a store so that one commit fails, before or after it is stored. To test
// all possible failures, make each commit fail in turn:
//
//	for n := 1; ; n++ {
//		plan := &storetest.Plan{Commit: n}
//		... run with storetest.Faulty(store, plan), look at what is stored ...
//		if !plan.Failed() {
//			break // there was no commit number n
//		}
//	}
//
// # Concurrency
//
// The suite runs its rules one after the other, and each rule opens its own store. So open
// can return the same database each time, if it empties the database first. Some rules use
// the store from many goroutines: run them with the race detector. A faulty store and its
// plan are safe for concurrent use if the store is.
//
// # Errors
//
// Each rule is a subtest with the rule as its name. A failure shows the expected and the
// actual value, field by field. If the store lacks an optional interface, or an option is
// not set, the suite skips the rules that need it. The log lists the skipped rules.
//
// # Testing
//
// The tests of this package run the suite on stores that are broken on purpose. If you add
// a rule, add a store that breaks it.
package storetest
