//go:build !unix

package declare

import "io/fs"

// executable always returns true, because the extension of a file decides whether it can
// run.
func executable(fs.FileMode) bool { return true }
