//go:build !unix

package toolbox

import (
	"io/fs"
	"os"
)

const (
	nonblocking   = 0
	directoryOnly = 0
)

func keepOwner(*os.File, fs.FileInfo) (group bool, err error) { return true, nil }

func otherNames(fs.FileInfo) int { return 0 }
