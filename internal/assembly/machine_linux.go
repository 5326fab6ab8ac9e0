package assembly

import (
	"golang.org/x/sys/unix"
)

// machineMemory is how many bytes of memory the machine has, or 0 if it does not say.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
