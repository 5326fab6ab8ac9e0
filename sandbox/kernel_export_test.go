//go:build linux

package sandbox

// KernelSince reports whether the kernel is of a version or a later one.
func KernelSince(major, minor int) bool { return since(major, minor) }
