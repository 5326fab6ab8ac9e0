package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/hook"
)

func backtestPromises() []promise {
	return []promise{{"backtest", 10, backtestRatio}}
}

// past are recorded sessions with 10 calls each. All share their messages, so that only the
// backtest itself takes time.
type past struct {
	sessions int
	messages []*belay.Message
}

// newPast makes recorded sessions.
func newPast(calls int) past {
	now := time.Now()
	response := &belay.Message{Seq: 2, Turn: "1", Step: 1, Role: belay.RoleAssistant, Kind: belay.KindAssistant, Time: now, Model: "scripted"}
	results := &belay.Message{Seq: 3, Turn: "1", Step: 1, Role: belay.RoleUser, Kind: belay.KindResults, Time: now}
	for i := range 10 {
		id := fmt.Sprintf("call-%d", i)
		response.Parts = append(response.Parts, belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: id, Tool: "write", Input: []byte(`{"path":"docs/notes.md","content":"some text"}`)}})
		results.Parts = append(results.Parts, belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: id, Tool: "write", Result: belay.Result{Text: "done"}}})
	}
	user := &belay.Message{Seq: 1, Turn: "1", Role: belay.RoleUser, Kind: belay.KindUser, Time: now, Parts: []belay.Part{belay.Text("go on")}}
	return past{calls / 10, []*belay.Message{user, response, results}}
}

// Sessions yields the sessions.
func (p past) Sessions(context.Context, belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		for i := range p.sessions {
			if !yield(belay.SessionInfo{ID: fmt.Sprint(i), Last: 3}, nil) {
				return
			}
		}
	}
}

// Read yields the messages of a session.
func (p past) Read(context.Context, string, int64) iter.Seq2[*belay.Message, error] {
	return func(yield func(*belay.Message, error) bool) {
		for _, m := range p.messages {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// Approvals yields nothing.
func (past) Approvals(context.Context, belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
	return func(func(belay.Approval, error) bool) {}
}

// backtestRatio compares a backtest of 100,000 calls with as many bare dispatches to the same
// ten hooks, per call. Both use all processors.
func backtestRatio() (float64, error) {
	const calls = 100_000
	snaps := make([]*hook.Snapshot, runtime.GOMAXPROCS(0))
	for i := range snaps {
		var err error
		if snaps[i], err = snapshotOf(10, nil); err != nil {
			return 0, err
		}
	}
	call, err := belay.ToolPre.DecodeInput(hook.Scope{Session: "0", Turn: "1", Step: 1}, []byte(`{"id":"call-0","tool":"write","input":{"path":"docs/notes.md","content":"some text"}}`))
	if err != nil {
		return 0, err
	}
	subs := make([]hook.Subscription, 10)
	for i := range subs {
		subs[i] = belay.ToolPre.On(fmt.Sprintf("hook-%04d", i), pass, nil)
	}
	var failed error
	ours := func(n int) {
		report, err := backtest.Run(ctx, newPast(n), &backtest.Policy{Hooks: subs}, nil)
		switch {
		case err != nil:
			failed = err
		case report.Calls != n/10*10 || len(report.Differences) > 0:
			failed = fmt.Errorf("replayed %d of %d calls with %d differences", report.Calls, n, len(report.Differences))
		}
	}
	floor := func(n int) {
		var group sync.WaitGroup
		problems := make([]error, len(snaps))
		for i, snap := range snaps {
			group.Go(func() {
				for range n / len(snaps) {
					if _, err := belay.ToolPre.Dispatch(ctx, snap, call); err != nil {
						problems[i] = err
					}
				}
			})
		}
		group.Wait()
		if err := errors.Join(problems...); err != nil {
			failed = err
		}
	}
	figure := ratioOf(ours, floor, calls)
	return figure, failed
}
