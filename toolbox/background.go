package toolbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/proc"
)

// The names of the tools that [Background] adds.
const (
	ShellListTool   = "shell_list"
	ShellOutputTool = "shell_output"
	ShellStopTool   = "shell_stop"
)

// Background runs shell commands in the background: it is an extension with tools that list
// them, read their output and stop them. Set [Options].Background, and the shell can start
// such commands. They pass the same permission check and run in the same sandbox as other
// commands.
//
// A command ends when it is stopped, when its session is closed, or when the agent is
// closed. Commands do not survive the process. It is safe for concurrent use.
type Background struct {
	opts BackgroundOptions

	mu       sync.Mutex
	commands []*backgroundCommand // in the order of their start
	number   int
	closed   bool
}

// BackgroundOptions are the options of [NewBackground]. A nil *BackgroundOptions is valid.
type BackgroundOptions struct {
	// Session limits the commands that a session runs at the same time, and Total those of
	// all sessions. Default to 8 and 32.
	Session, Total int
	// Output is how many bytes of the output of each command are kept: the last ones.
	// Defaults to 1 MiB.
	Output int
}

// BackgroundCommand describes a command that runs, or has run, in the background.
type BackgroundCommand struct {
	ID          string    `json:"id"`
	Session     string    `json:"session"`
	Command     string    `json:"command"`
	Description string    `json:"description,omitempty"`
	Started     time.Time `json:"started"`
	Running     bool      `json:"running"`
	// Ended is set if the command has ended.
	Ended time.Time `json:"ended,omitzero"`
	// ExitCode is the exit code. It is -1 if a signal ended the command; Signal then names
	// the signal.
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`
	// Bytes is the size of the output so far.
	Bytes int64 `json:"bytes"`
}

// BackgroundView is the render data of shell for a command in the background, and of
// shell_output, shell_stop and shell_list.
type BackgroundView struct {
	Kind     string              `json:"kind"` // "background"
	Commands []BackgroundCommand `json:"commands"`
}

// mostEnded is how many commands that have ended are remembered for a session, and
// mostEndedInAll for all other sessions together.
const (
	mostEnded      = 16
	mostEndedInAll = 128
)

var (
	_ belay.ToolExtension  = (*Background)(nil)
	_ belay.CloseExtension = (*Background)(nil)
)

// NewBackground returns an extension for commands in the background.
func NewBackground(opts *BackgroundOptions) *Background {
	b := &Background{}
	if opts != nil {
		b.opts = *opts
	}
	b.opts.Session, b.opts.Total, b.opts.Output = cmp.Or(b.opts.Session, 8), cmp.Or(b.opts.Total, 32), cmp.Or(b.opts.Output, maxOutput)
	return b
}

// Name returns "background". Errors use it.
func (*Background) Name() string { return "background" }

// Close stops all commands, and waits for their end.
func (b *Background) Close(context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stopAll(func(*backgroundCommand) bool { return true })
	return nil
}

// Shared returns the same extension for another agent, such as a subagent. Closing that
// agent does not stop the commands of others.
func (b *Background) Shared() belay.Extension { return sharedBackground{b} } //nolint:ireturn // its concrete type is private

type sharedBackground struct{ all *Background }

var _ belay.ToolExtension = sharedBackground{}

func (sharedBackground) Name() string          { return "background" }
func (s sharedBackground) Tools() []belay.Tool { return s.all.Tools() }

// List returns the commands of a session, and those of all sessions if session is "". The
// first started comes first.
func (b *Background) List(session string) []BackgroundCommand {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []BackgroundCommand
	for _, c := range b.commands {
		if session == "" || c.about.Session == session {
			all = append(all, c.describe())
		}
	}
	return all
}

// Output returns the kept output of a command. The error is belay.ErrNotFound if the session
// has no such command; session "" stands for any.
func (b *Background) Output(session, id string) (string, error) {
	c, err := b.find(session, id)
	if err != nil {
		return "", err
	}
	text, _, _ := c.output.after(0)
	return text, nil
}

// Stop stops a command, and returns when it has ended. See [Background.Output] for errors.
func (b *Background) Stop(ctx context.Context, session, id string) error {
	c, err := b.find(session, id)
	if err != nil {
		return err
	}
	c.cancel(errStopped)
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errStopped is the cause with which a command is stopped.
var errStopped = errors.New("the command was stopped")

func (b *Background) find(session, id string) (*backgroundCommand, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.commands {
		if c.about.ID == id && (session == "" || c.about.Session == session) {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no command %q in the background", belay.ErrNotFound, id)
}

// stopAll stops some commands, waits for their end, and forgets them.
func (b *Background) stopAll(which func(*backgroundCommand) bool) {
	b.mu.Lock()
	var stopped []*backgroundCommand
	b.commands = slices.DeleteFunc(b.commands, func(c *backgroundCommand) bool {
		if !which(c) {
			return false
		}
		stopped = append(stopped, c)
		return true
	})
	b.mu.Unlock()
	for _, c := range stopped {
		c.cancel(errStopped)
	}
	for _, c := range stopped {
		<-c.done // proc.Run kills what does not end
	}
}

// backgroundCommand is a command in the background.
type backgroundCommand struct {
	output *tail
	cancel context.CancelCauseFunc
	over   func()        // called when the command has ended
	done   chan struct{} // closed when the command has ended

	mu    sync.Mutex
	about BackgroundCommand // the part of the end is set before done is closed
	note  string            // about the end
	read  int64             // how much of the output the model has read
}

func (c *backgroundCommand) describe() BackgroundCommand {
	c.mu.Lock()
	defer c.mu.Unlock()
	about := c.about
	about.Bytes = c.output.size()
	return about
}

// start starts a command. limit is the longest time that it may run; 0 means no limit.
func (b *Background) start(call *belay.Invocation, in *shellInput, dir string, run *ShellRun, limit time.Duration) (*backgroundCommand, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.hasRoom(call.Session); err != nil {
		return nil, err
	}
	b.number++
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &backgroundCommand{output: newTail(b.opts.Output), cancel: cancel, over: func() {}, done: make(chan struct{}), about: BackgroundCommand{
		ID: fmt.Sprintf("bg_%d", b.number), Session: call.Session, Command: in.Command, Description: in.Description, Started: time.Now(), Running: true,
	}}
	if err := b.endWithSession(call, c); err != nil {
		cancel(nil)
		return nil, err
	}
	b.commands = append(b.commands, c)
	go c.run(ctx, dir, run, limit) // ends with the command; stopAll waits for it
	return c, nil
}

// endWithSession makes the commands of a session end when it is closed. The hook is there
// only while the command runs, so that sessions without such commands have no hook.
func (b *Background) endWithSession(call *belay.Invocation, c *backgroundCommand) error {
	if call.Controls() == nil { // a call outside a turn
		return nil
	}
	lease, err := call.Controls().Agent().Hooks().Install(belay.SessionEnd.On("background."+c.about.ID, func(_ context.Context, end belay.SessionClosed) (belay.Note, error) {
		if end.Session() == call.Session {
			b.stopAll(func(c *backgroundCommand) bool { return c.about.Session == call.Session })
		}
		return belay.Note{}, nil
	}, &hook.Options{Description: "stops the commands that the session has started in the background", Visibility: hook.VisibleInternally}))
	if err != nil {
		return failf(belay.ClassUnavailable, "The command was not started: %v.", err)
	}
	c.over = func() { _ = lease.Close() } // nothing depends on this hook
	return nil
}

// hasRoom returns a failure if too many commands run. It forgets the oldest ones that have
// ended. The caller holds the lock.
func (b *Background) hasRoom(session string) error {
	if b.closed {
		return failf(belay.ClassUnavailable, "The agent is being closed: commands cannot be started in the background any more.")
	}
	all, own, ended, others := 0, 0, 0, 0
	for _, c := range slices.Backward(b.commands) {
		switch {
		case c.describe().Running:
			if all++; c.about.Session == session {
				own++
			}
		case c.about.Session == session:
			if ended++; ended >= mostEnded {
				b.forget(c)
			}
		default:
			if others++; others >= mostEndedInAll {
				b.forget(c)
			}
		}
	}
	if own >= b.opts.Session || all >= b.opts.Total {
		return failf(belay.ClassUnavailable, "Too many commands run in the background (%d in this session, %d in all). Stop one with %s first.", own, all, ShellStopTool)
	}
	return nil
}

// forget removes a command that has ended. The caller holds the lock.
func (b *Background) forget(c *backgroundCommand) {
	b.commands = slices.DeleteFunc(slices.Clone(b.commands), func(other *backgroundCommand) bool { return other == c })
}

// run runs the command to its end.
func (c *backgroundCommand) run(ctx context.Context, dir string, run *ShellRun, limit time.Duration) {
	defer close(c.done)
	defer c.over()
	defer c.cancel(nil)
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeIsUp)
		defer cancel()
	}
	exit, err := proc.Run(ctx, &proc.Command{Argv: run.Argv, Dir: dir, Env: run.Env, Stdout: c.output, Merged: true, Whole: true})
	var notes []string
	switch {
	case err != nil:
		exit.Code = -1
		notes = append(notes, "it could not be started: "+err.Error())
	case errors.Is(exit.Stopped, errTimeIsUp):
		notes = append(notes, "it was killed after its timeout of "+limit.String())
	case exit.Stopped != nil:
		notes = append(notes, "it was stopped")
	case exit.Code != 0 && run.Note != "":
		notes = append(notes, run.Note)
	}
	if run.Settle != nil {
		if text := run.Settle(); text != "" {
			notes = append(notes, text)
		}
	}
	c.mu.Lock()
	c.about.Running, c.about.Ended, c.about.ExitCode, c.note = false, time.Now(), exit.Code, strings.Join(notes, "; ")
	if exit.Signal != nil {
		c.about.Signal = exit.Signal.String()
	}
	c.mu.Unlock()
	c.output.end()
}

// state returns one line about the command, for the model.
func (c *backgroundCommand) state() string {
	about := c.describe()
	c.mu.Lock()
	note := c.note
	c.mu.Unlock()
	text := about.ID + " is running"
	switch {
	case about.Running:
	case about.Signal != "":
		text = about.ID + " has ended: " + about.Signal
	default:
		text = fmt.Sprintf("%s has ended: exit code %d", about.ID, about.ExitCode)
	}
	if note != "" {
		text += "; " + note
	}
	return text
}
