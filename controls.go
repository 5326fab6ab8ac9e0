package belay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/belay-run/belay/hook"
)

// Controls are what a directive, an extension that looks at messages, or a tool can
// do with the turn that it is part of. They are good until that returns: ErrOver.
// Those of a tool are safe for concurrent use, the others are for the goroutine that
// they were given to.
type Controls struct {
	turn *turn
	// call is the id of a tool's call; empty for others.
	call string
	// said is the message on its way into the transcript; nil for a tool, which
	// runs beside the turn and not in it.
	said *submitted

	using sync.RWMutex // held for reading by whoever uses the turn
	over  bool
}

// ErrOver says that what had the controls has returned.
var ErrOver = errors.New("belay: what had these controls has returned")

// Controls are what the tool can do with the turn, until it returns. A call that is
// made outside a turn, as in a test, has none: nil.
func (i *Invocation) Controls() *Controls { return i.controls }

// close takes the turn away from whoever has the controls.
func (c *Controls) close() {
	c.using.Lock()
	defer c.using.Unlock()
	c.over = true
}

// enter holds the turn until leave is called, unless it is over.
func (c *Controls) enter(doing string) error {
	if c == nil {
		return fmt.Errorf("%s: %w", doing, ErrOver)
	}
	c.using.RLock()
	if c.over {
		c.using.RUnlock()
		return fmt.Errorf("%s: %w", doing, ErrOver)
	}
	return nil
}

func (c *Controls) leave() { c.using.RUnlock() }

// Agent is the agent whose turn it is: tools, directives and hooks are added to it
// and taken back from it by their leases.
func (c *Controls) Agent() *Agent { return c.turn.agent }

// Store keeps the agent's sessions.
func (c *Controls) Store() Store { return c.turn.agent.store } //nolint:ireturn // it is the one that the agent was given

// Messages reads the transcript of the session as it is stored, oldest first.
func (c *Controls) Messages(ctx context.Context) iter.Seq2[*Message, error] {
	return c.turn.agent.store.Read(ctx, c.turn.session.id, 0)
}

// Append adds a message on the user's side. It is stored with the message that the
// turn began with and in front of it, or behind the results of a tool's step.
func (c *Controls) Append(parts ...Part) error {
	if err := c.enter("append"); err != nil {
		return err
	}
	defer c.leave()
	if err := validParts(parts); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	if len(parts) == 0 {
		return nil
	}
	in := Injection{Parts: slices.Clone(parts)}
	if c.said != nil {
		c.said.injected = append(c.said.injected, in)
		return nil
	}
	w := &c.turn.wishes
	w.mu.Lock()
	defer w.mu.Unlock()
	w.injected = append(w.injected, wishedInjection{c.call, in})
	return nil
}

// UseModel has another model answer, for the rest of this turn: from the next
// request on.
func (c *Controls) UseModel(model Model) error { return c.swap(model, false) }

// KeepModel has another model answer from now on: this turn, from the next request
// on, and the later ones of the session. See [Session.SetModel].
func (c *Controls) KeepModel(model Model) error { return c.swap(model, true) }

func (c *Controls) swap(model Model, keep bool) error {
	if err := c.enter("swap model"); err != nil {
		return err
	}
	defer c.leave()
	n, err := c.turn.agent.usable(model)
	if err != nil {
		return fmt.Errorf("swap model: %w", err)
	}
	w := &c.turn.wishes
	w.mu.Lock()
	if w.model = n; keep {
		w.kept = n
	}
	w.mu.Unlock()
	if c.said != nil {
		c.turn.grant()
	}
	return nil
}

// FindModel finds a model by its name, as [Options.Models] does. No name is the
// agent's own model.
func (c *Controls) FindModel(ctx context.Context, name string) (Model, error) { //nolint:ireturn // which model it is, the name says
	return c.turn.agent.findModel(ctx, name)
}

// Model tells about the model that is asked next.
func (c *Controls) Model() ModelInfo {
	if c.enter("model") != nil {
		return ModelInfo{}
	}
	defer c.leave()
	w := &c.turn.wishes
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.model != nil {
		return w.model.info
	}
	return c.turn.model.info
}

// Compact sums the context up: at once for a directive, before the next request for
// a tool.
func (c *Controls) Compact() error {
	if err := c.enter("compact"); err != nil {
		return err
	}
	defer c.leave()
	if c.said != nil {
		return c.turn.compact("forced")
	}
	w := &c.turn.wishes
	w.mu.Lock()
	defer w.mu.Unlock()
	w.compact = true
	return nil
}

