//go:build !linux

package pgtest

// memory returns a directory in memory: there is none here.
func memory() string { return "" }
