package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds are checked by a watcher. The watcher reads /proc, adds up the use of all
// processes, and kills the program if it exceeds a bound. The kernel cannot do this
// alone: most machines do not let a user make a cgroup, and other limits apply to a
// single process or to all processes of a user. In a sandbox of kind Namespaces, the
// process that stays outside is the watcher. In other kinds, and for background
// processes, the watcher is a separate process.

const (
	// watchMarker is the first argument of a watcher process.
	watchMarker = "@belay-sandbox-watch-1"
	// watchFirst is the delay before the first check. Most programs end earlier.
	watchFirst = 30 * time.Millisecond
	// watchPause is the shortest time between two checks. The pause is at least
	// watchShare times as long as a check, so that the watcher uses little CPU time.
	watchPause = 100 * time.Millisecond
	watchShare = 20
)

// process identifies a process. The number alone is not enough, because the kernel reuses
// numbers.
type process struct {
	pid   int
	start uint64 // in clock ticks since the machine started
}

// watcher watches a program and everything that it starts.
type watcher struct {
	bounds Bounds
	root   process
	// contained means that the root is not the program, but the first process of its
	// namespace. All processes then end with the root.
	contained bool
	// groups are the process groups and sessions that the program and its descendants
	// have made. They identify processes whose parent has ended.
	groups map[int]bool
	known  map[process]bool // the program's processes at the last check
	// stderr is the file that was the program's standard error at its start. The watcher
	// writes its message only if the program has not replaced this file since.
	stderr fileID
}

type fileID struct{ device, inode uint64 }

// idOf returns the id of the file of a descriptor. The zero value means no file.
func idOf(fd int) fileID {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return fileID{}
	}
	return fileID{s.Dev, s.Ino}
}

func newWatcher(b Bounds, root process, contained bool) *watcher {
	return &watcher{bounds: b, root: root, contained: contained, groups: map[int]bool{root.pid: true}}
}

// stat has the fields of /proc/PID/stat that the watcher needs.
type stat struct {
	process

	state                  byte
	parent, group, session int
	threads                int
	pages                  int64
	ticks                  uint64 // CPU time of the process and its ended children
}

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat") //nolint:gosec // a number
	if err != nil {
		return stat{}, err
	}
	s, ok := parseStat(pid, data)
	if !ok {
		return stat{}, fmt.Errorf("/proc/%d/stat: unexpected text %q", pid, data)
	}
	return s, nil
}

func parseStat(pid int, data []byte) (stat, bool) {
	end := bytes.LastIndexByte(data, ')') // the program's name can contain anything, even a bracket
	if end < 0 {
		return stat{}, false
	}
	fields := strings.Fields(string(data[end+1:]))
	if len(fields) < 22 || len(fields[0]) != 1 {
		return stat{}, false
	}
	ok := true
	number := func(field int) int64 { // fields count from 1, as in the manual page proc_pid_stat(5)
		n, err := strconv.ParseInt(fields[field-3], 10, 64)
		ok = ok && err == nil
		return n
	}
	s := stat{
		process: process{pid, uint64(number(22))}, state: fields[0][0],
		parent: int(number(4)), group: int(number(5)), session: int(number(6)), threads: int(number(20)), pages: number(24),
	}
	for field := 14; field <= 17; field++ {
		s.ticks += uint64(max(number(field), 0))
	}
	return s, ok
}

// look returns the processes of the program.
func (w *watcher) look() ([]stat, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close() // only read, so an error does not matter
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	children := map[int][]int{} // for each parent, indexes in all
	var all []stat
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil { // on an error, the process has ended
			children[s.parent] = append(children[s.parent], len(all))
			all = append(all, s)
		}
	}
	taken := make([]bool, len(all))
	var ours []stat
	var take func(i int)
	take = func(i int) {
		if taken[i] {
			return
		}
		taken[i] = true
		ours = append(ours, all[i])
		for _, child := range children[all[i].pid] {
			take(child)
		}
	}
	for i := range all {
		s := &all[i]
		if s.process == w.root || w.known[s.process] || s.start >= w.root.start && (w.groups[s.group] || w.groups[s.session]) {
			take(i)
		}
	}
	w.remember(ours)
	return ours, nil
}

