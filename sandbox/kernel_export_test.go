//go:build linux

package sandbox

// KernelSince reports whether the kernel has at least this version.
func KernelSince(major, minor int) bool { return since(major, minor) }
