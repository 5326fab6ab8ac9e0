package subagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
)

// When a call of delegate is parked, some of its tasks may be finished. Finished tasks
// must not run again, so their answers are stored. The answers are in a separate session
// of the parent's store, because they may be long and are content like messages. Only the
// last message of that session is used.

// recordSession returns the id of the session with the stored answers.
func recordSession(call *belay.Invocation) string { return freshSession(call, 0) }

// remember stores the answers of the finished tasks.
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
	ctx = context.WithoutCancel(ctx) // store them even if the call is cancelled
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