// remember stores the processes, groups and sessions of the program. It forgets numbers
// that are no longer used, because the kernel may reuse them.
func (w *watcher) remember(ours []stat) {
	known, groups := make(map[process]bool, len(ours)), map[int]bool{}
	for i := range ours {
		known[ours[i].process] = true
		groups[ours[i].pid] = true
	}
	for i := range ours {
		for _, id := range []int{ours[i].group, ours[i].session} {
			if w.groups[id] {
				groups[id] = true
			}
		}
	}
	w.known, w.groups = known, groups
}

// ticksPerSecond is the unit of times in /proc. It is the same on all supported machines.
const ticksPerSecond = 100

// use adds up the resource use of processes.
func (w *watcher) use(ours []stat) usage {
	var u usage
	for i := range ours {
		s := &ours[i]
		u.cpu += time.Duration(s.ticks) * time.Second / ticksPerSecond
		if w.contained && s.process == w.root {
			continue
		}
		u.processes += max(s.threads, 1)
		u.memory += s.pages * int64(os.Getpagesize())
	}
	if w.bounds.Memory == 0 || u.memory <= w.bounds.Memory {
		return u
	}
	// The sum counts shared memory several times. Now count exactly, which is slower.
	u.memory = 0
	for i := range ours {
		if s := &ours[i]; !w.contained || s.process != w.root {
			u.memory += share(s)
		}
	}
	return u
}

// share returns the memory of a process, with its share of shared memory. If the share
// cannot be read, it returns all memory of the process.
func share(s *stat) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(s.pid) + "/smaps_rollup") //nolint:gosec // a number
	if err == nil {
		for line := range strings.Lines(string(data)) {
			if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
				if kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64); err == nil {
					return kb * 1024
				}
			}
		}
	}
	return s.pages * int64(os.Getpagesize())
}

// watch checks the use again and again. It returns why the program must be killed, or ""
// when all processes have ended or stop is closed.
func (w *watcher) watch(stop <-chan struct{}) string {
	pause := watchFirst
	for {
		timer := time.NewTimer(pause)
		select {
		case <-stop:
			timer.Stop()
			return ""
		case <-timer.C:
		}
		began := time.Now()
		ours, err := w.look()
		if err != nil {
			return fmt.Sprintf("sandbox: the command was killed: cannot read its resource use: %v", err)
		}
		if !running(ours) || w.contained && !w.known[w.root] {
			return ""
		}
		if why := w.bounds.exceeded(w.use(ours)); why != "" {
			return why
		}
		pause = max(watchPause, watchShare*time.Since(began))
	}
}

// running reports whether at least one of the processes has not ended.
func running(ours []stat) bool {
	for i := range ours {
		if ours[i].state != 'Z' && ours[i].state != 'X' {
			return true
		}
	}
	return false
}

// kill kills the program and everything that it started.
func (w *watcher) kill() {
	if w.contained {
		_ = unix.Kill(w.root.pid, unix.SIGKILL) // the kernel then kills the other processes of the namespace
		return
	}
	// Stop all processes before killing any: a stopped process cannot start new ones.
	for _, sig := range []syscall.Signal{unix.SIGSTOP, unix.SIGKILL} {
		for seen := (map[process]bool{}); ; {
			ours, err := w.look()
			if err != nil {
				return
			}
			fresh := false
			for i := range ours {
				if p := ours[i].process; !seen[p] {
					fresh, seen[p] = true, true
					_ = unix.Kill(p.pid, sig) // the process may have ended
				}
			}
			if !fresh {
				break
			}
		}
	}
}

// arguments encodes the watcher as arguments for runWatcher.
func (w *watcher) arguments() []string {
	return []string{
		"belay-sandbox", watchMarker, strconv.Itoa(w.root.pid), strconv.FormatUint(w.root.start, 10), strconv.FormatBool(w.contained),
		strconv.FormatInt(w.bounds.Memory, 10), strconv.Itoa(w.bounds.Processes), w.bounds.CPUTime.String(), w.bounds.Settings,
		strconv.FormatUint(w.stderr.device, 10), strconv.FormatUint(w.stderr.inode, 10),
	}
}

