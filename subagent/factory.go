package subagent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/childturn"
)

// Agent returns a factory that makes one agent for all tasks, when the first task begins,
// and a session for each task. The agent has the subagent's name and the parent's store,
// unless opts sets another name or store. When a task is over, its background work, such
// as hooks that run after the turn, gets a few seconds to finish.
//
// The agent and its extensions are closed when the last [Extension] that uses the factory
// is closed. If other agents use one of these extensions too, pass a wrapper without a
// Close method, such as the result of mcptool's Extension.Shared.
func Agent(model belay.Model, opts *belay.Options) Factory {
	m := &maker{model: model}
	if opts != nil {
		m.opts = *opts
	}
	return func(ctx context.Context, task *Task) (Runner, error) {
		made, trouble, err := m.take(ctx, task)
		if err != nil {
			return nil, err
		}
		return &agentRunner{Session: made.agent.Session(task.Session), close: func(ctx context.Context) error {
			return errors.Join(trouble, made.agent.Hooks().Drain(ctx), m.release(ctx, made))
		}}, nil
	}
}

// maker makes an agent and caches it, because making an agent takes longer than a short
// turn. It caches only the last agent, because parents with different stores are rare.
type maker struct {
	model belay.Model
	opts  belay.Options

	mu     sync.Mutex
	owners map[*Extension]bool // the extensions for which the maker has made agents
	last   *madeAgent
}

// madeAgent is an agent that a maker has made.
type madeAgent struct {
	agent *belay.Agent
	name  string
	store belay.Store

	// maker.mu guards the fields below.

	tasks int                             // number of running tasks
	end   func(ctx context.Context) error // set when the agent is no longer used; closes the agent after the last task
}

// take returns the agent for a task. The caller must call release when the task is over.
// trouble is an error from closing the previous agent; it does not affect the task.
func (m *maker) take(ctx context.Context, task *Task) (made *madeAgent, trouble, err error) {
	made, old, err := m.choose(task)
	if err != nil || old == nil {
		return made, nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closingTime)
	defer cancel()
	return made, m.finish(ctx, old, old.agent.Retire), nil // Retire keeps the extensions open, because the new agent uses them
}

// choose returns the agent for a task. old is the agent that made replaces, or nil.
func (m *maker) choose(task *Task) (made, old *madeAgent, err error) {
	opts := m.opts
	if opts.Name == "" {
		opts.Name = task.Name
	}
	if opts.Store == nil {
		opts.Store = task.Store
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil || m.last.name != opts.Name || !sameStore(m.last.store, opts.Store) {
		agent, err := task.owner.newChild(m.model, &opts)
		if err != nil {
			return nil, nil, err
		}
		old, m.last = m.last, &madeAgent{agent: agent, name: opts.Name, store: opts.Store}
	}
	m.own(task.owner)
	m.last.tasks++
	return m.last, old, nil
}

// own records that an extension uses the maker.
func (m *maker) own(e *Extension) {
	if e == nil || m.owners[e] {
		return
	}
	if m.owners == nil {
		m.owners = make(map[*Extension]bool)
	}
	m.owners[e] = true
	e.notes(m)
}

// disown removes a closed extension. If it was the last one, the agent is closed.
func (m *maker) disown(ctx context.Context, e *Extension) error {
	m.mu.Lock()
	delete(m.owners, e)
	last := m.last
	if len(m.owners) > 0 || last == nil {
		m.mu.Unlock()
		return nil
	}
	m.last = nil
	m.mu.Unlock()
	return m.finish(ctx, last, last.agent.Close)
}

// finish calls end to close an agent: at once, or after the agent's last running task.
func (m *maker) finish(ctx context.Context, made *madeAgent, end func(ctx context.Context) error) error {
	m.mu.Lock()
	made.end = end
	busy := made.tasks > 0
	m.mu.Unlock()
	if busy {
		return nil
	}
	return end(ctx)
}

// release must be called when a task is over. After the agent's last task it closes the
// agent, if finish wants that.
func (m *maker) release(ctx context.Context, made *madeAgent) error {
	m.mu.Lock()
	made.tasks--
	end := made.end
	if made.tasks > 0 {
		end = nil
	}
	m.mu.Unlock()
	if end == nil {
		return nil
	}
	return end(ctx)
}

// sameStore reports whether two stores are the same. It returns false if they cannot be
// compared.
func sameStore(a, b belay.Store) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// Built returns a factory that calls build for each task to make an agent. The function
// should use the task's store. The agent and its extensions are closed when the task is
// over.
func Built(build func(ctx context.Context, task *Task) (*belay.Agent, error)) Factory {
	return func(ctx context.Context, task *Task) (Runner, error) {
		agent, err := build(ctx, task)
		if err != nil {
			return nil, err
		}
		if agent == nil {
			return nil, errors.New("the function returned neither an agent nor an error")
		}
		return &agentRunner{Session: agent.Session(task.Session), close: agent.Close}, nil
	}
}

// agentRunner is a Runner: the session of an agent, for one task.
type agentRunner struct {
	*belay.Session
	close func(ctx context.Context) error
}

var (
	_ ResumeRunner  = (*agentRunner)(nil)
	_ AbandonRunner = (*agentRunner)(nil)
	_ CloseRunner   = (*agentRunner)(nil)
)

// Run runs the task. The child's turn sends its events directly to the parent's stream, so
// Run yields only the last one.
func (r *agentRunner) Run(ctx context.Context, prompt string, parts ...belay.Part) iter.Seq2[belay.Event, error] {
	return func(yield func(belay.Event, error) bool) {
		turn, err := r.Session.Turn(childturn.Direct(ctx), prompt, parts...)
		if turn.ID != "" && !yield(belay.Event{Kind: belay.EventTurnEnd, End: turn}, nil) {
			return
		}
		if err != nil {
			yield(belay.Event{}, err)
		}
	}
}

func (r *agentRunner) Close(ctx context.Context) error {
	return errors.Join(r.Session.Close(ctx), r.close(ctx))
}

// Canned returns a factory whose tasks are answered by a function, without a model. It
// stores no session.
func Canned(respond func(ctx context.Context, prompt string) (string, error)) Factory {
	return func(context.Context, *Task) (Runner, error) {
		if respond == nil {
			return nil, errors.New("the function is nil")
		}
		return canned(respond), nil
	}
}

type canned func(ctx context.Context, prompt string) (string, error)

// Run yields the same events as an agent that gives one answer.
func (c canned) Run(ctx context.Context, text string, parts ...belay.Part) iter.Seq2[belay.Event, error] {
	return func(yield func(belay.Event, error) bool) {
		if len(parts) > 0 {
			yield(belay.Event{}, fmt.Errorf("this subagent accepts only text, but the task has %d other parts", len(parts)))
			return
		}
		said, err := c(ctx, text)
		if err != nil {
			yield(belay.Event{}, err)
			return
		}
		now := time.Now()
		if said != "" && !yield(belay.Event{Kind: belay.EventTextDelta, Time: now, Text: said}, nil) {
			return
		}
		yield(belay.Event{Kind: belay.EventTurnEnd, Time: now, End: &belay.Turn{Reason: belay.EndTurn, Text: said}}, nil)
	}
}
