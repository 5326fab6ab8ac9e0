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

// Questions about a chat that callers ask with errors.Is.
var (
	// ErrNoTerminal says that there is no terminal to talk in.
	ErrNoTerminal = errors.New("chat needs a terminal: without one, `belay run \"task\"` does a task and ends")
	// ErrForced says that the person left while a turn was being aborted. It may
	// still be ending.
	ErrForced = errors.New("chat: left before the turn had ended")
)

// Options are the settings of a chat. A nil *Options is valid.
type Options struct {
	// Directives are the words behind a slash that the agent knows, to complete.
	// Defaults to none.
	Directives []Directive
	// History is the file that keeps what was typed. Defaults to keeping nothing.
	History string
	// Store tells how a session stands when it is opened: what it used, and
	// whether a turn waits or was interrupted. Defaults to what the transcript
	// shows.
	Store belay.ListStore
	// Tools are those of the agent, for what they say about themselves: a call of
	// a serial one is shown to wait its turn. Defaults to none that is serial.
	Tools []belay.Tool
	// Model is the name to show until a response says which model answered.
	// Defaults to none.
	Model string
	// Person is who decides, for the record. Defaults to "you".
	Person string
	// Advise says more about a call that the person is asked about. It is called before
	// the question is shown. Defaults to saying nothing.
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
	asker     asker // nil while nobody is at the terminal
	inquiries int   // how many there were
}

var (
	_ belay.Approver = (*Chat)(nil)
	_ belay.Asker    = (*Chat)(nil)
)

// asker puts a question to the person, or tells them something.
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

// Approve asks the person at the terminal, and waits. While Run is not under way
// there is nobody to ask, which is an error and denies. Several questions are
// asked one after another.
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

// Ask puts a question to the person at the terminal, and waits for the answer. An empty
// one is none. While Run is not under way there is nobody to ask, which is an error.
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

// Advice is what helps a person to decide about a call.
type Advice struct {
	// Reach says how far the call reaches, and Run how it would run, if there is more
	// than one way.
	Reach, Run string
	// Pattern stands for this call and others like it, if there is one that does.
	Pattern string
	// Check says why another pattern cannot stand in its place. Defaults to no
	// objection.
	Check func(pattern string) error

	words bool // it is no call but a question, which wants words for an answer
}

// InOrder has an approver that asks by way of this chat asked in the order of calls.
func (c *Chat) InOrder(of belay.Approver) belay.Approver { return c.order.Approver(of) } //nolint:ireturn // see Order

// at says who talks to the person from now on.
func (c *Chat) at(a asker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asker = a
}

// Note shows a warning in the conversation that belongs to no turn. It reports whether anybody
// is at the terminal: Run is under way.
func (c *Chat) Note(text string) bool {
	c.mu.Lock()
	a := c.asker
	c.mu.Unlock()
	if a != nil {
		a.note(text)
	}
	return a != nil
}

// Run has a conversation in a session of the agent, until the person leaves or
// ctx is done. A turn that is under way then is aborted and waited for. The agent
// is the caller's to close.
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

// screen has the conversation on a terminal that can move its cursor.
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
