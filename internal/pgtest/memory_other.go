//go:build !linux

package pgtest

// memory returns "", because only Linux has a known directory in memory.
func memory() string { return "" }
