// Package hooktest is the test kit of package hook. It is for people who write handlers,
// define phases, or implement a [hook.Journal] or a [hook.Queue].
//
// # Usage
//
// [Try] tries one subscription with one input and returns the result:
//
//	func TestNoSecrets(t *testing.T) {
//		trial := hooktest.Try(t, Upload, NoSecrets, File{name: ".env"}, nil)
//		trial.Denied("looks like a secret")
//		trial.Contributed("deny")
//	}
//
// The handler runs as in a program: the runtime orders and matches it, enforces its limits
// and its capabilities, and records it. [Input] makes the immutable input of a phase from
// JSON. [Descriptor] compares a handler's contract with a golden file, so that nobody
// changes the contract by mistake.
//
// [Clock] is a clock that a test moves by hand. [Misbehaviours] returns one handler for
// each kind of failure that the kit knows, with the expected results. You can also use
// these handlers one by one: [Panics], [Goexits], [Hangs] and so on.
//
// [TestJournal], [TestQueue], [TestWorkQueue] and [TestSecrets] are conformance suites.
// Call them from a test of your journal or queue:
//
//	func TestJournal(t *testing.T) {
//		hooktest.TestJournal(t, func(t testing.TB) hook.Journal { return open(t) })
//	}
//
// # Concurrency
//
// Try dispatches on its own goroutine, so that a handler which calls runtime.Goexit or
// testing.T.FailNow does not end the test. Try returns when everything that the dispatch
// started is over, including detached runs and background jobs. A Clock is safe for
// concurrent use. Use a Trial only on the goroutine of its test.
//
// The rules of a suite run one after the other, and the suite opens a store for each rule.
// So your open function may empty one database and return it each time. Parallel tests of
// several implementations do not disturb each other.
//
// # Errors
//
// A failed assertion calls testing.T.Errorf, and the test continues. The message shows what
// was expected, what happened, and the whole dispatch. If a trial cannot run, for example
// because a subscription cannot be installed, the test ends.
//
// A suite runs each rule as a subtest with the rule's name. If a rule needs an optional
// interface that the implementation does not have, the suite skips the rule and lists it in
// the log.
//
// # Testing
//
// The suites are tested with implementations that are broken on purpose, one for each rule.
// If you add a rule, add an implementation that breaks it.
//
// Set HOOKTEST_UPDATE=1 in the environment to accept new descriptors.
package hooktest
