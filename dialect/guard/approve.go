package guard

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
)

// question is a call that needs approval.
type question struct {
	id, tool   string
	input      json.RawMessage
	reason, by string
	floor      bool
	places     string       // where the paths of the call lead
	theirs     dialect.Call // the call as the other agent sent it
}

// hash identifies the call, its input, and the files that its paths lead to. It leaves out
// the description of a command, which models write anew each time.
func (q *question) hash() string {
	input := q.input
	if in, err := readFields(input); err == nil && q.tool == "shell" {
		delete(in, "description")
		if plain, err := json.Marshal(in); err == nil {
			input = plain
		}
	}
	theirs := q.theirs.Input
	if in, err := readFields(theirs); err == nil { // several calls of an agent can be the same call of Belay
		delete(in, "description")
		if plain, err := json.Marshal(in); err == nil {
			theirs = plain
		}
	}
	sum := sha256.Sum256([]byte(q.tool + "\n" + canonical(input) + "\n" + q.places + "\n" + strings.ToLower(q.theirs.Tool) + "\n" + canonical(theirs)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// approve decides about a call that needs approval. Hooks of approval.request may decide.
// Otherwise the other agent asks its user, if it can. If it cannot, the call is denied and
// an approval waits in the store. When a person has approved it, the same call passes once.
func (e *Engine) approve(ctx context.Context, s *hook.Snapshot, scope hook.Scope, ev *event, asked answer, questions []question) (answer, error) {
	var left []question
	for _, q := range questions {
		o, err := fire(ctx, belay.ApprovalRequest, s, scope, map[string]any{
			"id": newID("ap-"), "call": q.id, "tool": q.tool, "input": q.input, "hash": q.hash(), "reason": q.reason, "by": q.by, "floor": q.floor,
		})
		if err != nil {
			return answer{}, err
		}
		switch string(o.Output.Decision) {
		case "allow":
		case "deny":
			asked.decision, asked.reason = belay.ToolDeny, because(o.By, o.Output.Reason)
			return asked, e.denied(ctx, s, scope, q.id, dialect.Call{Tool: q.tool}, o.By, o.Output.Reason)
		default:
			left = append(left, q)
		}
	}
	switch {
	case len(left) == 0:
		asked.decision, asked.reason = belay.ToolPass, ""
		return asked, nil
	case ev.can.ask:
		return asked, nil
	}
	return e.approveLater(ctx, scope, ev, asked, left)
}

// approveLater passes if a person has approved every question, and uses these approvals up.
// Otherwise it denies, and stores an approval for each new question.
func (e *Engine) approveLater(ctx context.Context, scope hook.Scope, ev *event, asked answer, questions []question) (answer, error) {
	stored, err := e.hold(ctx, scope.Session)
	if err != nil {
		return answer{}, fmt.Errorf("open the session for an approval: %w", err)
	}
	defer func() { _ = e.Store.Release(context.WithoutCancel(ctx), scope.Session, stored.Epoch) }() // the hold ends with the process
	asked.decision = belay.ToolDeny
	used := usedApprovals(ctx, e.Store, scope.Session)
	commit := &writing{stored: stored, scope: scope, agent: ev.agent}
	var waiting []string
	var granted []question
	for _, q := range questions {
		approval, err := e.latest(ctx, scope.Session, q.hash(), used)
		if err != nil {
			return answer{}, err
		}
		switch now := time.Now(); {
		case approval == nil || approval.Decided == nil && !approval.Expires.IsZero() && !now.Before(approval.Expires):
			approval = commit.ask(&q, now, now.Add(e.Expiry))
			waiting = append(waiting, approval.ID)
		case approval.Decided == nil:
			waiting = append(waiting, approval.ID)
		case approval.Decided.Allow:
			q.id = approval.ID
			granted = append(granted, q)
		default:
			asked.reason = because(approval.Decided.By, cmp.Or(approval.Decided.Reason, "a person denied this call"))
			return asked, nil
		}
	}
	if len(waiting) > 0 {
		if err := commit.store(ctx, e.Store); err != nil {
			return answer{}, err
		}
		asked.reason += fmt.Sprintf(" — a person must approve this call: `belay approvals approve %s`. Tell the user. After that, make the same call again.", strings.Join(waiting, "`, `belay approvals approve "))
		return asked, nil
	}
	for i := range granted {
		commit.use(&granted[i])
	}
	if err := commit.store(ctx, e.Store); err != nil { // without this record, the approval could be used again
		return answer{}, err
	}
	asked.decision, asked.reason = belay.ToolPass, ""
	return asked, nil
}

// hold opens the session. Another process of Belay may hold the session for a moment.
func (e *Engine) hold(ctx context.Context, session string) (*belay.Stored, error) {
	deadline := time.Now().Add(holdTimeout)
	for {
		stored, err := e.Store.Open(ctx, session)
		if !errors.Is(err, belay.ErrHeld) || time.Now().After(deadline) {
			return stored, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// holdTimeout is how long an event waits for another event of the same session.
const holdTimeout = 5 * time.Second

// usedApprovals returns the approvals of a session that were used. A used approval is the
// id of a call in the transcript.
func usedApprovals(ctx context.Context, store belay.Store, session string) map[string]bool {
	used := make(map[string]bool)
	for m, err := range store.Read(ctx, session, 0) {
		if err != nil {
			return nil // the caller then treats every approval as used
		}
		for _, c := range m.Calls() {
			used[c.ID] = true
		}
	}
	return used
}

// latest returns the last approval for a call that was not used, or nil.
func (e *Engine) latest(ctx context.Context, session, hash string, used map[string]bool) (*belay.Approval, error) {
	var last *belay.Approval
	for a, err := range e.Store.Approvals(ctx, belay.ApprovalFilter{Session: session}) {
		if err != nil {
			return nil, err
		}
		if a.Hash == hash && used != nil && !used[a.ID] {
			last = &a
		}
	}
	return last, nil
}

// writing collects what one commit stores.
type writing struct {
	stored    *belay.Stored
	scope     hook.Scope
	agent     dialect.Vendor
	messages  []*belay.Message
	calls     []belay.CallRecord
	approvals []belay.Approval
}

// ask adds a call that waits for approval. For the transcript the call is denied, because
// the other agent is told so.
func (w *writing) ask(q *question, now, expires time.Time) *belay.Approval {
	approval := belay.Approval{
		ID: newID("ap-"), Session: w.scope.Session, Turn: w.scope.Turn, Call: q.id, Tool: q.tool, Hash: q.hash(),
		Reason: q.reason, By: cmp.Or(q.by, "tool.pre"), Floor: q.floor, Asked: now, Expires: expires,
	}
	w.approvals = append(w.approvals, approval)
	w.add(q, belay.Failed(belay.ClassDenied, "The call needs approval "+approval.ID+"."))
	return &approval
}

// use adds a call that passes because of an approval. The id of the call is the id of the
// approval, so that the approval cannot be used again.
func (w *writing) use(q *question) {
	w.add(q, belay.Result{Text: "Approved. " + w.agent.Title() + " may run this call once."})
}

// add adds a call with its result to the transcript.
func (w *writing) add(q *question, r belay.Result) {
	seq, now := w.stored.Last+int64(len(w.messages)), time.Now()
	w.messages = append(w.messages, &belay.Message{
		Seq: seq + 1, Turn: w.scope.Turn, Step: 1, Role: belay.RoleAssistant, Kind: belay.KindAssistant, Time: now, StopReason: belay.StopToolUse,
		Parts: []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{ID: q.id, Tool: q.tool, Input: q.input}}},
	}, &belay.Message{
		Seq: seq + 2, Turn: w.scope.Turn, Step: 1, Role: belay.RoleUser, Kind: belay.KindResults, Time: now,
		Parts: []belay.Part{{Type: belay.PartResult, Result: &belay.ResultPart{Call: q.id, Tool: q.tool, Result: r}}},
	})
	w.calls = append(w.calls, belay.CallRecord{Message: seq + 1, ID: q.id, Tool: q.tool, State: belay.CallDone, Input: q.input, Result: &r})
}

// store commits everything in one transaction.
func (w *writing) store(ctx context.Context, store belay.Store) error {
	if len(w.messages) == 0 {
		return nil
	}
	state := w.stored.State.Clone()
	state.Agent, state.Turns, state.Last = string(w.agent), max(state.Turns, 1), belay.EndTurn
	err := store.Commit(ctx, &belay.Commit{
		Session: w.scope.Session, Epoch: w.stored.Epoch, Messages: slices.Clone(w.messages), Calls: w.calls, Approvals: w.approvals, State: &state,
	})
	if err != nil {
		return fmt.Errorf("store the approval: %w", err)
	}
	return nil
}