// parseWatcher decodes the arguments after the marker.
func parseWatcher(args []string) (*watcher, error) {
	if len(args) != 9 {
		return nil, fmt.Errorf("%d arguments", len(args))
	}
	pid, err1 := strconv.Atoi(args[0])
	start, err2 := strconv.ParseUint(args[1], 10, 64)
	contained, err3 := strconv.ParseBool(args[2])
	memory, err4 := strconv.ParseInt(args[3], 10, 64)
	processes, err5 := strconv.Atoi(args[4])
	cpu, err6 := time.ParseDuration(args[5])
	device, err7 := strconv.ParseUint(args[7], 10, 64)
	inode, err8 := strconv.ParseUint(args[8], 10, 64)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		return nil, err
	}
	w := newWatcher(Bounds{Memory: memory, Processes: processes, CPUTime: cpu, Settings: args[6]}, process{pid, start}, contained)
	w.stderr = fileID{device, inode}
	return w, nil
}

// runWatcher is the main function of a separate watcher process.
func runWatcher(args []string) error {
	w, err := parseWatcher(args)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	why := w.watch(nil)
	if why == "" {
		return nil
	}
	// Open standard error only now: an open file would keep readers from seeing its end.
	stderr, err := os.OpenFile("/proc/"+strconv.Itoa(w.root.pid)+"/fd/2", os.O_WRONLY|os.O_APPEND|unix.O_NONBLOCK, 0)
	if s, gone := readStat(w.root.pid); err == nil && gone == nil && s.process == w.root && w.stderr != (fileID{}) && idOf(int(stderr.Fd())) == w.stderr {
		fmt.Fprintln(stderr, why)
	}
	w.kill()
	return nil
}

// detach starts a watcher process that is not a child of this process. This process
// becomes the program, or ends before the watcher does.
func (w *watcher) detach() error {
	argv, err := syscall.SlicePtrFromStrings(w.arguments())
	if err != nil {
		return fmt.Errorf("start the resource watcher: %w", err)
	}
	env, err := syscall.SlicePtrFromStrings(nil)
	if err != nil {
		return fmt.Errorf("start the resource watcher: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close() //nolint:errcheck // it was only for the watcher
	report, theirs, err := pipe()
	if err != nil {
		return err
	}
	defer report.Close() //nolint:errcheck // it was only read
	s := &script{}
	s.do("begin a session", unix.SYS_SETSID)
	s.do("leave the directory", unix.SYS_CHDIR, "/")
	for fd := range 3 {
		s.do("close the program's files", unix.SYS_DUP3, int(null.Fd()), fd, 0)
	}
	s.leaveDescriptors()
	s.do("unblock signals", unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, new(unix.Sigset_t), 0, sigsetSize)
	s.do("run", unix.SYS_EXECVE, "/proc/self/exe", &argv[0], &env[0])
	var child uintptr
	var errno syscall.Errno
	failed := new(failure)
	err = withoutSignals(func() { child, errno = s.forkTwice(failed, theirs.Fd(), address(failed)) })
	runtime.KeepAlive(s)
	_ = theirs.Close() // the watcher has a copy
	if errno != 0 {
		return fmt.Errorf("start the resource watcher: %w", errno)
	}
	if err != nil {
		return err
	}
	reap(int(child))
	var f [12]byte
	if n, _ := report.Read(f[:]); n > 0 { // the pipe closes without data when the watcher runs
		return errors.New("cannot start the process that watches resource use")
	}
	return nil
}

// forkTwice runs the script in a process whose parent has ended, so that it is not a
// child of this process.
//
//go:norace
//go:nosplit
//go:noinline
func (s *script) forkTwice(failed *failure, report, at uintptr) (uintptr, syscall.Errno) {
	pid, errno := fork(0)
	if pid == 0 && errno == 0 {
		if pid, errno = fork(0); pid == 0 && errno == 0 {
			s.run(failed) // returns only on failure
			_, _ = raw(unix.SYS_WRITE, report, at, 12, 0)
		}
		if errno != 0 {
			_, _ = raw(unix.SYS_WRITE, report, at, 12, 0)
		}
		exit()
	}
	return pid, errno
}

// watchThis starts a watcher process for this process and its children.
func watchThis(o order) error {
	if !o.policy.Bounds.any() {
		return nil
	}
	self, err := readStat(os.Getpid())
	if err != nil {
		return fmt.Errorf("start the resource watcher: %w", err)
	}
	w := newWatcher(o.policy.Bounds, self.process, o.kind == Bubblewrap) // all processes of bwrap end with its first process
	w.stderr = idOf(2)
	return w.detach()
}
