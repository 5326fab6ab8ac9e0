//go:build !unix

package toolbox

import (
	"io/fs"
	"os"
)

const nonblocking = 0

func keepOwner(*os.File, fs.FileInfo) {}

func otherNames(fs.FileInfo) int { return 0 }
