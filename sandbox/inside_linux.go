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

// A program in namespaces of its own takes three processes:
//
//   - The first is the one that was started, and stays outside. It passes on signals,
//     and ends as the program ended.
//   - The second is the first of the new namespaces. It sets them up, starts the program,
//     and then waits for background processes. If the first is killed, the kernel
//     kills the second, and when the second ends, all processes in the namespaces end.
//   - The third becomes the program, in a session of its own.
//
// If protected names do not exist, there is one more process outside: it removes the
// placeholders when the second has ended, for whatever reason.

// runInside runs a program in its own namespaces and ends with the same status.
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
	second, err := unix.PidfdOpen(pid, 0) // the number can be reused
	if err != nil {
		return fmt.Errorf("follow the sandbox: %w", err)
	}
	for _, f := range append(ours.theirs, alive) {
		if f != nil {
			_ = f.Close() // the second process owns it now
		}
	}
	end := func() { // if one of the two is left
		reap(pid)
		reap(caretaker)
	}
	if err := p.started(ours.report); err != nil {
		end()
		return err
	}
	stderr, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		stderr = -1 // it was closed
	}
	if err := letGo(); err != nil {
		return err // kill the other processes, too
	}
	count, err := countInside(o.policy.Bounds, pid)
	if err != nil {
		return err // likewise
	}
	go func() { // ends with the process
		for sig := range signals {
			if sig, ok := sig.(syscall.Signal); ok {
				_ = unix.PidfdSendSignal(second, sig, nil, 0) // it has possibly ended already
			}
		}
	}()
	status, left := p.await(ours.status, pid)
	why := count.end()
	switch {
	case why != "":
		_, _ = unix.Write(stderr, []byte(why+"\n")) // the other side is possibly closed
	case left == leftRunning:
		if err := count.handOver(); err != nil {
			_ = unix.PidfdSendSignal(second, unix.SIGKILL, nil, 0) // nobody would count
			_, _ = unix.Write(stderr, []byte("sandbox: "+err.Error()+"\n"))
		}
	case left == leftNothing:
		end()
	}
	runtime.KeepAlive(ours)
	endAs(status)
	return nil
}

// pipe makes a pipe whose ends the Go runtime does not manage.
func pipe() (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
}

// cloneFlags returns the namespaces that a policy needs.
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

// ends are the two ends of the pipes between the first and the second process.
type ends struct {
	report, status *os.File
	theirs         []*os.File
	lifeline       *os.File // is closed when the first process ends
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

// started waits until the program runs, or returns why it does not.
func (p *plan) started(report *os.File) error {
	var f failure
	err := binary.Read(report, binary.NativeEndian, &f)
	if errors.Is(err, io.EOF) {
		return nil // or the second process has ended, which await detects
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

// await waits until the program has ended.
func (p *plan) await(status *os.File, pid int) (how unix.WaitStatus, left leftBehind) {
	var e ending
	if err := binary.Read(status, binary.NativeEndian, &e); err != nil {
		// The second process was killed, and with it all others.
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

// leftBehind is the state of the namespaces after the program has ended.
type leftBehind int

const (
	leftNothing leftBehind = iota
	leftRunning            // processes in the background
	leftKilled             // none, and the second process has ended too
)

// catch receives the signals to pass on. Ignored signals stay ignored. Receiving all
// signals would cost more than starting the program.
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

// letGo closes the program's files, so that readers see their end when the program
// closes them.
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
	_ = null.Close() // no longer needed
	return nil
}

// reap waits until a child has ended.
func reap(pid int) unix.WaitStatus {
	var status unix.WaitStatus
	for pid > 0 {
		if _, err := unix.Wait4(pid, &status, 0, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return status
}
