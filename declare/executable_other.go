//go:build !unix

package declare

import "io/fs"

// executable always reports true here: the file's extension decides whether it
// can be run.
func executable(fs.FileMode) bool { return true }
