//go:build unix

package declare

import "io/fs"

func executable(mode fs.FileMode) bool { return mode.Perm()&0o111 != 0 }
