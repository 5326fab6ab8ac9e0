package sandbox

import (
	"errors"
	"fmt"
	"time"
)

// Bounds limit the resources of a program and of everything that it starts. If the bounds
// are exceeded, the program and everything that it started are killed. A line on its
// standard error then names the bound. Zero means no bound.
//
// A process outside checks the use several times a second, so a program can exceed a
// bound for a moment. The kernel also limits the CPU time of each single process. In
// sandboxes of kind [Namespaces], the kernel also limits the number of processes: always
// for normal users, and since Linux 6.14 for root.
type Bounds struct {
	// Memory is how many bytes of memory the processes may use. Memory that several
	// processes share counts once. Files in memory (tmpfs) and swapped memory do not
	// count.
	Memory int64
	// Processes is how many processes and threads may exist at a time.
	Processes int
	// CPUTime is the sum of CPU time that all processes together may use.
	CPUTime time.Duration
	// Settings is the prefix of the names of the settings, such as "sandbox.". The
	// message then names sandbox.memory, sandbox.processes or sandbox.cpu_time. If
	// Settings is empty, the message names no setting.
	Settings string
}

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

// exceeded returns a message about the bound that u exceeds, or "".
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
