package chat

import (
	"context"
	"slices"
	"sync"

	"github.com/belay-run/belay"
)

// Order puts questions in the order of their calls. The approvals of one message are
// requested at the same time. A user interface that shows one question at a time would
// show them in random order, and a person's answer might go to the wrong question. The
// zero value is ready to use.
type Order struct {
	mu     sync.Mutex
	asked  []belay.Approval // not yet asked, as announced by events
	change chan struct{}    // closed with the next change
}

// Hear learns the order from the events of a turn. Call it for each event, before
// reading the next.
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

// leave removes a question, so that later ones need not wait for it.
func (o *Order) leave(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = slices.DeleteFunc(o.asked, func(a belay.Approval) bool { return a.ID == id })
	o.changed()
}

// await waits until the earlier questions of the same turn were asked.
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

// Approver wraps an approver so that it is called in order: for the next call after it
// has answered, or after a chat has shown the question.
func (o *Order) Approver(of belay.Approver) belay.Approver { return inOrder{of, o} } //nolint:ireturn // it wraps the same interface

type inOrder struct {
	belay.Approver

	order *Order
}

type putKey struct{}

// Approve asks when its turn has come.
func (v inOrder) Approve(ctx context.Context, q belay.Question) (belay.Decision, error) {
	put := func() { v.order.leave(q.ID) }
	defer put()
	if err := v.order.await(ctx, &q.Approval); err != nil {
		return belay.Decision{}, err
	}
	return v.Approver.Approve(context.WithValue(ctx, putKey{}, put), q)
}

// put records that a question is shown.
func put(ctx context.Context) {
	if f, ok := ctx.Value(putKey{}).(func()); ok {
		f()
	}
}
