//go:build !unix

package declare

import "io/fs"

// executable cannot tell here: the name of a file says whether it can be run.
func executable(fs.FileMode) bool { return true }
