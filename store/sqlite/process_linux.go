package sqlite

import (
	"bytes"
	"os"
	"strconv"
)

// processStart returns the start time of a process, which distinguishes it from
// other processes with the same id. It is empty if the process does not live.
func processStart(pid int64) string {
	stat, err := os.ReadFile("/proc/" + strconv.FormatInt(pid, 10) + "/stat")
	if err != nil {
		return ""
	}
	// After the name, which is in brackets and can contain anything, come the
	// state and, nineteen fields later, the start time in clock ticks since boot.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || bytes.ContainsAny(fields[0], "ZXx") { // it is a zombie
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(boot)) + " " + string(fields[19])
}
