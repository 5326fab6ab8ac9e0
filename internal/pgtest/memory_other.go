//go:build !linux

package pgtest

// memory is a directory whose files are in memory alone: there is none.
func memory() string { return "" }
