package sqlite

import (
	"bytes"
	"os"
	"strconv"
)

// processStart identifies a process by its start time, to distinguish it from other
// processes with the same id. It returns "" if the process is not alive.
func processStart(pid int64) string {
	stat, err := os.ReadFile("/proc/" + strconv.FormatInt(pid, 10) + "/stat")
	if err != nil {
		return ""
	}
	// The process name is in parentheses and can contain any character. After it come the
	// state and, 19 fields later, the start time in clock ticks since boot.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || bytes.ContainsAny(fields[0], "ZXx") { // Z and X mean that the process has ended
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(boot)) + " " + string(fields[19])
}
