package sandbox

import (
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// slack is how far the kernel's limits are above those of the watcher. The watcher can
// name the bound; the kernel stops programs that are faster than the watcher.
const (
	slackProcesses = 64
	slackTime      = 5 * time.Second
)

// reservedPIDs is how many of the first process numbers the kernel does not use again.
const reservedPIDs = 300

// boundProcesses makes the kernel limit the number of processes in the namespace, for
// every user: the usual limit, RLIMIT_NPROC, does not apply to root.
func (s *script) boundProcesses(o order) {
	most := o.policy.Bounds.Processes
	if most == 0 || !since(6, 14) { // before that the file limits the whole machine
		return
	}
	text := strconv.Itoa(min(most+slackProcesses+reservedPIDs, 1<<22))
	open := s.do("bound the number of processes", unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/sys/kernel/pid_max", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	open.unless(2, unix.EACCES, unix.EPERM, unix.ENOENT, unix.EROFS) // the watcher counts anyway
	fd := open.result()
	s.do("bound the number of processes", unix.SYS_WRITE, fd, text, len(text)).unless(0, unix.EINVAL, unix.EPERM)
	s.do("close", unix.SYS_CLOSE, fd)
}

// bound sets the kernel's limits where it has them. Tighter limits stay.
func (s *script) bound(o order) {
	if limit := o.policy.Bounds.CPUTime; limit > 0 { // of each process
		s.lower("bound the CPU time", unix.RLIMIT_CPU, uint64((limit+slackTime)/time.Second)+1, uint64((limit+2*slackTime)/time.Second)+1)
	}
	if most := o.policy.Bounds.Processes; most > 0 && o.means.users && os.Geteuid() != 0 { // counts only those in the user namespace
		s.lower("bound the number of processes", unix.RLIMIT_NPROC, uint64(most+slackProcesses), uint64(most+slackProcesses))
	}
}

// lower lowers a limit of the process.
func (s *script) lower(what string, limit int, soft, hard uint64) {
	var have unix.Rlimit
	if err := unix.Getrlimit(limit, &have); err == nil {
		hard = min(hard, have.Max)
		soft = min(soft, have.Cur, hard)
	}
	s.do(what, unix.SYS_PRLIMIT64, 0, limit, &unix.Rlimit{Cur: soft, Max: hard}, 0)
}

// since reports whether the kernel is of a version or a later one.
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

// count is a watcher in the process outside.
type count struct {
	watcher *watcher
	stop    chan struct{}
	done    sync.WaitGroup
	why     string // why it was killed; written by the goroutine until done
}

// countInside starts to count the processes in the namespaces of a process.
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
	c.done.Go(func() { // ends when the program has ended, or is killed here
		if c.why = c.watcher.watch(c.stop); c.why != "" {
			c.watcher.kill()
		}
	})
	return c, nil
}

// end stops counting. It returns why the program was killed, if it was.
func (c *count) end() string {
	close(c.stop)
	c.done.Wait()
	return c.why
}

// handOver starts a separate watcher for processes that the program left running.
func (c *count) handOver() error {
	if c.watcher == nil {
		return nil
	}
	return c.watcher.detach()
}
