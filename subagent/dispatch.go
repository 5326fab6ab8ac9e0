package subagent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/near"
)

// dispatch runs one task.
type dispatch struct {
	extension *Extension
	subagent  *Subagent
	call      *belay.Invocation
	task      *Task
}

// answer is the result of a task. The model gets it as JSON.
type answer struct {
	Subagent string  `json:"subagent"`
	Content  *string `json:"content,omitempty"`
	Error    string  `json:"error,omitempty"`
	// Class is the class of the error.
	Class belay.ResultClass `json:"class,omitempty"`

	parked string // what the task waits for, or ""
}

func failed(name string, class belay.ResultClass, format string, args ...any) answer {
	return answer{Subagent: name, Class: class, Error: fmt.Sprintf(format, args...)}
}

// ask gives a task to a subagent and waits for the result.
func (s *scoped) ask(ctx context.Context, call *belay.Invocation, name, prompt string, nth int) answer {
	one, names := s.find(name)
	controls := call.Controls()
	switch {
	case one == nil && len(names) == 0:
		return failed(name, belay.ClassNotFound, "there is no subagent %q: none is available", name)
	case one == nil:
		return failed(name, belay.ClassNotFound, "there is no subagent %q%s: available are %s", name, near.Hint(name, names), strings.Join(names, ", "))
	case strings.TrimSpace(prompt) == "":
		return failed(name, belay.ClassInvalid, "the prompt is empty: a subagent sees nothing of this conversation, so include everything it needs")
	case controls == nil:
		return failed(name, belay.ClassFailed, "subagents can only be called in a turn, and this call is outside a turn")
	}
	d := &dispatch{s.Extension, one, call, s.newTask(call, one, prompt, nth)}
	if bound := one.timeout(); bound > 0 {
		bounded, cancel := context.WithTimeoutCause(ctx, bound, &timeoutError{bound})
		defer cancel()
		ctx = bounded
	}
	turn, err := controls.Child(ctx, belay.Child{Name: one.Name, Prompt: prompt, Isolated: one.Isolated}, d.take)
	switch {
	case err != nil:
		return d.failed(ctx, err)
	case turn.Reason == belay.EndParked:
		return answer{Subagent: one.Name, parked: fmt.Sprintf("subagent %s, session %s", one.Name, d.task.Session)}
	default:
		return answer{Subagent: one.Name, Content: &turn.Text}
	}
}

// timeoutError means that a task did not end in time.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("it did not answer within %s", e.after) }

// failed returns the answer for a task that failed.
func (d *dispatch) failed(ctx context.Context, err error) answer {
	class, text := belay.ClassFailed, err.Error()
	var said string
	if child, ok := errors.AsType[*belay.ChildError](err); ok {
		said = strings.TrimSpace(child.Text)
		switch child.Status {
		case belay.ChildDenied:
			class = belay.ClassDenied
		case belay.ChildAborted:
			class = belay.ClassAborted
			if late, ok := errors.AsType[*timeoutError](context.Cause(ctx)); ok {
				class, text = belay.ClassTimeout, fmt.Sprintf("subagent %q: %v and was cancelled. It is unknown whether it had an effect.", d.subagent.Name, late)
			}
		}
	}
	if said != "" {
		text += "\n\nIts last message:\n" + said
	}
	return failed(d.subagent.Name, class, "%s", text)
}

// take returns the events of the task, for belay.Controls.Child. An error becomes the
// last event.
func (d *dispatch) take(ctx context.Context) iter.Seq2[belay.Event, error] {
	return func(yield func(belay.Event, error) bool) {
		if err := d.run(ctx, yield); err != nil {
			yield(belay.Event{}, err)
		}
	}
}

