//go:build !linux && !darwin

package cli

import "os"

// forgetTyped does nothing here: what was typed ahead counts.
func forgetTyped(*os.File) {}
