//go:build !linux

package cli

// landlockVersion is 0: Landlock is of Linux.
func landlockVersion() int { return 0 }
