package belay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
)

// Controls let a directive, a tool or an [InputExtension] act on its turn. After the
// directive, tool or extension has returned, methods that ask the user or change the turn
// return ErrOver. The controls of a tool are safe for concurrent use. Use other controls
// only on the goroutine that got them.
type Controls struct {
	turn *turn
	// call is the id of the tool call. It is empty for directives and extensions.
	call string
	// said is the message that is being submitted. It is nil for a tool.
	said *submitted
	// by is the directive or the extension that acts. Prompt sections that it adds carry
	// this name.
	by string

	using sync.RWMutex // read-locked while a method uses the turn
	over  bool
}

// ErrOver says that the directive, tool or extension that got the controls has returned.
var ErrOver = errors.New("belay: these Controls are no longer valid: the tool, directive or extension that got them has returned")

// Controls returns the controls with which the tool acts on its turn. They work until the
// tool returns. The result is nil for a call outside a turn, for example in a test.
func (i *Invocation) Controls() *Controls { return i.controls }

// Progress sends an event that says how far the call is. It does nothing after the call has
// returned.
func (i *Invocation) Progress(text string) {
	if i.controls != nil {
		_ = i.controls.Emit(Event{Kind: EventToolProgress, Call: &CallPart{ID: i.ID, Tool: i.Tool}, Text: text}) // the only error is ErrOver
	}
}

// close makes all later calls of methods fail with ErrOver.
func (c *Controls) close() {
	c.using.Lock()
	defer c.using.Unlock()
	c.over = true
}

// enter makes close wait until leave is called. It fails if close was called before.
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

// Agent returns the agent that runs the turn. You can add tools, directives and hooks to
// it, and remove them with their leases.
func (c *Controls) Agent() *Agent { return c.turn.agent }

// Store returns the store of the agent's sessions.
func (c *Controls) Store() Store { return c.turn.agent.store } //nolint:ireturn // it is the one that the agent was given

// Messages returns the stored transcript of the session, oldest message first.
func (c *Controls) Messages(ctx context.Context) iter.Seq2[*Message, error] {
	return c.turn.agent.store.Read(ctx, c.turn.session.id, 0)
}

// Append adds a message with the role user. The message of a directive or an extension is
// stored before the user's message. The message of a tool is stored after the results of
// its step.
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

// UseModel switches to another model from the next request on, for this turn only.
func (c *Controls) UseModel(model Model) error { return c.swap(model, false) }

// KeepModel switches to another model from the next request on, also for later turns of the
// session. See [Session.SetModel].
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
		c.turn.applyWishes()
	}
	return nil
}

// FindModel finds a model by its name, with [Options.Models]. An empty name means the
// agent's own model.
func (c *Controls) FindModel(ctx context.Context, name string) (Model, error) { //nolint:ireturn // which model it is, the name says
	return c.turn.agent.findModel(ctx, name)
}

// Model returns the info of the model that gets the next request.
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

// Compact summarizes the context: at once for a directive or an extension, before the next
// request for a tool. It does nothing if there is nothing to summarize: the session has no
// messages, only a summary, or only messages that the model has not answered yet.
func (c *Controls) Compact() error {
	if err := c.enter("compact"); err != nil {
		return err
	}
	defer c.leave()
	if c.said != nil {
		return c.turn.compactNow()
	}
	w := &c.turn.wishes
	w.mu.Lock()
	defer w.mu.Unlock()
	w.compact = true
	return nil
}

// Usage returns the usage of the turn so far, and the usage of the session before this
// turn.
func (c *Controls) Usage() (turn, session Usage) {
	if c.enter("usage") != nil {
		return Usage{}, Usage{}
	}
	defer c.leave()
	c.turn.session.view.Lock()
	defer c.turn.session.view.Unlock()
	return c.turn.state.Usage, c.turn.session.state.Usage
}

// Tools returns the tools that the model may call in this step.
func (c *Controls) Tools() []ToolDeclaration {
	if c.enter("tools") != nil {
		return nil
	}
	defer c.leave()
	return slices.Clone(c.turn.request.tools.declared)
}

// Emit sends an event to the stream and the watchers of the session. Emit sets its number,
// its time, and the fields that say which session, turn and step it belongs to.
func (c *Controls) Emit(event Event) error {
	if err := c.enter("emit"); err != nil {
		return err
	}
	defer c.leave()
	c.turn.emit(event)
	return nil
}

// Ask asks the user a question and waits for the answer. It returns ErrNobody if the agent
// has no Asker.
func (c *Controls) Ask(ctx context.Context, question string) (string, error) {
	if err := c.enter("ask"); err != nil {
		return "", err
	}
	c.leave() // do not block close while a person thinks
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
