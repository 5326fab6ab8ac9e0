package belay

import (
	"context"
	"sync"
	"time"
)

// inquiry holds the questions that wait for the approver at the same time. The answer to
// one question may create a grant that also answers others. Another process may also decide
// about a question.
type inquiry struct {
	mu    sync.Mutex
	open  map[*call]openQuestion
	given []Grant
}

// openQuestion is a question that the approver has not answered yet.
type openQuestion struct {
	approval string // the id of the approval
	withdraw context.CancelCauseFunc
}

// answeredError is the cancel cause of a question that already has an answer.
type answeredError struct {
	decision  Decision
	elsewhere bool
}

func (e *answeredError) Error() string {
	if e.elsewhere {
		return "the approval was already decided by " + e.decision.By
	}
	return "an approval of another call also covers this one"
}

// begin adds the question about a call. If a grant already answers the question, begin
// withdraws it at once.
func (q *inquiry) begin(t *turn, c *call, withdraw context.CancelCauseFunc) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open[c] = openQuestion{c.approval.ID, withdraw}
	q.withdraw(t, c)
}

// end removes the question about a call after it was answered. It withdraws other questions
// that the call's new grant answers.
func (q *inquiry) end(t *turn, c *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, c)
	if c.grant == nil {
		return
	}
	q.given = append(q.given, *c.grant)
	for other := range q.open {
		q.withdraw(t, other)
	}
}

// withdraw cancels the question about a call if grants answer the questions of all its
// askers.
func (q *inquiry) withdraw(t *turn, c *call) {
	if len(q.given) == 0 {
		return
	}
	if left, by := t.stillAsked(c, q.given, t.session.state.Grants); len(left) == 0 && len(by) > 0 {
		q.open[c].withdraw(&answeredError{decision: asGranted(by)})
	}
}

// heedEvery is how often heed reads decisions from the store.
const heedEvery = time.Second

// heed withdraws questions that somebody decides in another process, until the returned
// function is called. If the store cannot list approvals, the turn finds such a decision
// only after the approver has answered.
func (q *inquiry) heed(t *turn) (end func()) {
	store, ok := t.agent.store.(ListStore)
	if !ok {
		return func() {}
	}
	ctx, cancel := context.WithCancel(t.ctx)
	var heeding sync.WaitGroup
	heeding.Go(func() { // runs until end is called
		often := time.NewTicker(heedEvery)
		defer often.Stop()
		for {
			select {
			case <-often.C:
				q.elsewhere(ctx, store, t.scope.Session)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		heeding.Wait()
	}
}

// elsewhere withdraws the questions that are decided in the store. If reading fails, the
// next call tries again.
func (q *inquiry) elsewhere(ctx context.Context, store ListStore, session string) {
	pending := make(map[string]bool)
	for a, err := range store.Approvals(ctx, ApprovalFilter{Session: session, Pending: true}) {
		if err != nil {
			return
		}
		pending[a.ID] = true
	}
	if !q.anyBut(pending) {
		return
	}
	for a, err := range store.Approvals(ctx, ApprovalFilter{Session: session}) {
		if err != nil {
			return
		}
		if a.Decided != nil {
			q.decided(a.ID, *a.Decided)
		}
	}
}

// anyBut reports whether a question that is open here is not in pending, which has the ids of
// the approvals that are undecided in the store. Somebody has decided such a question in
// another process.
func (q *inquiry) anyBut(pending map[string]bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range q.open {
		if !pending[o.approval] {
			return true
		}
	}
	return false
}

// decided withdraws the question about an approval, if it is open.
func (q *inquiry) decided(approval string, d Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range q.open {
		if o.approval == approval {
			o.withdraw(&answeredError{decision: d, elsewhere: true})
		}
	}
}
