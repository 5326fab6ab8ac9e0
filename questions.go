package belay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// Questions yields every question that open turns in a store wait for, with the inputs of
// the calls. First come undecided approvals, oldest first. Approvals for calls of
// ask_user are among them. Then come calls that their tools have parked: these have a
// Wait and no ID.
//
// Questions needs no agent and no hold. It works from any process and after a restart.
// Answer an approval with [Agent.Decide] or the store's Decide.
//
// Questions uses only the fields Session and Limit of the filter. Session selects a
// session and the sessions of its subagents. Expired approvals are left out. Input is nil
// if the transcript does not have the input that the approval is about. Run and Depth are
// not set.
func Questions(ctx context.Context, store ListStore, filter ApprovalFilter) iter.Seq2[Question, error] {
	return func(yield func(Question, error) bool) {
		q := questionList{store: store, filter: filter, sessions: make(map[string]SessionInfo), yield: yield}
		if err := q.list(ctx); err != nil {
			yield(Question{}, fmt.Errorf("list questions: %w", err))
		}
	}
}

// questionList is one listing of questions.
type questionList struct {
	store    ListStore
	filter   ApprovalFilter
	sessions map[string]SessionInfo // the sessions with an open turn
	parked   []string               // the ids of these sessions, most recently changed first
	yield    func(Question, error) bool
	count    int
}

func (q *questionList) list(ctx context.Context) error {
	for info, err := range q.store.Sessions(ctx, SessionFilter{Prefix: q.filter.Session, Open: true}) {
		if err != nil {
			return err
		}
		if of := q.filter.Session; of == "" || info.ID == of || strings.HasPrefix(info.ID, of+"/") {
			q.sessions[info.ID] = info
			q.parked = append(q.parked, info.ID)
		}
	}
	more, err := q.approvals(ctx)
	if err != nil || !more || q.filter.ID != "" { // a call that its tool has parked has no approval
		return err
	}
	for _, id := range slices.Backward(q.parked) {
		info := q.sessions[id]
		for _, wait := range info.State.Turn.Waits {
			asked := Approval{Session: id, Turn: info.State.Turn.ID, Call: wait.Call, Tool: wait.Tool}
			if more, err := q.add(ctx, &asked, wait.Wait); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// approvals yields the pending approvals. It reports whether the caller wants more
// questions.
func (q *questionList) approvals(ctx context.Context) (bool, error) {
	filters := []ApprovalFilter{{ID: q.filter.ID, Pending: true}}
	if q.filter.Session != "" {
		filters = nil
		for _, id := range slices.Backward(q.parked) {
			filters = append(filters, ApprovalFilter{ID: q.filter.ID, Session: id, Pending: true})
		}
	}
	for _, filter := range filters {
		for a, err := range q.store.Approvals(ctx, filter) {
			if err != nil {
				return false, err
			}
			if info, open := q.sessions[a.Session]; !open || info.State.Turn.ID != a.Turn || a.expired(time.Now()) {
				continue
			}
			if more, err := q.add(ctx, &a, ""); err != nil || !more {
				return false, err
			}
		}
	}
	return true, nil
}

// add yields a question with its input, or without an input if the approval is about
// another one. It reports whether the caller wants more questions.
func (q *questionList) add(ctx context.Context, a *Approval, wait string) (bool, error) {
	info := q.sessions[a.Session]
	input, err := q.input(ctx, &info, a.Call)
	if errors.Is(err, ErrNotFound) {
		return true, nil // the session was deleted after it was listed
	}
	if err != nil {
		return false, err
	}
	if a.ID != "" && !a.isAbout(input) {
		input = nil
	}
	q.count++
	return q.yield(Question{Approval: *a, Input: input, Agent: info.State.Agent, Wait: wait}, nil) && q.count != q.filter.Limit, nil
}

// input finds the input of a call of the open turn. It starts near the end of the
// transcript, where the call usually is.
func (q *questionList) input(ctx context.Context, info *SessionInfo, call string) (input json.RawMessage, err error) {
	for back := int64(2); ; back *= 8 {
		after := max(info.Last-back, 0)
		for m, err := range q.store.Read(ctx, info.ID, after) {
			if err != nil {
				return nil, err
			}
			if m.Turn != info.State.Turn.ID {
				continue
			}
			for _, c := range m.Calls() {
				if c.ID != call {
					continue
				}
				if input = c.Input; c.Final != nil {
					input = c.Final
				}
			}
		}
		if input != nil || after == 0 {
			return input, nil
		}
	}
}
