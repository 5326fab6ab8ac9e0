package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
)

// serve starts the service in this process, with a model and options of the test.
func serve(t *testing.T, model belay.Model, opts *belay.Options) (s *service, address string) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "support.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	opts.Store, opts.Hooks, opts.OnAsk, opts.ReleaseIdle, opts.RefuseBusy = store, []hook.Subscription{bigRefund}, belay.AskPark, true, true
	agent, err := belay.New(model, opts)
	if err != nil {
		t.Fatal(err)
	}
	s = &service{agent: agent, store: store, approvers: map[string]string{"boss": "plum"}}
	server := httptest.NewServer(s.handler())
	t.Cleanup(func() {
		server.Close()
		if err := agent.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, server.URL
}

// asked returns the approvals of a session, also those that have expired.
func asked(t *testing.T, s *service) []belay.Approval {
	t.Helper()
	var all []belay.Approval
	for a, err := range s.store.Approvals(t.Context(), belay.ApprovalFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

func refundOf(cents int) scripted.Call {
	return scripted.Call{Tool: "refund", Input: map[string]any{"order": demoOrder, "amount": map[string]any{"cents": cents}, "reason": "broken"}}
}

func finalAnswer(status string) scripted.Step {
	return scripted.Step{Calls: []scripted.Call{{Tool: "final_answer", Input: map[string]any{"summary": "done", "status": status}}}}
}

// A decision that arrives too late, or for the second time, is refused. The ticket does not stay
// parked: the turn continues without this decision.
//
// SPEC P-09
func TestALateDecisionResumesTheTicket(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		expiry time.Duration
		before func(t *testing.T, s *service, a belay.Approval) // happens before the decision arrives
	}{
		"after the expiry": {time.Nanosecond, func(*testing.T, *service, belay.Approval) {}},
		"for the second time, after a process that died before it resumed the turn": {time.Hour, func(t *testing.T, s *service, a belay.Approval) {
			if _, err := s.agent.Decide(t.Context(), belay.Decision{Approval: a.ID, Hash: a.Hash, By: "boss"}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			shop := &shop{orders: demoOrders, ledger: filepath.Join(t.TempDir(), "refunds.jsonl")}
			model := scripted.New([]scripted.Step{{Calls: []scripted.Call{refundOf(4990)}}, finalAnswer("refused"), finalAnswer("solved")}, nil)
			s, address := serve(t, model, &belay.Options{Tools: shop.tools(), ApprovalExpiry: test.expiry})
			if status, text := ask(t, http.MethodPost, address+"/tickets/7", map[string]string{"text": "My money!"}, nil); status != http.StatusAccepted {
				t.Fatalf("the ticket gets %d %s", status, text)
			}
			approval := asked(t, s)[0]
			test.before(t, s, approval)
			decision := belay.Decision{Approval: approval.ID, Hash: approval.Hash, Allow: true}
			if status, text := ask(t, http.MethodPost, address+"/approvals", decision, nil); status != http.StatusConflict {
				t.Errorf("the decision gets %d %s, want %d", status, text, http.StatusConflict)
			}
			var outcome Outcome
			if status, text := ask(t, http.MethodPost, address+"/tickets/7", map[string]string{"text": "Well?"}, &outcome); status != http.StatusOK || outcome.Status != "solved" {
				t.Errorf("the next message gets %d %s: the ticket is still parked", status, text)
			}
			if got := paid(t, filepath.Dir(shop.ledger)); len(got) != 0 {
				t.Errorf("paid without approval: %+v", got)
			}
		})
	}
}

// Two approvers decide about two calls of one turn. The second decision arrives while the first
// request continues the turn. Both calls run, and no request fails.
//
// SPEC P-10
func TestADecisionWhileTheTurnRuns(t *testing.T) {
	t.Parallel()
	var ran atomic.Int32
	started, second := make(chan struct{}), make(chan struct{})
	refund := belay.NewTool("refund", "Pays money back.", func(ctx context.Context, _ Refund) (string, error) {
		if ran.Add(1) == 1 {
			close(started)
			select {
			case <-second:
			case <-ctx.Done():
			}
		}
		return "It is paid.", nil
	}, nil)
	model := scripted.New([]scripted.Step{{Calls: []scripted.Call{refundOf(4000), refundOf(4990)}}, finalAnswer("solved")}, nil)
	s, address := serve(t, model, &belay.Options{Tools: []belay.Tool{refund}})
	if status, text := ask(t, http.MethodPost, address+"/tickets/7", map[string]string{"text": "My money!"}, nil); status != http.StatusAccepted {
		t.Fatalf("the ticket gets %d %s", status, text)
	}
	approvals := asked(t, s)
	if len(approvals) != 2 {
		t.Fatalf("the approvals are %+v", approvals)
	}
	type response struct {
		status int
		text   string
	}
	decide := func(a belay.Approval) chan response {
		done := make(chan response, 1)
		go func() {
			status, text := ask(t, http.MethodPost, address+"/approvals", belay.Decision{Approval: a.ID, Hash: a.Hash, Allow: true}, nil)
			done <- response{status, text}
		}()
		return done
	}
	first := decide(approvals[0])
	<-started
	later := decide(approvals[1])
	decided := func() bool {
		a := asked(t, s)
		return a[0].Decided != nil && a[1].Decided != nil
	}
	for deadline := time.Now().Add(time.Minute); !decided(); { // then the second request finds the session busy
		if time.Now().After(deadline) {
			t.Fatal("the second decision is not stored")
		}
		time.Sleep(time.Millisecond)
	}
	close(second)
	responses := []response{<-first, <-later}
	solved := 0
	for _, r := range responses {
		var outcome Outcome
		if r.status != http.StatusOK && r.status != http.StatusAccepted || json.Unmarshal([]byte(r.text), &outcome) != nil {
			t.Errorf("a decision gets %d %s", r.status, r.text)
		}
		if outcome.Status == "solved" {
			solved++
		}
	}
	if ran.Load() != 2 || solved != 1 {
		t.Errorf("%d refunds ran, and the responses are %+v: want 2, and one with the outcome", ran.Load(), responses)
	}
}
