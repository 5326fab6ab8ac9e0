package subagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
)

// A call of delegate that is parked keeps what came of its other tasks in a session of
// its own, in the parent's store: it may be long, it is content as a transcript is, and
// what a task did must not be done again. The last message counts.

// recordSession is the id of that session.
func recordSession(call *belay.Invocation) string { return freshSession(call, 0) }

// remember stores the answers that are there.
func remember(ctx context.Context, call *belay.Invocation, done []*answer) (err error) {
	kept := make([]*answer, len(done))
	for i, a := range done {
		if a.parked == "" {
			kept[i] = a
		}
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("delegate: %w", err)
	}
	store, id := call.Controls().Store(), recordSession(call)
	ctx = context.WithoutCancel(ctx) // what was done is done
	stored, err := store.Open(ctx, id)
	if err != nil {
		return fmt.Errorf("delegate: what was done cannot be kept: %w", err)
	}
	defer func() { err = errors.Join(err, store.Release(ctx, id, stored.Epoch)) }()
	err = store.Commit(ctx, &belay.Commit{Session: id, Epoch: stored.Epoch, Messages: []*belay.Message{{
		Seq: stored.Last + 1, Turn: call.Turn, Step: call.Step, Role: belay.RoleUser, Kind: belay.KindInjected, Time: time.Now(), Parts: []belay.Part{belay.Text(string(text))},
	}}})
	if err != nil {
		return fmt.Errorf("delegate: what was done cannot be kept: %w", err)
	}
	return nil
}

// recall reads them again.
func recall(ctx context.Context, call *belay.Invocation, done []*answer) error {
	var last *belay.Message
	for m, err := range call.Controls().Store().Read(ctx, recordSession(call), 0) {
		if err != nil {
			return fmt.Errorf("delegate: what was done before cannot be read: %w", err)
		}
		last = m
	}
	if last == nil {
		return errors.New("delegate: what was done before is not on record")
	}
	var kept []*answer
	if err := json.Unmarshal([]byte(last.Text()), &kept); err != nil || len(kept) != len(done) {
		return errors.Join(errors.New("delegate: what was done before cannot be understood"), err)
	}
	copy(done, kept)
	return nil
}
