//go:build !unix

package permit

// hasOtherName reports whether a path names a file that has another name too, by a
// hard link. That is not looked for here.
func hasOtherName(string) bool { return false }
