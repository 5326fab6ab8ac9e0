package sandbox

import (
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel's limits are higher than the bounds by this slack. With this slack, the
// watcher normally acts first. This is better, because only the watcher can name the
// bound. The kernel's limits stop programs that are faster than the watcher.
const (
	slackProcesses = 64
	slackTime      = 5 * time.Second
)

// reservedPIDs is how many low process numbers the kernel reserves and does not reuse.
const reservedPIDs = 300

// boundProcesses makes the kernel limit the number of processes in the namespace. The
// usual limit, RLIMIT_NPROC, does not apply to root.
func (s *script) boundProcesses(o order) {
	most := o.policy.Bounds.Processes
	if most == 0 || !since(6, 14) { // in older kernels pid_max limits the whole machine
		return
	}
	text := strconv.Itoa(min(most+slackProcesses+reservedPIDs, 1<<22))
	open := s.do("bound the number of processes", unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/sys/kernel/pid_max", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	open.unless(2, unix.EACCES, unix.EPERM, unix.ENOENT, unix.EROFS) // no failure: the watcher also counts the processes
	fd := open.result()
	s.do("bound the number of processes", unix.SYS_WRITE, fd, text, len(text)).unless(0, unix.EINVAL, unix.EPERM)
	s.do("close", unix.SYS_CLOSE, fd)
}

// bound sets the kernel's limits for this process. It never raises a limit.
func (s *script) bound(o order) {
	if limit := o.policy.Bounds.CPUTime; limit > 0 { // the limit is for each process
		s.lower("bound the CPU time", unix.RLIMIT_CPU, uint64((limit+slackTime)/time.Second)+1, uint64((limit+2*slackTime)/time.Second)+1)
	}
	if most := o.policy.Bounds.Processes; most > 0 && o.means.users && os.Geteuid() != 0 { // RLIMIT_NPROC counts only processes in the user namespace
		s.lower("bound the number of processes", unix.RLIMIT_NPROC, uint64(most+slackProcesses), uint64(most+slackProcesses))
	}
}

// lower sets a resource limit, unless the process already has a lower one.
func (s *script) lower(what string, limit int, soft, hard uint64) {
	var have unix.Rlimit
	if err := unix.Getrlimit(limit, &have); err == nil {
		hard = min(hard, have.Max)
		soft = min(soft, have.Cur, hard)
	}
	s.do(what, unix.SYS_PRLIMIT64, 0, limit, &unix.Rlimit{Cur: soft, Max: hard}, 0)
}

// since reports whether the kernel has at least this version.
func since(major, minor int) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	return newer(unix.ByteSliceToString(name.Release[:]), major, minor)
}

func newer(release string, major, minor int) bool {
	var have [2]int
	for i := range have {
		digits := 0
		for digits < len(release) && '0' <= release[digits] && release[digits] <= '9' {
			digits++
		}
		n, err := strconv.Atoi(release[:digits])
		if err != nil {
			return false
		}
		have[i] = n
		if release = release[digits:]; release != "" {
			release = release[1:]
		}
	}
	return have[0] > major || have[0] == major && have[1] >= minor
}

// count runs a watcher in the process that stays outside.
type count struct {
	watcher *watcher
	stop    chan struct{}
	done    sync.WaitGroup
	why     string // why the program was killed; valid after done
}

// countInside starts a watcher for the namespaces whose first process is pid.
func countInside(b Bounds, pid int) (*count, error) {
	c := &count{stop: make(chan struct{})}
	if !b.any() {
		return c, nil
	}
	second, err := readStat(pid)
	if err != nil {
		return nil, err
	}
	c.watcher = newWatcher(b, second.process, true)
	c.done.Go(func() { // ends with the program, or after killing it
		if c.why = c.watcher.watch(c.stop); c.why != "" {
			c.watcher.kill()
		}
	})
	return c, nil
}

// end stops the watcher. It returns why the program was killed, or "".
func (c *count) end() string {
	close(c.stop)
	c.done.Wait()
	return c.why
}

// handOver starts a watcher process for the processes that the program left running.
func (c *count) handOver() error {
	if c.watcher == nil {
		return nil
	}
	return c.watcher.detach()
}