// Usage is what the turn has taken so far, and what the session took before it.
func (c *Controls) Usage() (turn, session Usage) {
	if c.enter("usage") != nil {
		return Usage{}, Usage{}
	}
	defer c.leave()
	c.turn.session.view.Lock()
	defer c.turn.session.view.Unlock()
	return c.turn.state.Usage, c.turn.session.state.Usage
}

// Tools are what the model may call in this step.
func (c *Controls) Tools() []ToolDeclaration {
	if c.enter("tools") != nil {
		return nil
	}
	defer c.leave()
	return slices.Clone(c.turn.tools.declared)
}

// Emit tells those who watch the session. Its number, its time and where it belongs
// are filled in.
func (c *Controls) Emit(event Event) error {
	if err := c.enter("emit"); err != nil {
		return err
	}
	defer c.leave()
	c.turn.emit(event)
	return nil
}

// Ask puts a question to the user and waits for the answer. ErrNobody: the agent
// has no Asker.
func (c *Controls) Ask(ctx context.Context, question string) (string, error) {
	if err := c.enter("ask"); err != nil {
		return "", err
	}
	c.leave() // a person takes long
	asker := c.turn.asking().agent.opts.Asker
	if asker == nil {
		return "", fmt.Errorf("ask: %w", ErrNobody)
	}
	in := Inquiry{Session: c.turn.session.id, Turn: c.turn.state.ID, Agent: c.turn.agent.opts.Name, Run: c.turn.runID(), Text: question}
	if l := c.turn.lineage; l != nil {
		in.Depth = l.depth
	}
	return asker.Ask(ctx, in)
}

// ErrNobody says that there is nobody to ask: the agent has no Asker.
var ErrNobody = errors.New("belay: there is nobody to ask: the agent has no Asker")

// Asker puts a question to the user, and waits for the answer.
type Asker interface {
	Ask(ctx context.Context, question Inquiry) (string, error)
}

// Inquiry is a question to the user, which has words for an answer.
type Inquiry struct {
	Session, Turn, Agent string
	// Run and Depth place the question of a subagent; those of the main agent have none.
	Run   string
	Depth int
	Text  string
}

// wishes are what the controls of tools ask of their turn, which grants them
// between steps: tools run beside it.
type wishes struct {
	mu       sync.Mutex
	injected []wishedInjection
	model    *namedModel // for this turn
	kept     *namedModel // from now on
	compact  bool

	// What children leave behind.
	spent       Usage
	waits       []Question
	missing     error // of one that could not be gone on with
	pending     []wishedReminder
	diagnostics []hook.Diagnostic
}

// wishedInjection is a message that the tool of a call added.
type wishedInjection struct {
	call string
	Injection
}

// wishedReminder is a reminder that comes from the subagent of a call.
type wishedReminder struct {
	call string
	PendingReminder
}

// grant does what was wished for, apart from what has to wait for a commit.
func (t *turn) grant() {
	w := &t.wishes
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.model == nil {
		return
	}
	t.model, t.state.Model = w.model, w.model.info.Name
	if w.kept != nil {
		t.session.keepModel(w.kept)
	}
	t.clean = false
	w.model, w.kept = nil, nil
}

// withAppended adds the messages that tools have added behind the results of their
// step. Until then they are part of the turn's state, which a parked turn keeps.
func (t *turn) withAppended(messages []*Message) []*Message {
	for _, in := range t.state.Appended {
		messages = append(messages, in.message())
	}
	t.state.Appended = nil
	return messages
}

// gatherWishes takes over what tools have added, and what children left behind.
func (t *turn) gatherWishes() {
	w := &t.wishes
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, in := range w.injected {
		t.state.Appended = append(t.state.Appended, in.Injection)
	}
	t.state.Usage = t.state.Usage.add(w.spent)
	t.waits = append(t.waits, w.waits...)
	for _, p := range w.pending {
		t.session.state.Pending = append(t.session.state.Pending, p.PendingReminder)
	}
	t.diagnostics = append(t.diagnostics, w.diagnostics...)
	w.injected, w.spent, w.waits, w.pending, w.diagnostics = nil, Usage{}, nil, nil, nil
}

// makeRoom sums the context up if a tool wanted that, or if it must be.
func (t *turn) makeRoom() error {
	w := &t.wishes
	w.mu.Lock()
	asked := w.compact
	w.compact = false
	w.mu.Unlock()
	if asked {
		return t.tolerate(t.compact("forced"))
	}
	return t.compactIfFull()
}
