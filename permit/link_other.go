//go:build !unix

package permit

// hasOtherName reports whether a file has a second name, a hard link. It always returns
// false on this system.
func hasOtherName(string) bool { return false }
