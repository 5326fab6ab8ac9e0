package subagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
)

// A parked call of delegate keeps the answers of its finished tasks in a separate
// session in the parent's store: they may be long, they are content like a transcript,
// and a finished task must not run again. The last message counts.

// recordSession is the id of that session.
func recordSession(call *belay.Invocation) string { return freshSession(call, 0) }

// remember stores the available answers.
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
	ctx = context.WithoutCancel(ctx) // finished tasks stay finished
	stored, err := store.Open(ctx, id)
	if err != nil {
		return fmt.Errorf("delegate: cannot store the finished tasks: %w", err)
	}
	defer func() { err = errors.Join(err, store.Release(ctx, id, stored.Epoch)) }()
	err = store.Commit(ctx, &belay.Commit{Session: id, Epoch: stored.Epoch, Messages: []*belay.Message{{
		Seq: stored.Last + 1, Turn: call.Turn, Step: call.Step, Role: belay.RoleUser, Kind: belay.KindInjected, Time: time.Now(), Parts: []belay.Part{belay.Text(string(text))},
	}}})
	if err != nil {
		return fmt.Errorf("delegate: cannot store the finished tasks: %w", err)
	}
	return nil
}

// recall reads the stored answers.
func recall(ctx context.Context, call *belay.Invocation, done []*answer) error {
	var last *belay.Message
	for m, err := range call.Controls().Store().Read(ctx, recordSession(call), 0) {
		if err != nil {
			return fmt.Errorf("delegate: cannot read the finished tasks: %w", err)
		}
		last = m
	}
	if last == nil {
		return errors.New("delegate: the finished tasks are not stored")
	}
	var kept []*answer
	if err := json.Unmarshal([]byte(last.Text()), &kept); err != nil || len(kept) != len(done) {
		return errors.Join(errors.New("delegate: the stored tasks are invalid"), err)
	}
	copy(done, kept)
	return nil
}
