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
)

// Agent is a factory of sessions of an agent, which is made of a model when the first
// task comes. It has the subagent's name and the parent's store, unless the options have
// others. Each task has a session of its own. What runs behind its back when a task is
// over, as hooks that nobody waits for, is given a few seconds; its extensions are not
// closed.
func Agent(model belay.Model, opts *belay.Options) Factory {
	a := &maker{model: model}
	if opts != nil {
		a.opts = *opts
	}
	return func(_ context.Context, task *Task) (Runner, error) {
		agent, err := a.agent(task)
		if err != nil {
			return nil, err
		}
		return &agentRunner{Session: agent.Session(task.Session), close: agent.Hooks().Drain}, nil
	}
}

// maker makes an agent, and keeps it: making one costs more than a short turn. Parents
// with stores of their own are rare, so that only the last one is kept.
type maker struct {
	model belay.Model
	opts  belay.Options

	mu    sync.Mutex
	made  *belay.Agent
	name  string
	store belay.Store
}

func (m *maker) agent(task *Task) (*belay.Agent, error) {
	opts := m.opts
	if opts.Name == "" {
		opts.Name = task.Name
	}
	if opts.Store == nil {
		opts.Store = task.Store
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made != nil && m.name == opts.Name && sameStore(m.store, opts.Store) {
		return m.made, nil
	}
	agent, err := belay.New(m.model, &opts)
	if err != nil {
		return nil, err
	}
	m.made, m.name, m.store = agent, opts.Name, opts.Store
	return agent, nil
}

// sameStore reports whether two stores are one, as far as can be told.
func sameStore(a, b belay.Store) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// Built is a factory of agents that a function makes, one for each task. It should give
// them the task's store. They are closed, with their extensions, when the task is over.
func Built(build func(ctx context.Context, task *Task) (*belay.Agent, error)) Factory {
	return func(ctx context.Context, task *Task) (Runner, error) {
		agent, err := build(ctx, task)
		if err != nil {
			return nil, err
		}
		if agent == nil {
			return nil, errors.New("there is no agent, and no error that says why")
		}
		return &agentRunner{Session: agent.Session(task.Session), close: agent.Close}, nil
	}
}

// agentRunner is the session of an agent, for one task.
type agentRunner struct {
	*belay.Session
	close func(ctx context.Context) error
}

var (
	_ ResumeRunner  = (*agentRunner)(nil)
	_ AbandonRunner = (*agentRunner)(nil)
	_ CloseRunner   = (*agentRunner)(nil)
)

func (r *agentRunner) Close(ctx context.Context) error {
	return errors.Join(r.Session.Close(ctx), r.close(ctx))
}

// Canned is a factory of a responder: a function answers, and no model is asked. It
// keeps no session.
func Canned(respond func(ctx context.Context, prompt string) (string, error)) Factory {
	return func(context.Context, *Task) (Runner, error) {
		if respond == nil {
			return nil, errors.New("there is no function that answers")
		}
		return canned(respond), nil
	}
}

type canned func(ctx context.Context, prompt string) (string, error)

// Run answers as an agent does that says one thing.
func (c canned) Run(ctx context.Context, text string, parts ...belay.Part) iter.Seq2[belay.Event, error] {
	return func(yield func(belay.Event, error) bool) {
		if len(parts) > 0 {
			yield(belay.Event{}, fmt.Errorf("a canned responder takes text alone, and was given %d parts more", len(parts)))
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
