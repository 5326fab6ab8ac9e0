package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"

	"github.com/belay-run/belay"
)

// Errors that callers check with errors.Is.
var (
	// ErrNoTerminal means that there is no terminal.
	ErrNoTerminal = errors.New("chat needs a terminal: without one, use `belay run \"task\"`")
	// ErrForced means that the user left while a turn was being aborted. The turn
	// may still be ending.
	ErrForced = errors.New("chat: quit before the turn had ended")
)

// Options are the settings of a chat. A nil *Options is valid.
type Options struct {
	// Directives are the agent's slash commands, for completion. Defaults to none.
	Directives []Directive
	// History is the file of the input history. Defaults to keeping nothing.
	History string
	// Store gives the state of a session when it is opened: its usage, and whether
	// a turn waits or was interrupted. Defaults to what the transcript shows.
	Store belay.ListStore
	// Tools are those of the agent. The chat shows a call of a serial tool as
	// waiting until it runs. Defaults to no serial tools.
	Tools []belay.Tool
	// Model is the name to show until a response names the model. Defaults to none.
	Model string
	// Person is the name recorded with decisions. Defaults to "you".
	Person string
	// Advise returns more information about a call for the approval question. It is
	// called before the question is shown. Defaults to none.
	Advise func(ctx context.Context, question belay.Question) Advice
	// In and Out are the terminal. Default to standard input and output.
	In, Out *os.File
	// Environ is the environment, for NO_COLOR and TERM. Defaults to that of the
	// process.
	Environ []string
}

func (o *Options) person() string {
	if o.Person == "" {
		return "you"
	}
	return o.Person
}

// serial are the tools that run alone, by name.
func (o *Options) serial() map[string]bool {
	names := make(map[string]bool)
	for _, tool := range o.Tools {
		if t, ok := tool.(belay.TraitTool); ok && t.Traits().Serial {
			names[tool.Declaration().Name] = true
		}
	}
	return names
}

// Chat is a conversation in a terminal, and the approver of the agent it is with.
// Make one with [New].
type Chat struct {
	opts  Options
	order Order // of questions

	mu        sync.Mutex
	asker     asker // nil while Run is not active
	inquiries int   // how many there were
}

var (
	_ belay.Approver = (*Chat)(nil)
	_ belay.Asker    = (*Chat)(nil)
)

// asker shows a question or a note to the user.
type asker interface {
	ask(ctx context.Context, question belay.Question, advice Advice) (belay.Decision, error)
	note(text string)
}

// New makes a chat.
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

// Approve asks the person at the terminal, and waits. While Run is not active it
// returns an error, which denies. Several questions are asked one after another.
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

// Ask asks the person at the terminal a question, and waits for the answer. An empty
// answer means none. While Run is not active it returns an error.
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

// Advice is information that helps a person to decide about a call.
type Advice struct {
	// Reach describes the effect of the call, and Run how it would run, if there is
	// more than one way.
	Reach, Run string
	// Pattern covers this call and similar ones, if there is such a pattern.
	Pattern string
	// Check returns why another pattern cannot be used instead. Defaults to
	// accepting all.
	Check func(pattern string) error

	words bool // it is not a call but a question that needs a text answer
}

// InOrder wraps an approver that asks through this chat, so that it is called in the
// order of calls.
func (c *Chat) InOrder(of belay.Approver) belay.Approver { return c.order.Approver(of) } //nolint:ireturn // see Order

// at sets the asker.
func (c *Chat) at(a asker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asker = a
}

// Note shows a warning in the conversation that belongs to no turn. It reports whether Run is
// active.
func (c *Chat) Note(text string) bool {
	c.mu.Lock()
	a := c.asker
	c.mu.Unlock()
	if a != nil {
		a.note(text)
	}
	return a != nil
}

// Run runs a conversation in a session of the agent until the user quits or ctx
// is done. It then aborts a running turn and waits for its end. The caller closes
// the agent.
func (c *Chat) Run(ctx context.Context, agent *belay.Agent, session string) error {
	in, out := c.opts.In, c.opts.Out
	if !term.IsTerminal(in.Fd()) || !term.IsTerminal(out.Fd()) {
		return ErrNoTerminal
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	s := agent.Session(session)
	o := open(ctx, s, c.opts.Store)
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
func (c *Chat) screen(ctx context.Context, s *belay.Session, o *opening, in, out *os.File) error {
	r := newRunner(ctx, c, s, o)
	profile := colorprofile.Detect(out, c.opts.Environ)
	r.model.look.profile, r.model.md.profile = profile, profile
	paper := &canvas{File: out, drawn: func() { go r.tell(drawnMsg{}) }} // the loop may be waiting for the writer
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
