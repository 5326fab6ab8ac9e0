package chat

import (
	"context"
	"slices"
	"sync"

	"github.com/belay-run/belay"
)

// Order puts approval questions in the order of their calls. Belay requests the approvals
// of one message at the same time. A user interface that shows one question at a time
// would show the questions in random order, and an answer might go to the wrong question.
// The zero value is ready to use.
type Order struct {
	mu     sync.Mutex
	asked  []belay.Approval // announced by events, but not shown yet
	change chan struct{}    // closed at the next change
}

// Hear learns the order from the events of a turn. Call it with each event before you read
// the next one.
func (o *Order) Hear(e *belay.Event) {
	switch {
	case e.Kind == belay.EventApprovalRequested && e.Approval != nil:
		o.mu.Lock()
		defer o.mu.Unlock()
		o.asked = append(o.asked, *e.Approval)
	case e.Kind == belay.EventApprovalDecided && e.Approval != nil:
		o.leave(e.Approval.ID)
	case e.Kind == belay.EventTurnEnd && e.Depth == 0:
		o.mu.Lock()
		defer o.mu.Unlock()
		o.asked = nil
		o.changed()
	}
}

func (o *Order) changed() {
	if o.change != nil {
		close(o.change)
		o.change = nil
	}
}

// leave removes a question, so that later questions do not wait for it.
func (o *Order) leave(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = slices.DeleteFunc(o.asked, func(a belay.Approval) bool { return a.ID == id })
	o.changed()
}

// await blocks until all earlier questions of the same turn were shown.
func (o *Order) await(ctx context.Context, a *belay.Approval) error {
	for {
		o.mu.Lock()
		before := o.asked
		if at := slices.IndexFunc(before, func(other belay.Approval) bool { return other.ID == a.ID }); at >= 0 {
			before = before[:at]
		}
		waits := slices.ContainsFunc(before, func(other belay.Approval) bool { return other.Session == a.Session && other.Turn == a.Turn })
		if waits && o.change == nil {
			o.change = make(chan struct{})
		}
		change := o.change
		o.mu.Unlock()
		if !waits {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Approver wraps an approver so that it gets the questions in order. The approver gets
// the next question after it has answered the previous one, or after the chat has shown
// the previous one.
func (o *Order) Approver(of belay.Approver) belay.Approver { return inOrder{of, o} } //nolint:ireturn // it wraps the same interface

type inOrder struct {
	belay.Approver

	order *Order
}

type putKey struct{}

// Approve asks after all earlier questions were shown.
func (v inOrder) Approve(ctx context.Context, q belay.Question) (belay.Decision, error) {
	put := func() { v.order.leave(q.ID) }
	defer put()
	if err := v.order.await(ctx, &q.Approval); err != nil {
		return belay.Decision{}, err
	}
	return v.Approver.Approve(context.WithValue(ctx, putKey{}, put), q)
}

// put tells Order that the chat has shown the question.
func put(ctx context.Context) {
	if f, ok := ctx.Value(putKey{}).(func()); ok {
		f()
	}
}
