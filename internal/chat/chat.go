package chat

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"

	"github.com/belay-run/belay"
)

// Callers check these errors with errors.Is.
var (
	// ErrNoTerminal means that standard input or output is not a terminal.
	ErrNoTerminal = errors.New("chat needs a terminal: without one, use `belay run \"task\"`")
	// ErrForced means that the user quit while Belay was aborting a turn. That turn may
	// still be ending.
	ErrForced = errors.New("chat: quit before the turn had ended")
)

// Session is the session of a chat: a *belay.Session, or a session of a server.
type Session interface {
	ID() string
	// Run and Resume yield the events of a turn until the turn has ended or is parked. They
	// abort the turn when ctx is done.
	Run(ctx context.Context, text string, parts ...belay.Part) iter.Seq2[belay.Event, error]
	Resume(ctx context.Context) iter.Seq2[belay.Event, error]
	Abandon(ctx context.Context) (*belay.Turn, error)
	Compact(ctx context.Context) error
	Messages(ctx context.Context) iter.Seq2[*belay.Message, error]
	Usage() belay.Usage
}

// Records reads what is stored of a session: a [belay.ListStore], or a server.
type Records interface {
	Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error]
	Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error]
}

// Options are the settings of a chat. A nil *Options is valid.
type Options struct {
	// Controls are what the commands of the chat need beside the session.
	Controls Controls
	// Directives are the slash commands of the agent, for completion.
	Directives []Directive
	// History is the file that stores the input history. If empty, the history is not
	// stored.
	History string
	// Store provides the state of the session: its usage, and whether a turn is parked or
	// interrupted. If nil, the chat derives this from the transcript.
	Store Records
	// Tools are the tools of the agent. The chat needs them to know which tools are serial:
	// it shows a call of a serial tool as waiting until the call runs.
	Tools []belay.Tool
	// Model is the model name to show until a response names its model.
	Model string
	// Person is the name that decisions record. Defaults to "you".
	Person string
	// Advise returns information about a call, to show with the approval question. It may
	// be nil.
	Advise func(ctx context.Context, question belay.Question) Advice
	// In and Out are the terminal. They default to standard input and output.
	In, Out *os.File
	// Environ is the environment. The chat reads NO_COLOR and TERM. Defaults to the
	// environment of the process.
	Environ []string
}

func (o *Options) person() string {
	if o.Person == "" {
		return "you"
	}
	return o.Person
}

// serial returns the names of the tools that run alone.
func (o *Options) serial() map[string]bool {
	names := make(map[string]bool)
	for _, tool := range o.Tools {
		if t, ok := tool.(belay.TraitTool); ok && t.Traits().Serial {
			names[tool.Declaration().Name] = true
		}
	}
	return names
}

// Chat is a conversation in a terminal. It is also the approver of its agent. Make one with
// [New].
type Chat struct {
	opts  Options
	order Order // the order of the questions to the user

	mu        sync.Mutex
	asker     asker // nil unless Run is active
	inquiries int   // how many times Ask was called, for ids
}

var (
	_ belay.Approver = (*Chat)(nil)
	_ belay.Asker    = (*Chat)(nil)
)

// asker shows questions and notes to the user.
type asker interface {
	ask(ctx context.Context, question belay.Question, advice Advice) (belay.Decision, error)
	note(text string)
}

// New returns a chat. opts may be nil.
func New(opts *Options) *Chat {
	c := new(Chat)
	if opts != nil {
		c.opts = *opts
	}
	if c.opts.In == nil {
		c.opts.In = os.Stdin
	}
	if c.opts.Out == nil {
		c.opts.Out = os.Stdout
	}
	if c.opts.Environ == nil {
		c.opts.Environ = os.Environ()
	}
	return c
}

// Approve asks the person at the terminal, and waits for the decision. Several questions
// are asked one after another. If Run is not active, Approve returns an error, and the call
// is denied.
func (c *Chat) Approve(ctx context.Context, question belay.Question) (belay.Decision, error) {
	c.mu.Lock()
	a := c.asker
	c.mu.Unlock()
	if a == nil {
		return belay.Decision{}, errors.New("nobody is at the terminal")
	}
	var advice Advice
	if c.opts.Advise != nil {
		advice = c.opts.Advise(ctx, question)
	}
	return a.ask(ctx, question, advice)
}

// Ask shows a question to the person at the terminal and returns the answer, or "" for no
// answer. If Run is not active, Ask returns an error.
func (c *Chat) Ask(ctx context.Context, in belay.Inquiry) (string, error) {
	c.mu.Lock()
	a := c.asker
	c.inquiries++
	id := fmt.Sprintf("inquiry-%d", c.inquiries)
	c.mu.Unlock()
	if a == nil {
		return "", errors.New("nobody is at the terminal")
	}
	d, err := a.ask(ctx, belay.Question{
		Approval: belay.Approval{ID: id, Session: in.Session, Turn: in.Turn, Reason: in.Text}, Agent: in.Agent, Run: in.Run, Depth: in.Depth,
	}, Advice{words: true})
	return d.Reason, err
}

// InOrder wraps an approver that asks through this chat. The wrapped approver gets the
// questions in the order of their calls.
func (c *Chat) InOrder(of belay.Approver) belay.Approver { return c.order.Approver(of) } //nolint:ireturn // see Order

// at sets the asker. nil means that Run is not active.
func (c *Chat) at(a asker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asker = a
}

// Note shows a warning that belongs to no turn. It reports whether Run is active.
func (c *Chat) Note(text string) bool {
	c.mu.Lock()
	a := c.asker
	c.mu.Unlock()
	if a != nil {
		a.note(text)
	}
	return a != nil
}

// Run runs a conversation in a session, until the user quits or ctx is done. Then it aborts
// the running turn and waits until the turn has ended.
func (c *Chat) Run(ctx context.Context, s Session) error {
	in, out := c.opts.In, c.opts.Out
	if !term.IsTerminal(in.Fd()) || !term.IsTerminal(out.Fd()) {
		return ErrNoTerminal
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	o := c.open(ctx, s)
	history, err := readHistory(c.opts.History)
	if err != nil {
		o.trouble = append(o.trouble, err.Error())
	}
	o.history = history
	if dumb(c.opts.Environ) {
		return c.lines(ctx, s, o, in, out)
	}
	return c.screen(ctx, s, o, in, out)
}

// screen runs the conversation on a terminal that can move its cursor.
func (c *Chat) screen(ctx context.Context, s Session, o *opening, in, out *os.File) error {
	r := newRunner(ctx, c, s, o)
	profile := colorprofile.Detect(out, c.opts.Environ)
	r.model.look.profile, r.model.md.profile = profile, profile
	paper := &canvas{File: out, drawn: func() { go r.tell(drawnMsg{}) }} // in a goroutine, because the loop may be waiting for this writer
	r.model.frames = paper.frames.Load
	program := newProgram(r.model, in, paper, c.opts.Environ, profile)
	r.attach(program.Send)
	leave := context.AfterFunc(ctx, func() { program.Send(leaveMsg{}) })
	defer leave()
	_, err := program.Run()
	if ended := r.end(); ended != nil {
		return ended
	}
	if err != nil {
		return fmt.Errorf("chat: %w", err)
	}
	return context.Cause(ctx)
}