// run waits until the session is free, and then runs the task.
func (d *dispatch) run(ctx context.Context, yield func(belay.Event, error) bool) error {
	stale := false // an earlier task of the session was parked and will not be resumed
	if d.subagent.Durable {
		leave, err := d.extension.queue.enter(ctx, d.task.Session)
		if err != nil {
			return err
		}
		defer leave()
	}
	if d.subagent.Durable || d.task.Resumed {
		stored, err := look(ctx, d.task.Store, d.task.Session)
		if err != nil {
			return err
		}
		open := stored.State.Turn
		switch {
		case d.task.Resumed && open == nil && stored.Last > 0: // another process has resumed and finished the task
			d.extension.waiting.clear(d.task.Session)
			d.tell(belay.Event{Kind: belay.EventTurnEnd, End: ended(stored)}, yield)
			return nil
		case !d.task.Resumed && open != nil && d.extension.waiting.in(d.task.Session, d.call.Turn):
			return errors.New("an earlier task of this subagent waits for a person: call the subagent again when that task is done")
		}
		stale = open != nil && open.Parked
	}
	return d.work(ctx, stale, yield)
}

// work calls the factory and runs the task with its runner.
func (d *dispatch) work(ctx context.Context, stale bool, yield func(belay.Event, error) bool) error {
	runner, err := d.subagent.Factory(ctx, d.task)
	switch {
	case err != nil:
		return fmt.Errorf("its factory failed: %w", err)
	case isNil(runner):
		return errNoRunner
	}
	closed := false
	defer func() {
		if !closed { // work is panicking
			_ = closeRunner(ctx, runner)
		}
	}()
	events, err := d.begin(ctx, runner, stale)
	if err != nil {
		return err
	}
	if events == nil {
		return errors.New("it returned no events to read")
	}
	var end *belay.Turn
	for event, failure := range events {
		if failure != nil {
			err = failure
			continue
		}
		if event.End != nil {
			end = event.End
		}
		if !d.tell(event, yield) {
			return nil
		}
	}
	if d.subagent.Durable {
		if end != nil && end.Reason == belay.EndParked {
			d.extension.waiting.set(d.task.Session, d.call.Turn)
		} else {
			d.extension.waiting.clear(d.task.Session)
		}
	}
	closed = true
	if failure := closeRunner(ctx, runner); failure != nil { // the answer of the task stays valid
		d.tell(belay.Event{Kind: belay.EventError, Text: fmt.Sprintf("subagent %q: close: %v", d.subagent.Name, failure)}, yield)
	}
	return err
}

// begin calls Run or Resume of the runner. If stale is true, it ends the earlier parked
// task before it calls Run.
func (d *dispatch) begin(ctx context.Context, runner Runner, stale bool) (iter.Seq2[belay.Event, error], error) {
	if d.task.Resumed {
		r, ok := runner.(ResumeRunner)
		if !ok {
			return nil, errors.New("the task was parked and cannot be resumed, because its runner has no Resume method")
		}
		return r.Resume(ctx), nil
	}
	if a, ok := runner.(AbandonRunner); ok && stale {
		if _, err := a.Abandon(ctx); err != nil {
			return nil, fmt.Errorf("an earlier task of this subagent is parked and cannot be ended: %w", err)
		}
	}
	return runner.Run(ctx, d.task.Prompt), nil
}

// tell passes an event on, and fills in its missing fields.
func (d *dispatch) tell(event belay.Event, yield func(belay.Event, error) bool) bool {
	if event.Time.IsZero() {
		event.Time = time.Now()
	}
	if event.Agent == "" {
		event.Agent = d.subagent.Name
	}
	if event.Session == "" {
		event.Session = d.task.Session
	}
	return yield(event, nil)
}

// closingTime is the timeout for closing a runner.
const closingTime = 10 * time.Second

// closeRunner closes a runner, even if the context of the task is cancelled.
func closeRunner(ctx context.Context, runner Runner) error {
	c, ok := runner.(CloseRunner)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closingTime)
	defer cancel()
	return c.Close(ctx)
}

// isNil reports whether a factory returned nil, or a nil pointer of some type.
func isNil(runner Runner) bool {
	if runner == nil {
		return true
	}
	v := reflect.ValueOf(runner)
	switch v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		return v.IsNil()
	default:
		return false
	}
}
