//go:build !unix

package mcptool_test

// ask is for systems with signals.
func ask() int { return 2 }
