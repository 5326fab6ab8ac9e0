package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// A program in its own namespaces uses three processes:
//
//   - The first process is the one that was started. It stays outside, passes on signals,
//     and ends in the same way as the program.
//   - The second process is the first one inside the new namespaces. It sets them up,
//     starts the program, and then waits for background processes. If the first process
//     is killed, the kernel kills the second. When the second ends, all processes in the
//     namespaces end.
//   - The third process becomes the program, in a session of its own.
//
// If protected paths do not exist, there is a fourth process outside. It removes the
// placeholders after the second process has ended, even if the second process was killed.

// runInside runs a program in its own namespaces and ends with the program's status.
func runInside(o order) error {
	list, made, err := prepare(o.policy)
	if err != nil {
		return err
	}
	caretaker, alive, err := takeCare(made)
	if err != nil {
		return err
	}
	signals := catch()
	p, ours, err := newPlan(o, list)
	if err != nil {
		return err
	}
	pid, err := p.start(cloneFlags(o))
	if err != nil {
		return err
	}
	second, err := unix.PidfdOpen(pid, 0) // a process number can be reused, a pidfd cannot
	if err != nil {
		return fmt.Errorf("follow the sandbox: %w", err)
	}
	for _, f := range append(ours.theirs, alive) {
		if f != nil {
			_ = f.Close() // the second process has its own copy
		}
	}
	end := func() { // waits for the second process and the caretaker
		reap(pid)
		reap(caretaker)
	}
	if err := p.started(ours.report); err != nil {
		end()
		return err
	}
	stderr, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		stderr = -1 // standard error was closed
	}
	if err := letGo(); err != nil {
		return err // returning ends this process, and so kills the others
	}
	count, err := countInside(o.policy.Bounds, pid)
	if err != nil {
		return err // returning ends this process, and so kills the others
	}
	go func() { // ends with this process
		for sig := range signals {
			if sig, ok := sig.(syscall.Signal); ok {
				_ = unix.PidfdSendSignal(second, sig, nil, 0) // the second process may have ended
			}
		}
	}()
	status, left := p.await(ours.status, pid)
	why := count.end()
	switch {
	case why != "":
		_, _ = unix.Write(stderr, []byte(why+"\n")) // no one may read it any more
	case left == leftRunning:
		if err := count.handOver(); err != nil {
			_ = unix.PidfdSendSignal(second, unix.SIGKILL, nil, 0) // without a watcher, the processes must not go on
			_, _ = unix.Write(stderr, []byte("sandbox: "+err.Error()+"\n"))
		}
	case left == leftNothing:
		end()
	}
	runtime.KeepAlive(ours)
	endAs(status)
	return nil
}

// pipe makes a pipe. The Go runtime does not poll its files.
func pipe() (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
}

// cloneFlags returns the clone flags for the namespaces that the policy needs.
func cloneFlags(o order) uintptr {
	flags := uintptr(unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC)
	if !o.policy.Network {
		flags |= unix.CLONE_NEWNET
	}
	if o.means.users {
		flags |= unix.CLONE_NEWUSER
	}
	return flags
}

// ends are the files of the pipes between the first and the second process.
type ends struct {
	report, status *os.File
	theirs         []*os.File
	lifeline       *os.File // closed when the first process ends
}

// start forks the second process.
func (p *plan) start(flags uintptr) (pid int, err error) {
	var child uintptr
	var errno syscall.Errno
	err = withoutSignals(func() { child, errno = p.fork(flags) })
	runtime.KeepAlive(p)
	if errno != 0 {
		return 0, fmt.Errorf("make namespaces: %w", errno)
	}
	return int(child), err
}

// started waits until the program runs. If the start fails, it returns the reason.
func (p *plan) started(report *os.File) error {
	var f failure
	err := binary.Read(report, binary.NativeEndian, &f)
	if errors.Is(err, io.EOF) {
		return nil // the program runs, or the second process has ended: await finds out
	}
	if err != nil {
		return fmt.Errorf("start the sandbox: %w", err)
	}
	switch f.Part {
	case partSetup:
		return p.setup.err(f)
	case partFork:
		return fmt.Errorf("start a process: %w", syscall.Errno(f.Errno))
	}
	err = p.program.err(f)
	if int(f.Index) == len(p.program.calls)-1 {
		err = &startError{err}
	}
	return err
}

// await waits until the program has ended. It returns the program's status, and what is
// still running.
func (p *plan) await(status *os.File, pid int) (how unix.WaitStatus, left leftBehind) {
	var e ending
	if err := binary.Read(status, binary.NativeEndian, &e); err != nil {
		// The second process was killed, and all other processes inside with it.
		if how = reap(pid); !how.Signaled() {
			how = unix.WaitStatus(unix.SIGKILL)
		}
		return how, leftKilled
	}
	if e.Left != 0 {
		return unix.WaitStatus(e.Status), leftRunning
	}
	return unix.WaitStatus(e.Status), leftNothing
}

// leftBehind says what is left in the namespaces after the program has ended.
type leftBehind int

const (
	leftNothing leftBehind = iota
	leftRunning            // background processes are running
	leftKilled             // nothing; the second process was killed
)

// catch receives the signals that are passed to the program, except ignored ones. It does
// not catch all signals, because that would take longer than starting the program.
func catch() <-chan os.Signal {
	caught := make(chan os.Signal, 64)
	for _, sig := range []syscall.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT, unix.SIGWINCH,
	} {
		if !signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
	return caught
}

// letGo replaces standard input, output and error by /dev/null. Readers then see the end
// of the output when the program closes it.
func letGo() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return fmt.Errorf("close the program's files: %w", err)
		}
	}
	_ = null.Close() // it has been copied to 0, 1 and 2
	return nil
}

// reap waits until a child has ended, and returns its status.
func reap(pid int) unix.WaitStatus {
	var status unix.WaitStatus
	for pid > 0 {
		if _, err := unix.Wait4(pid, &status, 0, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return status
}
