//go:build !linux

package assembly

// machineMemory returns 0, because it is not needed: the sandbox exists only on Linux.
func machineMemory() int64 { return 0 }
