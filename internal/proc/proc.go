package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// DefaultGrace is how long a group has between SIGTERM and SIGKILL.
	DefaultGrace = 2 * time.Second
	// linger is how long Run waits for output after the child has ended while
	// another process still holds the pipe open: in `make > >(tee log)`, tee ends
	// last.
	linger = 100 * time.Millisecond
	// poll is how often a group that was told to end is checked.
	poll = 10 * time.Millisecond
)

// Command is a child to run.
type Command struct {
	// Argv is the program and its arguments. A name without a slash is looked up
	// in this process's PATH.
	Argv []string
	// Dir is the working directory. Defaults to that of this process.
	Dir string
	// Env is the whole environment, as KEY=value. Defaults to an empty one.
	Env []string
	// Stdin is the child's whole input. A child that does not read it does not
	// block Run. Defaults to nothing.
	Stdin []byte
	// StdinFrom is the child's standard input itself, in place of Stdin, such as the
	// end of a pipe that is written to while the child runs. Run closes it once the
	// child has it, or if the child does not start. Defaults to Stdin.
	StdinFrom *os.File
	// Stdout gets the child's output. If it returns an error, the child is ended.
	// It is not used after Run has returned. Defaults to discarding the output.
	Stdout io.Writer
	// Stderr is the same for standard error.
	Stderr io.Writer
	// Merged sends standard error to Stdout, in the order in which the child
	// wrote. Stderr is not used then. Defaults to keeping them apart.
	Merged bool
	// Grace is how long the group has between SIGTERM and SIGKILL. Defaults to 2
	// seconds.
	Grace time.Duration
	// Whole also kills background processes in the child's process group when the
	// child ends by itself. Defaults to leaving them running.
	Whole bool
}

// Exit describes how a child ended.
type Exit struct {
	// Code is its exit code, or -1 if a signal ended it.
	Code int
	// Signal is the signal that ended it, if one did.
	Signal os.Signal
	// Stopped is why Run ended it: the cause of the context, or the error of the
	// writer that rejected its output. It is nil if the child ended by itself.
	Stopped error
	// Held means that a background process of the child still held its output open.
	// Its later output is lost.
	Held bool
}

// Run runs a child and returns how it ended. An error means that the child did
// not start: check errors.Is for exec.ErrNotFound, fs.ErrNotExist and
// fs.ErrPermission.
//
// When ctx ends, or a writer rejects output, the process group gets SIGTERM and,
// if a process is left after the grace period, SIGKILL. A process that made a
// session of its own (setsid) is out of reach. Windows has no such groups: there
// the child alone is ended, at once.
//
// Background processes of a child that ends by itself continue, unless the
// command says otherwise.
func Run(ctx context.Context, command *Command) (Exit, error) {
	if command.StdinFrom != nil {
		defer func() { _ = command.StdinFrom.Close() }() // it was only read from; starting is faster
	}
	if len(command.Argv) == 0 {
		return Exit{}, errors.New("run: there is no command")
	}
	if ctx.Err() != nil {
		return Exit{}, context.Cause(ctx)
	}
	c := &child{refused: make(chan error, 2), grace: command.Grace, whole: command.Whole}
	if c.grace <= 0 {
		c.grace = DefaultGrace
	}
	if err := c.start(command); err != nil {
		return Exit{}, err
	}
	return c.wait(ctx), nil
}

// child is a running process. The goroutines that feed and read it end before
// Run returns, except on Windows, where a blocked read cannot be interrupted.
type child struct {
	cmd     *exec.Cmd
	stdin   *os.File
	unfed   []byte // the part of its input that is not in the pipe yet
	streams []*stream
	refused chan error // errors of writers; one for each stream
	exited  chan struct{}
	grace   time.Duration
	whole   bool
}

