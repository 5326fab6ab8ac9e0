package subagent

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/belay-run/belay"
)

// tool is one of the tools of an extension. When a call of it is abandoned, its open
// children are ended.
type tool struct {
	belay.Tool

	abandon func(ctx context.Context, call *belay.Invocation) error
	leftOut string
}

var (
	_ belay.TraitTool   = (*tool)(nil)
	_ belay.AbandonTool = (*tool)(nil)
	_ belay.ListingTool = (*tool)(nil)
)

// Traits returns the traits of both tools.
func (t *tool) Traits() belay.ToolTraits { return *unbounded }

// LeftOut returns which part of the list of subagents did not fit, for the
// user.
func (t *tool) LeftOut() string { return t.leftOut }

// Abandon ends the children of a call.
func (t *tool) Abandon(ctx context.Context, call *belay.Invocation) error {
	return t.abandon(ctx, call)
}

// abandonInvoke ends the child of a call of invoke_subagent.
func (e *Extension) abandonInvoke(ctx context.Context, call *belay.Invocation) error {
	var in task
	if err := call.Decode(&in); err != nil {
		return err
	}
	return e.end(ctx, call, in, 0)
}

// abandonDelegate ends the children of a call of delegate.
func (e *Extension) abandonDelegate(ctx context.Context, call *belay.Invocation) error {
	var in delegated
	if err := call.Decode(&in); err != nil {
		return err
	}
	done := make([]*answer, len(in.Tasks))
	if call.Wait != "" {
		_ = recall(ctx, call, done) // tasks without a record are checked
	}
	var problems []error
	for i, t := range in.Tasks {
		if done[i] == nil {
			problems = append(problems, e.end(ctx, call, t, i+1))
		}
	}
	return errors.Join(problems...)
}

// end ends the child of a task that will not continue, if it is still open.
// Otherwise its session and its open questions would wait for ever.
func (e *Extension) end(ctx context.Context, call *belay.Invocation, in task, nth int) error {
	controls := call.Controls()
	s, _ := (&scoped{e, belay.Reach{Agent: call.Agent}}).find(in.Name) // a child that was started is ended, even if the agent must not call it any more
	if s == nil {
		s = &Subagent{Name: in.Name, Factory: gone}
	}
	d := &dispatch{e, s, call, e.newTask(call, s, in.Prompt, nth)}
	d.task.Resumed = true
	open, err := d.isOpen(ctx)
	if err != nil || !open {
		return err
	}
	d.extension.waiting.clear(d.task.Session)
	_, err = controls.Child(ctx, belay.Child{Name: s.Name, Prompt: in.Prompt, Isolated: s.Isolated, Ends: true}, func(ctx context.Context) iter.Seq2[belay.Event, error] {
		return func(yield func(belay.Event, error) bool) {
			turn, err := d.endRun(ctx)
			if turn != nil {
				d.tell(belay.Event{Kind: belay.EventTurnEnd, Turn: turn.ID, End: turn}, yield)
			}
			if err != nil {
				yield(belay.Event{}, err)
			}
		}
	})
	if child, ok := errors.AsType[*belay.ChildError](err); ok && child.Status == belay.ChildAborted && ctx.Err() == nil {
		return nil // it has already ended
	}
	return err
}

// isOpen reports whether an abandoned task may still be open. A parked task without a
// session in the store may be open in another service.
func (d *dispatch) isOpen(ctx context.Context) (bool, error) {
	known := false
	for _, err := range d.task.Store.Read(ctx, d.task.Session, 0) { // unlike opening, this creates no session
		if err != nil && !errors.Is(err, belay.ErrNotFound) {
			return false, fmt.Errorf("subagent %q: %w", d.subagent.Name, err)
		}
		known = err == nil
		break
	}
	if !known {
		return d.call.Wait != "", nil
	}
	stored, err := look(ctx, d.task.Store, d.task.Session)
	if err != nil {
		return false, fmt.Errorf("subagent %q: %w", d.subagent.Name, err)
	}
	return stored.State.Turn != nil, nil
}

// endRun ends the task with the runner of its factory. If the factory makes none, an
// agent with only the subagent's name ends the session in the store.
func (d *dispatch) endRun(ctx context.Context) (*belay.Turn, error) {
	runner, err := d.subagent.Factory(ctx, d.task)
	if err != nil || isNil(runner) {
		if runner, err = d.bare(); err != nil {
			return nil, err
		}
	}
	defer func() { _ = closeRunner(ctx, runner) }() // the session has ended; closing may fail
	a, ok := runner.(AbandonRunner)
	if !ok {
		return nil, nil //nolint:nilnil // it has nothing open, or cannot end it
	}
	turn, err := a.Abandon(ctx)
	if errors.Is(err, belay.ErrNoTurn) || turn != nil && turn.Reason == belay.EndAborted {
		err = nil
	}
	return turn, err
}

// bare returns a session of the task with a minimal agent.
func (d *dispatch) bare() (Runner, error) { //nolint:ireturn // see Factory
	agent, err := belay.New(noModel{}, &belay.Options{Name: d.subagent.Name, Store: d.task.Store})
	if err != nil {
		return nil, err
	}
	return &agentRunner{Session: agent.Session(d.task.Session), close: agent.Close}, nil
}

var errGone = errors.New("the subagent no longer exists")

func gone(context.Context, *Task) (Runner, error) { return nil, errGone } //nolint:ireturn // it is a Factory

// noModel is the model of an agent that runs no turns.
type noModel struct{}

func (noModel) Stream(context.Context, *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) { yield(belay.Chunk{}, errGone) }
}

// newTask makes a task of a call. Its session id is the same each time.
func (e *Extension) newTask(call *belay.Invocation, s *Subagent, prompt string, nth int) *Task {
	t := &Task{Name: s.Name, Prompt: prompt, Controls: call.Controls(), Resumed: call.Wait != "", owner: e}
	t.Store = t.Controls.Store()
	if t.Session = freshSession(call, nth); s.Durable {
		t.Session = durableSession(call, s.Name)
	}
	return t
}

// task is the model's input for one task.
type task struct{ Name, Prompt string }
