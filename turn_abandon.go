package belay

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// abandonCalls calls Abandon of tools whose calls had begun and then got a result that
// does not come from the tool, such as a denial.
func (t *turn) abandonCalls(b *batch) {
	given := func(c *call) bool { return c.begun && c.result != nil }
	if !slices.ContainsFunc(b.calls, given) {
		return
	}
	tools := t.stepTools()
	ctx, cancel := context.WithTimeout(t.base, t.agent.opts.Limits.End)
	defer cancel()
	t.forEach(b.calls, func(t *turn, c *call) {
		if !given(c) {
			return
		}
		c.begun = false
		if bound := tools.byName[c.Tool]; bound != nil {
			if tool, ok := bound.Tool.(AbandonTool); ok {
				t.abandonCall(ctx, c, tool)
			}
		}
	}, func(*turn, *call, any) {}) // abandonCall recovers from panics on its own goroutine
	t.gatherWishes()
}

// abandonCall calls Abandon of one tool on its own goroutine. It stops waiting for the
// goroutine when ctx ends.
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
	t.agent.opts.Logger.WarnContext(t.base, "a tool could not clean up after an abandoned call", "session", t.scope.Session, "turn", t.scope.Turn, "tool", c.Tool, "call", c.ID, "error", err)
	t.emit(Event{Kind: EventError, Text: fmt.Sprintf("tool %s: cleaning up after call %s failed: %v", c.Tool, c.ID, err), Call: c.part})
}
