// Package storetest is the test kit of [belay.Store]: for those who implement
// one, and for those whose code must cope with one that fails.
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
// [Options] add what cannot be done through the interface: opening again what
// is stored, and making a holder look gone. The journal and the queue of a
// [belay.JournalStore] have suites of their own, in package hooktest. This one
// covers what they share with the transcript: a transaction.
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
// The rules of the suite run one after the other, each on a store that it opened
// for itself, so that an implementation may hand out one database, emptied. Some
// of them use it from many goroutines; run them under the race detector. A
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
