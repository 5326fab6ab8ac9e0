package subagent

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/belay-run/belay"
)

// tool is invoke_subagent or delegate. When a call is abandoned, the tool ends the children
// of the call that have not ended yet.
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

// Traits returns the traits, which are the same for both tools.
func (t *tool) Traits() belay.ToolTraits { return *unbounded }

// LeftOut returns a text for the user about subagents that did not fit into the list.
func (t *tool) LeftOut() string { return t.leftOut }

// Abandon ends the children of an abandoned call.
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
		_ = recall(ctx, call, done) // on an error, all tasks are checked
	}
	var problems []error
	for i, t := range in.Tasks {
		if done[i] == nil {
			problems = append(problems, e.end(ctx, call, t, i+1))
		}
	}
	return errors.Join(problems...)
}

// end ends the child of a task that will never continue, if the child has not ended yet.
// Otherwise the child's session and questions would stay open for ever.
func (e *Extension) end(ctx context.Context, call *belay.Invocation, in task, nth int) error {
	controls := call.Controls()
	s, _ := (&scoped{e, belay.Reach{Agent: call.Agent}}).find(in.Name) // end a started child even if the agent may no longer call it
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
		return nil // the child has already ended
	}
	return err
}

// isOpen reports whether the child of an abandoned task may still be open. A parked task
// without a session in the store may be open in another service.
func (d *dispatch) isOpen(ctx context.Context) (bool, error) {
	known := false
	for _, err := range d.task.Store.Read(ctx, d.task.Session, 0) { // unlike Open, Read creates no session
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

// endRun ends the task with the runner from the factory. If the factory returns no
// runner, endRun uses the runner that bare makes.
func (d *dispatch) endRun(ctx context.Context) (*belay.Turn, error) {
	runner, err := d.subagent.Factory(ctx, d.task)
	if err != nil || isNil(runner) {
		if runner, err = d.bare(); err != nil {
			return nil, err
		}
	}
	defer func() { _ = closeRunner(ctx, runner) }() // closing may fail: the session has ended anyway
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

// bare returns a session of the task, with an agent that has only a name and a store.
// Such an agent can end a session.
func (d *dispatch) bare() (Runner, error) { //nolint:ireturn // see Factory
	agent, err := belay.New(noModel{}, &belay.Options{Name: d.subagent.Name, Store: d.task.Store})
	if err != nil {
		return nil, err
	}
	return &agentRunner{Session: agent.Session(d.task.Session), close: agent.Close}, nil
}

var errGone = errors.New("the subagent no longer exists")

func gone(context.Context, *Task) (Runner, error) { return nil, errGone } //nolint:ireturn // it is a Factory

// noModel is the model of an agent that never runs a turn.
type noModel struct{}

func (noModel) Stream(context.Context, *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) { yield(belay.Chunk{}, errGone) }
}

// newTask makes the task of a call. If newTask is called again for the same call, the
// task has the same session id.
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
