package storetest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/storetest"
)

// note stores a message exactly once. A commit that fails may still be stored, so note
// reads the session before it retries.
func note(ctx context.Context, store belay.Store, session, text string) (int64, error) {
	for {
		stored, err := store.Open(ctx, session)
		if err != nil {
			return 0, err
		}
		if n := len(stored.Messages); n > 0 && stored.Messages[n-1].Text() == text {
			return stored.Last, store.Release(ctx, session, stored.Epoch)
		}
		m := &belay.Message{Seq: stored.Last + 1, Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text(text)}}
		failed := store.Commit(ctx, &belay.Commit{Session: session, Epoch: stored.Epoch, Messages: []*belay.Message{m}})
		if err := store.Release(ctx, session, stored.Epoch); err != nil {
			return 0, err
		}
		if failed != nil && !errors.Is(failed, storetest.ErrInjected) {
			return 0, failed
		}
	}
}

// To test code that writes to a store, use a store that fails. Here each commit fails once
// before it is stored, and once after.
func ExampleFaulty() {
	for _, stored := range []bool{false, true} {
		for n := 1; ; n++ {
			plan := &storetest.Plan{Commit: n, Stored: stored}
			last, err := note(context.Background(), storetest.Faulty(memstore.New(nil), plan), "demo", "hello")
			fmt.Printf("stored=%t commit=%d: %d message, %d commits, %v\n", stored, n, last, plan.Commits(), err)
			if !plan.Failed() {
				break // there is no commit number n
			}
		}
	}
	// Output:
	// stored=false commit=1: 1 message, 2 commits, <nil>
	// stored=false commit=2: 1 message, 1 commits, <nil>
	// stored=true commit=1: 1 message, 1 commits, <nil>
	// stored=true commit=2: 1 message, 1 commits, <nil>
}
