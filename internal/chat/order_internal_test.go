package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
)

// asksAll calls an approver with all questions at the same time, the last one first. It
// returns the order in which the approver got them.
func asksAll(t *testing.T, o *Order, n int, turn string, put func(ctx context.Context)) string {
	t.Helper()
	questions := make([]belay.Question, n)
	for i := range questions {
		questions[i].Approval = belay.Approval{ID: fmt.Sprintf("%s%d", turn, i), Session: "s", Turn: turn}
		o.Hear(&belay.Event{Kind: belay.EventApprovalRequested, Approval: &questions[i].Approval})
	}
	order := make(chan string, n)
	a := o.Approver(approverFunc(func(ctx context.Context, q belay.Question) (belay.Decision, error) {
		order <- q.ID
		put(ctx)
		return belay.Decision{Allow: true}, nil
	}))
	for i := n - 1; i >= 0; i-- {
		go func() { _, _ = a.Approve(t.Context(), questions[i]) }()
		synctest.Wait() // every goroutine is blocked now
	}
	var all []string
	for range n {
		all = append(all, <-order)
	}
	return strings.Join(all, " ")
}

type approverFunc func(ctx context.Context, q belay.Question) (belay.Decision, error)

func (f approverFunc) Approve(ctx context.Context, q belay.Question) (belay.Decision, error) {
	return f(ctx, q)
}

// SPEC P-10: parallel calls have separate approvals. The questions come in the order of the
// calls.
func TestQuestionsComeInTheOrderOfCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if got := asksAll(t, new(Order), 4, "a", func(context.Context) {}); got != "a0 a1 a2 a3" {
			t.Errorf("answered one by one, they come as %s", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		got := asksAll(t, new(Order), 4, "a", func(ctx context.Context) { put(ctx); <-over })
		close(over)
		if got != "a0 a1 a2 a3" {
			t.Errorf("taken up by a chat, they come as %s", got)
		}
	})
}

// A question waits only for earlier questions of its own turn. It does not wait for decided
// or abandoned ones.
func TestAQuestionDoesNotWaitInVain(t *testing.T) {
	t.Parallel()
	asked := func(o *Order, id, session string) belay.Approval {
		a := belay.Approval{ID: id, Session: session, Turn: "1"}
		o.Hear(&belay.Event{Kind: belay.EventApprovalRequested, Approval: &a})
		return a
	}
	yes := approverFunc(func(context.Context, belay.Question) (belay.Decision, error) { return belay.Decision{Allow: true}, nil })
	for name, settle := range map[string]func(o *Order, first belay.Approval){
		"decided":          func(o *Order, a belay.Approval) { o.Hear(&belay.Event{Kind: belay.EventApprovalDecided, Approval: &a}) },
		"the turn is over": func(o *Order, _ belay.Approval) { o.Hear(&belay.Event{Kind: belay.EventTurnEnd}) },
		"withdrawn": func(o *Order, a belay.Approval) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, _ = o.Approver(yes).Approve(ctx, belay.Question{Approval: a})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := new(Order)
				other, first, second := asked(o, "other", "child"), asked(o, "first", "s"), asked(o, "second", "s")
				_ = other // nobody asks this question
				done := make(chan error, 1)
				go func() {
					_, err := o.Approver(yes).Approve(t.Context(), belay.Question{Approval: second})
					done <- err
				}()
				synctest.Wait()
				select {
				case <-done:
					t.Fatal("it did not wait for the first")
				default:
				}
				settle(o, first)
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		o := new(Order)
		asked(o, "first", "s")
		second := asked(o, "second", "s")
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		if _, err := o.Approver(yes).Approve(ctx, belay.Question{Approval: second}); !errors.Is(err, gone) {
			t.Errorf("cancelled while it waits: %v", err)
		}
	})
}
