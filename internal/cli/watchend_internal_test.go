package cli

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

// parkedRecords has one parked turn. The other methods are not called.
type parkedRecords struct {
	records

	approvals []belay.Approval
	load      *belay.Load
	after     *api.OpenTurn // the turn when the session is read again
}

func (r *parkedRecords) Approvals(context.Context, belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
	return func(yield func(belay.Approval, error) bool) {
		for _, a := range r.approvals {
			if !yield(a, nil) {
				return
			}
		}
	}
}

func (r *parkedRecords) Load(context.Context) (*belay.Load, error) { return r.load, nil }

func (r *parkedRecords) Session(context.Context, string) (api.Session, error) {
	return api.Session{ID: "s", Turn: r.after}, nil
}

// `belay watch --end` does not end between the last decision about a parked turn and the moment
// at which a process takes the turn.
func TestWatchWaitsForADecidedTurn(t *testing.T) {
	t.Parallel()
	decided := &belay.Decision{Allow: true, Time: time.Now()}
	turn := &api.OpenTurn{ID: "t", Parked: true}
	worker := belay.HolderLoad{Worker: true}
	busy := belay.HolderLoad{Worker: true, Turns: []belay.DueTurn{{Session: "s"}}}
	for _, test := range []struct {
		rule      string
		approvals []belay.Approval
		held      bool
		load      *belay.Load
		after     *api.OpenTurn
		want      bool
	}{
		{rule: "a question is open", approvals: []belay.Approval{{Turn: "t", Decided: decided}, {Turn: "t"}}, load: &belay.Load{Waiting: 1, Holders: []belay.HolderLoad{worker}}, after: turn},
		{rule: "it waits for something else", approvals: []belay.Approval{{Turn: "before", Decided: decided}}, load: &belay.Load{Holders: []belay.HolderLoad{worker}}, after: turn},
		{rule: "a worker may take it", approvals: []belay.Approval{{Turn: "t", Decided: decided}}, load: &belay.Load{Waiting: 1, Holders: []belay.HolderLoad{worker}}, after: turn, want: true},
		{rule: "a worker has taken it", approvals: []belay.Approval{{Turn: "t", Decided: decided}}, load: &belay.Load{Holders: []belay.HolderLoad{busy}}, after: turn, want: true},
		{rule: "a worker will try it again", approvals: []belay.Approval{{Turn: "t", Decided: decided}}, load: &belay.Load{PutOff: []belay.DueTurn{{Session: "s"}}, Holders: []belay.HolderLoad{worker}}, after: turn, want: true},
		{rule: "a worker has finished it", approvals: []belay.Approval{{Turn: "t", Decided: decided}}, load: &belay.Load{Holders: []belay.HolderLoad{worker}}, want: true},
		{rule: "nobody takes it", approvals: []belay.Approval{{Turn: "t", Decided: decided}}, load: &belay.Load{Holders: []belay.HolderLoad{worker}}, after: turn},
		{rule: "there is no worker", approvals: []belay.Approval{{Turn: "t", Decided: decided}}, load: &belay.Load{Waiting: 1}, after: turn},
		{rule: "the process that asked has it", approvals: []belay.Approval{{Turn: "t", Decided: decided}}, held: true, load: &belay.Load{}, after: turn, want: true},
		{rule: "a server does not tell", approvals: []belay.Approval{{Turn: "t", Decided: decided}}, after: turn, want: true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			r := &parkedRecords{approvals: test.approvals, load: test.load, after: test.after}
			if got, err := goesOn(t.Context(), r, &api.Session{ID: "s", Turn: turn, Held: test.held}); got != test.want || err != nil {
				t.Errorf("it goes on: %v (%v), want %v", got, err, test.want)
			}
		})
	}
}
