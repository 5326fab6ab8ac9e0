package sandbox

import (
	"errors"
	"fmt"
	"time"
)

// Bounds limit the resources of a program and everything that it starts. A program that
// exceeds a bound is killed with everything that it started, and a line on its standard
// error names the bound. Zero means no bound.
//
// A process beside the program counts several times a second, so a program can exceed a
// bound for a moment. The number of processes is also bounded by the kernel, in sandboxes
// of kind [Namespaces]: for root since Linux 6.14, for other users always. So is the CPU
// time of a single process, in all kinds.
type Bounds struct {
	// Memory is how many bytes of memory the processes may use. Memory that several of them
	// share counts once. Files in memory (tmpfs) and swapped memory do not count.
	Memory int64
	// Processes is how many processes and threads there may be at a time.
	Processes int
	// CPUTime is how much CPU time the processes may use, all added up.
	CPUTime time.Duration
	// Settings is the prefix of the settings for the bounds, such as "sandbox.": the
	// message then names sandbox.memory, sandbox.processes or sandbox.cpu_time. If it is
	// empty, the message names no setting.
	Settings string
}

// any reports whether any bound is set.
func (b *Bounds) any() bool { return b.Memory > 0 || b.Processes > 0 || b.CPUTime > 0 }

func (b *Bounds) check() error {
	if b.Memory < 0 || b.Processes < 0 || b.CPUTime < 0 {
		return errors.New("sandbox: bounds: a bound is negative: use 0 for none")
	}
	return nil
}

// usage is the resource use of a program and everything that it started.
type usage struct {
	memory    int64
	processes int
	cpu       time.Duration
}

// exceeded returns which bound a usage exceeds, or "".
func (b *Bounds) exceeded(u usage) string {
	var text, name string
	switch {
	case b.Processes > 0 && u.processes > b.Processes:
		text, name = fmt.Sprintf("it had more than %d processes and threads", b.Processes), "processes"
	case b.Memory > 0 && u.memory > b.Memory:
		text, name = fmt.Sprintf("it used more than %s of memory", megabytes(b.Memory)), "memory"
	case b.CPUTime > 0 && u.cpu > b.CPUTime:
		text, name = fmt.Sprintf("it used more than %s of CPU time", b.CPUTime), "cpu_time"
	default:
		return ""
	}
	text = "sandbox: the command was killed: " + text
	if b.Settings != "" {
		text += ": the setting " + b.Settings + name + " changes this bound"
	}
	return text
}

func megabytes(bytes int64) string { return fmt.Sprintf("%d MB", (bytes+999_999)/1_000_000) }
