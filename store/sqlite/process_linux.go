package sqlite

import (
	"bytes"
	"os"
	"strconv"
)

// processStart says when the system started a process: what it says of one it says
// of no other that has, or had, the same id. It is empty if no such process lives.
func processStart(pid int64) string {
	stat, err := os.ReadFile("/proc/" + strconv.FormatInt(pid, 10) + "/stat")
	if err != nil {
		return ""
	}
	// Behind the name, which is in brackets and may hold anything, come the state
	// and, nineteen fields on, the start, in ticks since the system was.
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
