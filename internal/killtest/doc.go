// Package killtest contains tests that kill real processes at random times.
//
// A process that runs turns, like `belay run` or `belay worker`, is killed with SIGKILL
// and started again, many times. The process does not know when. Tools, hooks and the
// model write their actions to a log that survives every kill. At the end, the tests
// compare the log with the store, which they read with SQL. The list of rules is in
// check_unix_test.go.
//
// Package crashtest kills a process at known points, one point per run. This package
// kills at random points, to find points that we overlooked.
//
// The random times come from a seed, which every run prints. Set BELAY_KILL_SEED=N to
// repeat a run.
package killtest
