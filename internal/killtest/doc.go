// Package killtest holds the tests that kill real processes at random instants.
//
// A process that runs turns, like `belay run` or `belay worker`, is killed with SIGKILL
// and started again, many times. Nothing inside it knows when. Tools, hooks and the
// model write their actions to a log that survives every kill. At the end that log is
// compared with what the store holds, by SQL: see check_unix_test.go for the list of
// what must hold.
//
// Package crashtest kills at known points, one at a time. This package kills at random
// points, to find points that were overlooked.
//
// The instants come from a seed, which every run prints. BELAY_KILL_SEED=N repeats one.
package killtest
