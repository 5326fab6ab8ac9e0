package cli

import (
	"bytes"
	"context"
	"iter"
	"strings"
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

// endingRecords has a session whose turn ends while its state is read.
type endingRecords struct{ records }

func (endingRecords) Watch(context.Context, string, int64) iter.Seq2[*belay.Message, error] {
	return func(yield func(*belay.Message, error) bool) {
		question := &belay.Message{Seq: 1, Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text("a task")}}
		answer := &belay.Message{Seq: 2, Role: belay.RoleAssistant, Kind: belay.KindAssistant, Parts: []belay.Part{belay.Text("the answer")}}
		// The nil after the question is the state of the turn that runs. When it is read, the turn has ended.
		for _, m := range []*belay.Message{question, nil, answer, nil} {
			if !yield(m, nil) {
				return
			}
		}
	}
}

func (endingRecords) Queue(context.Context, string) ([]api.QueuedTurn, error) { return nil, nil }

func (endingRecords) Session(context.Context, string) (api.Session, error) {
	return api.Session{ID: "s", State: "done", Last: 2, Reason: belay.EndTurn}, nil
}

func (endingRecords) Sessions(context.Context, belay.SessionFilter) iter.Seq2[api.Session, error] {
	return func(yield func(api.Session, error) bool) { yield(api.Session{ID: "s"}, nil) }
}

// `belay watch --end` shows all messages before it ends, also those that were stored while it
// read the state of the session.
func TestWatchShowsTheAnswerBeforeItEnds(t *testing.T) {
	t.Parallel()
	out := new(bytes.Buffer)
	w := &watcher{app: &app{out: out}, transcript: new(transcript), asJSON: true, end: true}
	if err := w.watch(t.Context(), endingRecords{}, "s"); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Index(text, "the answer") < strings.Index(text, "a task") || !strings.Contains(text, "the answer") || !strings.HasSuffix(text, `{"session":"s","state":"done"}`+"\n") {
		t.Errorf("it shows\n%s", text)
	}
}
