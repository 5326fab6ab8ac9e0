package proc

import (
	"bytes"
	"os"
	"strconv"
)

// allDead reports whether every process of a group is dead, although not yet reaped. It
// reads the process table, which is slow. So it is called only for a group that should end.
func allDead(group int) bool {
	proc, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer func() { _ = proc.Close() }() // ignore errors: the directory was only read
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return false
	}
	want := []byte(strconv.Itoa(group))
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // the process ended meanwhile
		}
		// The format is: pid (name) state parent group ... The name may contain anything,
		// even brackets.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 2 && bytes.Equal(fields[2], want) && fields[0][0] != 'Z' && fields[0][0] != 'X' {
			return false
		}
	}
	return true
}
