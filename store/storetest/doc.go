// Package storetest is the test kit of [belay.Store]. It tests implementations,
// and injects failures to test code that uses a store.
//
// # Usage
//
// [Test] checks a store against the contract of the interface. Call it from a
// test of your store:
//
//	func TestStore(t *testing.T) {
//		storetest.Test(t, func(t testing.TB) belay.Store { return open(t) }, nil)
//	}
//
// [Options] add operations that the interface does not have: opening the stored
// data again, and making a holder count as gone. Package hooktest has suites for
// the journal and the queue of a [belay.JournalStore]. This suite tests that
// they share a transaction with the transcript.
//
// [Faulty] wraps a store so that a commit fails, before or after it was stored.
// A test that moves the failure from the first commit to the last tries every
// place where a store can fail:
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
// The rules of the suite run one after the other, and each opens its own store.
// So open can return the same database each time, if it empties it first. Some
// rules use the store from many goroutines; run them with the race detector. A
// faulty store and its plan are as safe for concurrent use as the store itself.
//
// # Errors
//
// The suite names each rule as a subtest. A failure shows the expected and the
// actual value, field by field. Rules that need an optional interface which the
// store lacks, or an option that was not given, are skipped, and the log lists
// them.
//
// # Testing
//
// The suite is tested against stores that are broken on purpose, one for each
// rule. If you add a rule, add a store that breaks it.
package storetest
