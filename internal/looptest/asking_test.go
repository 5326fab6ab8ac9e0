package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// The reader of an event owns the event: a decision about the question does not write to
// it. Otherwise the race detector would report a race.
//
// SPEC L-08
func TestTheEventOfAQuestionDoesNotChange(t *testing.T) {
	t.Parallel()
	var d diary
	opts := everyCallAsks(&d, belay.AskWait)
	opts.Approver = approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
		return belay.Decision{Allow: true, By: "ann"}, nil
	})
	agent, _ := newAgent(t, opts, calls("act"))
	var asked, decided []*belay.Approval
	for event, err := range agent.Session("s").Run(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		switch event.Kind { //nolint:exhaustive // the others are not about approvals
		case belay.EventApprovalRequested:
			asked = append(asked, event.Approval)
			for range 100 { // read the event while the question is being decided
				if _, err := json.Marshal(event.Approval); err != nil {
					t.Error(err)
				}
			}
		case belay.EventApprovalDecided:
			decided = append(decided, event.Approval)
		}
	}
	if len(asked) != 1 || asked[0].Decided != nil {
		t.Errorf("the event of the question has %+v", asked)
	}
	if len(decided) != 1 || decided[0].Decided == nil || !decided[0].Decided.Allow {
		t.Errorf("the event of the decision has %+v", decided)
	}
}

// SPEC T-01
func TestAnApproverThatIgnoresItsContextIsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		abort bool
		want  belay.EndReason
		by    string
	}{
		{"when the question expires", false, belay.EndTurn, "deny by expiry: nobody decided before the approval expired"},
		{"when the turn is aborted", true, belay.EndAborted, "deny by cancel: the turn was aborted before anybody decided"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // if the turn waits for the approver, synctest reports a deadlock
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				deaf := make(chan struct{})
				defer close(deaf)
				var d diary
				opts := everyCallAsks(&d, belay.AskWait)
				opts.ApprovalExpiry = time.Hour
				opts.Approver = approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
					if test.abort {
						cancel()
					}
					<-deaf
					return belay.Decision{Allow: true, By: "ann"}, nil
				})
				agent, _ := newAgent(t, opts, calls("act"))
				if all := take(agent.Session("s").Run(ctx, "go")); all.Reason != test.want {
					t.Errorf("the turn ended %s, want %s", all.Reason, test.want)
				}
				wantEqual(t, "what happened", d.all(), []string{test.by})
			})
		})
	}
}

// SPEC T-01
func TestTheApprovalOfAnAbandonedTurnIsDecidedByCancel(t *testing.T) {
	t.Parallel()
	var d diary
	agent, _ := newAgent(t, everyCallAsks(&d, belay.AskPark), calls("act"))
	session := agent.Session("s")
	wait := takeTurn(t, session.Run(t.Context(), "go"), belay.EndParked).Waits[0]
	if _, err := session.Abandon(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "what happened", d.all(), []string{"deny by cancel: the turn was ended before anybody decided"})
	late := belay.Decision{Approval: wait.ID, Hash: wait.Hash, Allow: true, By: "ann"}
	if _, err := agent.Decide(t.Context(), late); !errors.Is(err, belay.ErrDecided) {
		t.Errorf("a decision that comes too late: %v, want %v", err, belay.ErrDecided)
	}
}

// While a turn is parked, other processes can open the session, even if the first process
// still runs.
//
// SPEC L-01
func TestAParkedTurnLetsGoOfTheStore(t *testing.T) {
	t.Parallel()
	var d diary
	store := memstore.New(nil)
	worker := func(steps ...scripted.Step) *belay.Agent {
		opts := everyCallAsks(&d, belay.AskPark)
		opts.Store = store
		return agentOf(t, scriptOf(steps...), opts)
	}
	takeTurn(t, worker(calls("act")).Session("s").Run(t.Context(), "go"), belay.EndParked)
	other := worker(says("done")) // while the first process still exists
	parked := takeTurn(t, other.Session("s").Resume(t.Context()), belay.EndParked)
	settleApproval(t, other, parked.Waits[0].Approval, true)
	takeTurn(t, other.Session("s").Resume(t.Context()), belay.EndTurn)
	wantEqual(t, "what happened", d.all(), []string{"allow by ann: so", "ran {}"})
}

