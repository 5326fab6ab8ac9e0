//go:build !linux

package assembly

// machineMemory is how many bytes of memory the machine has, or 0 if it does not say. It is
// for the sandbox, which there is on Linux only.
func machineMemory() int64 { return 0 }
