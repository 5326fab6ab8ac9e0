package belay

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// AbandonTool is a Tool that keeps something open for a call while it waits, such as the
// session of a subagent. Without it nobody tells the tool that a call which it parked
// will not go on.
type AbandonTool interface {
	Tool
	// Abandon is told of a call that began and will not go on: it was parked, or under
	// way when its process ended, and the turn was ended, or the call was refused
	// meanwhile. Its Wait is the name under which it was parked, if it was. It may be told
	// more than once, and of calls for which nothing is open. An error is logged, and told
	// to those who watch; the call has its result anyway.
	Abandon(ctx context.Context, call *Invocation) error
}

// letGo tells the tools of calls which have begun, and have a result from elsewhere,
// that they will not go on.
func (t *turn) letGo(b *batch) {
	given := func(c *call) bool { return c.begun && c.result != nil }
	if !slices.ContainsFunc(b.calls, given) {
		return
	}
	tools := t.stepTools()
	ctx, cancel := context.WithTimeout(t.base, t.agent.opts.Limits.End)
	defer cancel()
	t.each(b.calls, func(t *turn, c *call) {
		if !given(c) {
			return
		}
		c.begun = false
		if bound := tools.byName[c.Tool]; bound != nil {
			if tool, ok := bound.Tool.(AbandonTool); ok {
				t.abandonCall(ctx, c, tool)
			}
		}
	}, func(*call, any) {}) // what can panic is on a goroutine of its own
	t.gatherWishes()
}

// abandonCall tells one tool, on a goroutine that is left behind if it heeds no
// deadline.
func (t *turn) abandonCall(ctx context.Context, c *call, tool AbandonTool) {
	over := &Controls{turn: t}
	defer over.close()
	told := c.Invocation
	told.Wait, told.Input, told.controls = c.Resumes, slices.Clone(c.Input), over
	done := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the tool panicked: %v", p)
			}
			done <- err
		}()
		err = tool.Abandon(ctx, &told)
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		default:
			err = errors.New("the tool did not return in time")
		}
	}
	if err == nil {
		return
	}
	t.agent.opts.Logger.WarnContext(t.base, "a call that was given up left something open", "session", t.scope.Session, "turn", t.scope.Turn, "tool", c.Tool, "call", c.ID, "error", err)
	t.emit(Event{Kind: EventError, Text: fmt.Sprintf("tool %s: what call %s left open could not be ended: %v", c.Tool, c.ID, err), Call: c.part})
}
