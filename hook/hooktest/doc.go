// Package hooktest is the test kit of package hook: for those who write
// handlers, for those who define phases, and for those who implement a
// [hook.Journal] or a [hook.Queue].
//
// # Usage
//
// [Try] tries one subscription against one input and tells what came of it:
//
//	func TestNoSecrets(t *testing.T) {
//		trial := hooktest.Try(t, Upload, NoSecrets, File{name: ".env"}, nil)
//		trial.Denied("looks like a secret")
//		trial.Contributed("deny")
//	}
//
// The handler runs as it would in a program: ordered, matched, bounded, held
// to its capabilities and recorded. [Input] builds the immutable input of a
// phase from JSON. [Descriptor] compares what others rely on about a handler
// with a golden file, so that changing it is a decision.
//
// [Clock] is a clock that a test moves by hand. [Misbehaviours] lists handlers
// that fail in every way the kit knows, with what each must lead to; the
// handlers are there by themselves, too: [Panics], [Goexits], [Hangs] and so
// on.
//
// [TestJournal], [TestQueue], [TestWorkQueue] and [TestSecrets] are conformance suites. Whoever
// implements a journal or a queue calls them from a test:
//
//	func TestJournal(t *testing.T) {
//		hooktest.TestJournal(t, func(t testing.TB) hook.Journal { return open(t) })
//	}
//
// # Concurrency
//
// Try dispatches on a goroutine of its own, so that a handler which calls
// runtime.Goexit, or testing.T.FailNow, does not end the test, and returns
// when everything is over that the dispatch set going: runs that nobody waits
// for and background jobs too. A Clock is safe for concurrent use. A Trial
// belongs to the goroutine of its test.
//
// The rules of a suite run one after the other, each on a store that it opened
// for itself, so that an implementation may hand out one database, emptied.
// Parallel tests of several implementations do not disturb each other.
//
// # Errors
//
// A failed assertion is an error of the test, which goes on; its message tells
// what was expected, what came, and how the dispatch went as a whole. What
// keeps a trial from taking place, such as a subscription that cannot be
// installed, ends the test.
//
// A suite names each rule as a subtest. Rules that need an optional interface
// which the implementation lacks are skipped, and the log lists them.
//
// # Testing
//
// The suites are tested against implementations that are broken on purpose,
// one for each rule. Whoever adds a rule adds what breaks it.
//
// Set HOOKTEST_UPDATE=1 in the environment to accept new descriptors.
package hooktest