func (c *child) start(command *Command) (err error) {
	c.cmd = exec.Command(command.Argv[0], command.Argv[1:]...) //nolint:gosec,noctx // running what the caller names is the point; the context ends the group, which CommandContext cannot
	c.cmd.Dir = command.Dir
	c.cmd.Env = append([]string{}, command.Env...) // nil would inherit
	c.cmd.SysProcAttr = ownSession()

	var theirs []*os.File // closed here once the child has them
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		if err != nil {
			c.release()
		}
	}()
	switch {
	case command.StdinFrom != nil:
		theirs, c.cmd.Stdin = append(theirs, command.StdinFrom), command.StdinFrom
	case command.Stdin != nil:
		r, w, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("run %s: %w", command.Argv[0], err)
		}
		theirs, c.cmd.Stdin, c.stdin = append(theirs, r), r, w
		c.unfed = Offer(w, command.Stdin)
	}
	attach := func(to io.Writer) (*os.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", command.Argv[0], err)
		}
		theirs = append(theirs, w)
		c.streams = append(c.streams, newStream(r, to, c.refused))
		return w, nil
	}
	if command.Stdout != nil {
		w, err := attach(command.Stdout)
		if err != nil {
			return err
		}
		c.cmd.Stdout = w
	}
	switch {
	case command.Merged:
		c.cmd.Stderr = c.cmd.Stdout
	case command.Stderr != nil:
		w, err := attach(command.Stderr)
		if err != nil {
			return err
		}
		c.cmd.Stderr = w
	}
	if err := c.launch(); err != nil {
		return fmt.Errorf("run %s: %w", command.Argv[0], err)
	}
	c.follow()
	return nil
}

// launch starts the child and a goroutine that waits for it. If the child is tied
// to the thread that started it, that goroutine holds the thread.
func (c *child) launch() error {
	c.exited = make(chan struct{})
	started := make(chan error, 1)
	go func() { // ends with the child
		defer holdThread()()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // ProcessState has the result
			close(c.exited)
		}
	}()
	return <-started
}

// follow starts the goroutines that feed and read a child. Input that fits into a
// pipe is written before the child starts, which saves a wait.
func (c *child) follow() {
	for _, s := range c.streams {
		go s.copy() // ends with the stream, or when settle interrupts it
	}
	switch {
	case c.stdin != nil && len(c.unfed) > 0:
		go func() { // ends when all is read, or when release closes the pipe
			_, _ = c.stdin.Write(c.unfed) // a child does not have to read all of its input
			_ = c.stdin.Close()
		}()
	case c.stdin != nil:
		_ = c.stdin.Close()
	}
}

// wait returns when the child has ended, by itself or because it was stopped.
func (c *child) wait(ctx context.Context) Exit {
	exit := Exit{Code: -1}
	select {
	case <-c.exited:
	case <-ctx.Done():
		exit.Stopped = context.Cause(ctx)
	case exit.Stopped = <-c.refused:
	}
	if exit.Stopped != nil || c.whole && groupAlive(c.cmd.Process.Pid) {
		c.end()
	}
	exit.Held = c.settle()
	c.release()
	if exit.Stopped == nil { // the end of the output can have exceeded the limit
		select {
		case exit.Stopped = <-c.refused:
		default:
		}
	}
	select {
	case <-c.exited:
		exit.Code = c.cmd.ProcessState.ExitCode()
		if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			exit.Signal = status.Signal()
		}
	default: // even SIGKILL did not end it: the kernel blocks it
	}
	return exit
}

// end ends the group, and returns when it has ended or nothing more can be
// done.
func (c *child) end() {
	pid := c.cmd.Process.Pid
	askToEnd(c.cmd.Process)
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	timer := time.NewTimer(c.grace)
	defer timer.Stop()
	for {
		select {
		case <-ticker.C:
			if c.hasExited() && !groupAlive(pid) {
				return
			}
			continue
		case <-timer.C:
		}
		break
	}
	forceToEnd(c.cmd.Process)
	last := time.NewTimer(c.grace)
	defer last.Stop()
	select {
	case <-c.exited:
	case <-last.C:
	}
}

func (c *child) hasExited() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// settle gives the streams time to end, and then closes them after reading
// their content. It reports whether another process holds one of them open.
func (c *child) settle() (held bool) {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	late := timer.C
	for _, s := range c.streams {
		select {
		case <-s.done:
		case <-late:
			closed := make(chan time.Time)
			close(closed)
			late = closed // for those that follow
			select {
			case <-s.done:
			default:
				held = s.finish() || held
			}
		}
	}
	return held
}

// release closes this side of the pipes.
func (c *child) release() {
	for _, s := range c.streams {
		s.close()
	}
	if c.stdin != nil {
		_ = c.stdin.Close() // the feeding goroutine can have closed it already
	}
}
