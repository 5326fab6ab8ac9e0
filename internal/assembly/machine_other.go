//go:build !linux

package assembly

// machineMemory returns the memory of the machine in bytes, or 0 if it is unknown. Only the
// sandbox uses it, and the sandbox exists only on Linux.
func machineMemory() int64 { return 0 }
