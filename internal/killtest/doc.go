// Package killtest holds the tests that kill real processes at random instants.
//
// A process that takes turns, as `belay run` or `belay worker` do, is killed with
// SIGKILL and started again, many times. Nothing inside it knows when. Tools, hooks and
// the model write down what they did, each in its own words, to a log that no kill
// erases. At the end that log is compared with what the store holds, by SQL: see
// check_unix_test.go for the list of what must hold.
//
// Package crashtest kills at known points, one at a time. This package kills at
// random points, to find those that nobody thought of.
//
// The instants come from a seed, which every run prints. BELAY_KILL_SEED=N repeats one.
package killtest
