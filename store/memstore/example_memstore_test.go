package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A process opens a session, writes to it with commits that carry the epoch of the hold,
// and releases it. Reading needs no hold.
func Example() {
	ctx, store := context.Background(), memstore.New(nil)

	stored, err := store.Open(ctx, "demo")
	check(err)
	check(store.Commit(ctx, &belay.Commit{
		Session: "demo", Epoch: stored.Epoch,
		Messages: []*belay.Message{
			{Seq: stored.Last + 1, Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text("tidy the changelog")}},
		},
		State: &belay.SessionState{Turns: 1},
	}))
	_, err = store.Open(ctx, "demo")
	fmt.Println("while it is held:", errors.Is(err, belay.ErrHeld))
	check(store.Release(ctx, "demo", stored.Epoch))

	for m, err := range store.Read(ctx, "demo", 0) {
		check(err)
		fmt.Println(m.Seq, m.Kind, m.Text())
	}
	// Output:
	// while it is held: true
	// 1 user tidy the changelog
}

// A holder that counted as gone cannot commit after another process has opened the session.
func ExampleStore_Expire() {
	ctx, store := context.Background(), memstore.New(nil)
	slow, err := store.Open(ctx, "demo")
	check(err)

	store.Expire("demo") // as if the process had ended
	quick, err := store.Open(ctx, "demo")
	check(err)
	fmt.Println("the epoch rises:", quick.Epoch > slow.Epoch)

	err = store.Commit(ctx, &belay.Commit{Session: "demo", Epoch: slow.Epoch, State: &belay.SessionState{Turns: 1}})
	fmt.Println("the slow one is fenced off:", errors.Is(err, belay.ErrFenced))
	// Output:
	// the epoch rises: true
	// the slow one is fenced off: true
}

// An approval can be decided only once. The decision must name the hash of the input that
// the approval is about.
func ExampleStore_Decide() {
	ctx, store := context.Background(), memstore.New(nil)
	stored, err := store.Open(ctx, "demo")
	check(err)
	check(store.Commit(ctx, &belay.Commit{Session: "demo", Epoch: stored.Epoch, Approvals: []belay.Approval{{
		ID: "ap-1", Session: "demo", Call: "call-1", Tool: "shell", Hash: "sha256:1f", Reason: "it writes outside the project",
		Expires: time.Now().Add(time.Hour),
	}}}))

	decide := func(hash, by string) {
		approval, err := store.Decide(ctx, belay.Decision{Approval: "ap-1", Hash: hash, Allow: true, By: by})
		switch {
		case errors.Is(err, belay.ErrWrongHash):
			fmt.Println(by, "saw another input")
		case errors.Is(err, belay.ErrDecided):
			fmt.Println(by, "comes late:", approval.Decided.By, "has decided")
		default:
			check(err)
			fmt.Println(by, "decides")
		}
	}
	decide("sha256:2e", "ann")
	decide("sha256:1f", "bob")
	decide("sha256:1f", "ann")
	// Output:
	// ann saw another input
	// bob decides
	// ann comes late: bob has decided
}
