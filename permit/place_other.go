//go:build !linux

package permit

// direct reports whether a path certainly contains no symbolic link. It always returns
// false on this system.
func direct(string) bool { return false }
