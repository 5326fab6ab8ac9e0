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
	// DefaultGrace is the default of Command.Grace.
	DefaultGrace = 2 * time.Second
	// linger is how long Run waits for more output after the child has ended, if another
	// process still has the pipe open. For example, in `make > >(tee log)` tee ends last.
	linger = 100 * time.Millisecond
	// poll is how often Run checks whether a group has ended.
	poll = 10 * time.Millisecond
)

// Command describes a child process.
type Command struct {
	// Argv is the program and its arguments. If the name has no slash, it is searched for
	// in the PATH of this process.
	Argv []string
	// Dir is the working directory. Defaults to the directory of this process.
	Dir string
	// Env is the whole environment, as KEY=value. Defaults to an empty environment.
	Env []string
	// Stdin is the whole input of the child. A child that does not read it does not block
	// Run.
	Stdin []byte
	// StdinFrom replaces Stdin. It is the standard input itself, such as the end of a pipe,
	// so that you can write to the child while it runs. Run closes the file after the child
	// has it, and also if the child does not start.
	StdinFrom *os.File
	// Stdout gets the child's output. If Write returns an error, Run ends the child. Run
	// does not use Stdout after it has returned. If nil, the output is discarded.
	Stdout io.Writer
	// Stderr gets the child's standard error. The rules of Stdout apply.
	Stderr io.Writer
	// Merged sends standard error to Stdout, in the order in which the child wrote. Stderr
	// is then not used.
	Merged bool
	// Grace is how long the group has between SIGTERM and SIGKILL. Defaults to 2 seconds.
	Grace time.Duration
	// Whole makes Run end the background processes in the child's group when the child ends
	// by itself. By default they continue.
	Whole bool
}

// Exit says how a child ended.
type Exit struct {
	// Code is the exit code, or -1 if a signal ended the child.
	Code int
	// Signal is the signal that ended the child, or nil.
	Signal os.Signal
	// Stopped is why Run ended the child: the cause of the context, or the error of a
	// writer. It is nil if the child ended by itself.
	Stopped error
	// Held means that a background process of the child still had the output open. Its
	// later output is lost.
	Held bool
}

// Run runs a child and returns how it ended. An error means that the child did not start.
// Check errors.Is for exec.ErrNotFound, fs.ErrNotExist and fs.ErrPermission.
//
// When ctx is done, or a writer returns an error, the process group gets SIGTERM. If a
// process still runs after the grace period, the group gets SIGKILL. Run cannot end a
// process that made its own session (setsid). Windows has no such groups: there Run ends
// only the child, at once.
//
// If a child ends by itself, its background processes continue, unless Whole is set.
func Run(ctx context.Context, command *Command) (Exit, error) {
	if command.StdinFrom != nil {
		defer func() { _ = command.StdinFrom.Close() }() // ignore errors: the file was only read
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

// child is a running process. The goroutines that write to it and read from it end before
// Run returns. On Windows they may end later, because a blocked read cannot be interrupted
// there.
type child struct {
	cmd     *exec.Cmd
	stdin   *os.File
	unfed   []byte // the part of the input that is not in the pipe yet
	streams []*stream
	refused chan error // errors of writers, at most one per stream
	exited  chan struct{}
	grace   time.Duration
	whole   bool
}

func (c *child) start(command *Command) (err error) {
	c.cmd = exec.Command(command.Argv[0], command.Argv[1:]...) //nolint:gosec,noctx // running what the caller names is the point; the context ends the group, which CommandContext cannot
	c.cmd.Dir = command.Dir
	c.cmd.Env = append([]string{}, command.Env...) // not nil, because nil would inherit the environment
	c.cmd.SysProcAttr = ownSession()

	var theirs []*os.File // closed here after the child has them
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

// launch starts the child and a goroutine that waits for it. The kernel may tie the child
// to the thread that started it, see tie. So the goroutine keeps that thread.
func (c *child) launch() error {
	c.exited = make(chan struct{})
	started := make(chan error, 1)
	go func() { // ends when the child ends
		defer holdThread()()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // ignore the error: ProcessState has the result
			close(c.exited)
		}
	}()
	return <-started
}

// follow starts the goroutines that write the input and read the output. Input that fits
// into the pipe was already written before the child started, which is faster.
func (c *child) follow() {
	for _, s := range c.streams {
		go s.copy() // ends with the stream, or when settle interrupts it
	}
	switch {
	case c.stdin != nil && len(c.unfed) > 0:
		go func() { // ends when everything is read, or when release closes the pipe
			_, _ = c.stdin.Write(c.unfed) // ignore errors: a child does not have to read all input
			_ = c.stdin.Close()
		}()
	case c.stdin != nil:
		_ = c.stdin.Close()
	}
}

// wait returns when the child has ended, or when ending it has failed.
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
	if exit.Stopped == nil { // the last output may have exceeded the limit of a writer
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
	default: // not even SIGKILL ended the child: it is blocked in the kernel
	}
	return exit
}

// end ends the group. It returns when the group has ended, or when nothing more can be
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

// settle waits a short time for the streams to end. Then it reads what is left in them and
// closes them. It reports whether another process has one of them open.
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
			late = closed // do not wait for the streams that follow
			select {
			case <-s.done:
			default:
				held = s.finish() || held
			}
		}
	}
	return held
}

// release closes this process's ends of the pipes.
func (c *child) release() {
	for _, s := range c.streams {
		s.close()
	}
	if c.stdin != nil {
		_ = c.stdin.Close() // ignore errors: the goroutine that writes may have closed it
	}
}