// While a person is asked about one call, other calls of the same response are not stored
// as started, because they have not started. So the process that resumes the turn knows
// that they had no effect.
//
// SPEC L-01
func TestSiblingsOfAQuestionAreStoredJudged(t *testing.T) {
	t.Parallel()
	var d logbook
	store := memstore.New(nil)
	options := func() *belay.Options {
		return &belay.Options{
			Store: store, Hooks: []hook.Subscription{asking(&d, "write")},
			Tools: []belay.Tool{noting(&d, "read", nil), noting(&d, "write", nil)},
		}
	}
	asked, release := make(chan struct{}), make(chan struct{})
	first := options()
	first.Approver = approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
		close(asked)
		<-release
		return belay.Decision{}, errors.New("gone")
	})
	gone := agentOf(t, scriptOf(calls("read", "write")), first).Session("s")
	ended := make(chan taken, 1)
	go func() { ended <- take(gone.Run(context.WithoutCancel(t.Context()), "go")) }()
	<-asked
	store.Expire("s") // the process ends while the person decides

	second := options()
	second.OnAsk = belay.AskPark
	agent := agentOf(t, scriptOf(says("done")), second)
	session := agent.Session("s")
	wait := takeTurn(t, session.Resume(t.Context()), belay.EndParked).Waits[0]
	settleApproval(t, agent, wait.Approval, true)
	takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
	for _, r := range storedResults(t, session) {
		if r.IsError || r.Text != r.Tool+" ran on {}" {
			t.Errorf("the result of %s is %+v", r.Tool, r)
		}
	}

	close(release)
	if lost := <-ended; !errors.Is(lost.err, belay.ErrFenced) {
		t.Errorf("the process that lost the session ended with %v", lost.err)
	}
	if got := d.all(); len(got) != 4 {
		t.Errorf("what happened: %q, want each call judged once and run once", got)
	}
}

// If a tool parks its call with a name, the resumed call gets this name, even if the
// floor now asks for approval first.
//
// SPEC L-01
func TestAParkedToolKeepsItsNameWhenTheFloorAsks(t *testing.T) {
	t.Parallel()
	var d diary
	var floor belay.Authorization
	agent, _ := newAgent(t, &belay.Options{
		OnAsk:      belay.AskPark,
		Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) { return floor, nil }),
		Tools: []belay.Tool{anyTool("child", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
			d.notef("called with %q", call.Wait)
			if call.Wait == "" {
				return belay.Result{}, belay.Park("child-7")
			}
			return belay.Result{Text: "ok"}, nil
		}, nil)},
	}, calls("child"))
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndParked)
	floor = belay.Authorization{Decision: belay.ToolAsk, Reason: "since today", By: "rule"}
	parked := takeTurn(t, session.Resume(t.Context()), belay.EndParked)
	settleApproval(t, agent, parked.Waits[0].Approval, true)
	takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
	wantEqual(t, "how the tool was called", d.all(), []string{`called with ""`, `called with "child-7"`})
}

// SPEC T-01: the first decision counts, even if it is made while another person is being
// asked.
func TestADecisionMadeElsewhereStands(t *testing.T) {
	t.Parallel()
	for place, store := range stores() {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			var d diary
			opts := everyCallAsks(&d, belay.AskWait)
			opts.Store = store()
			var agent *belay.Agent
			opts.Approver = approverFunc(func(ctx context.Context, q belay.Question) (belay.Decision, error) {
				if _, err := agent.Decide(ctx, belay.Decision{Approval: q.ID, Hash: q.Hash, By: "bob", Reason: "never"}); err != nil {
					return belay.Decision{}, err
				}
				return belay.Decision{Allow: true, By: "ann"}, nil
			})
			agent, _ = newAgent(t, opts, calls("act"))
			takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
			wantEqual(t, "what happened", d.all(), []string{"deny by bob: never"})
		})
	}
}

// undecided is a store that cannot store decisions.
type undecided struct{ belay.Store }

func (undecided) Decide(context.Context, belay.Decision) (belay.Approval, error) {
	return belay.Approval{}, errors.New("the disk is full")
}

// SPEC T-01: an approval that is not stored does not count, but a denial does.
func TestADecisionThatCannotBeStored(t *testing.T) {
	t.Parallel()
	for allow, want := range map[bool]string{
		true: "deny by belay: the decision could not be stored: the disk is full", false: "deny by ann: so",
	} {
		var d diary
		opts := everyCallAsks(&d, belay.AskWait)
		opts.Store = undecided{memstore.New(nil)}
		opts.Approver = approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
			return belay.Decision{Allow: allow, By: "ann", Reason: "so"}, nil
		})
		agent, _ := newAgent(t, opts, calls("act"))
		takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
		wantEqual(t, "what happened", d.all(), []string{want})
	}
}

// tampered is a store that returns changed approvals.
type tampered struct{ belay.Store }

func (s tampered) Open(ctx context.Context, session string) (*belay.Stored, error) {
	stored, err := s.Store.Open(ctx, session)
	if err == nil {
		for i := range stored.Approvals {
			stored.Approvals[i].Hash = "sha256:other"
		}
	}
	return stored, err
}

// SPEC T-01: an approval is valid for one input only, also in another process that resumes
// the turn.
func TestAnApprovalOfAnotherInputIsNone(t *testing.T) {
	t.Parallel()
	var d diary
	opts := everyCallAsks(&d, belay.AskPark)
	opts.Store = memstore.New(nil)
	agent, _ := newAgent(t, opts, calls("act"))
	parked := takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndParked)
	settleApproval(t, agent, parked.Waits[0].Approval, true)
	opts.Store = tampered{opts.Store}
	heir, _ := newAgent(t, opts)
	session := heir.Session("s")
	takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
	if r := onlyResult(t, session); r.Class != belay.ClassDenied || !strings.Contains(r.Text, "the approval is for another input than this call has now") {
		t.Errorf("the result is %+v", r)
	}
	wantEqual(t, "what happened", d.all(), nil)
}
