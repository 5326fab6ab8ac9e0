//go:build !unix

package assembly

import "io/fs"

// isMine always returns true: on these systems the temporary directory belongs to the user.
func isMine(fs.FileInfo) bool { return true }
