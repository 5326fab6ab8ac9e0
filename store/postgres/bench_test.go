package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/pgtest"
)

// turnCommits returns the commits of a turn with one tool step and ten hook runs.
func turnCommits(epoch, last int64, turn int) []*belay.Commit {
	id := fmt.Sprintf("turn-%d", turn)
	message := func(kind belay.MessageKind, role belay.Role, part belay.Part) *belay.Message {
		last++
		return &belay.Message{Seq: last, Turn: id, Role: role, Kind: kind, Parts: []belay.Part{part}, Time: time.Now()}
	}
	state := &belay.SessionState{Turns: turn, Turn: &belay.TurnState{ID: id, Text: "tidy the changelog"}}
	runs := make([]hook.Run, 10)
	for i := range runs {
		runs[i] = hook.Run{
			ID: fmt.Sprintf("%s-%d", id, i), Subscription: "no-prod", Phase: "tool.pre", Dispatch: id, State: hook.Completed,
			Scope: hook.Scope{Session: "bench", Turn: id, Step: 1}, Started: time.Now(), Ended: time.Now(), Latency: 1000,
		}
	}
	asked := message(belay.KindUser, belay.RoleUser, belay.Text("tidy the changelog"))
	response := message(belay.KindAssistant, belay.RoleAssistant, belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: "c", Tool: "read", Input: []byte(`{"path":"a"}`)}})
	call := belay.CallRecord{Message: response.Seq, ID: "c", Tool: "read", State: belay.CallStarted, Input: []byte(`{"path":"a"}`)}
	done := call
	done.State, done.Result = belay.CallDone, &belay.Result{Text: "text"}
	results := message(belay.KindResults, belay.RoleUser, belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: "c", Tool: "read", Result: *done.Result}})
	final := message(belay.KindAssistant, belay.RoleAssistant, belay.Text("it is tidy"))
	return []*belay.Commit{
		{Session: "bench", Epoch: epoch, Messages: []*belay.Message{asked}, State: state},
		{Session: "bench", Epoch: epoch, Messages: []*belay.Message{response}, Calls: []belay.CallRecord{call}, Runs: runs[:3], State: state},
		{Session: "bench", Epoch: epoch, Messages: []*belay.Message{results}, Calls: []belay.CallRecord{done}, Runs: runs[3:6], State: state},
		{Session: "bench", Epoch: epoch, Messages: []*belay.Message{final}, Runs: runs[6:], State: &belay.SessionState{Turns: turn}},
	}
}

// BenchmarkTurn measures the commits of a turn. For comparison, "floor" measures the same
// number of plain transactions with the same number of rows. The server waits for its disk.
func BenchmarkTurn(b *testing.B) {
	ctx := context.Background()
	durable, err := pgtest.Start(&pgtest.Options{Durable: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = durable.Stop() }) // runs after the store is closed
	dsn, err := durable.Create(ctx, "belay", "template1")
	if err != nil {
		b.Fatal(err)
	}
	s := openDSN(b, dsn, nil)
	b.Run("floor", func(b *testing.B) {
		db := connect(b, dsn)
		defer func() { _ = db.Close(ctx) }()
		if _, err := db.Exec(ctx, "CREATE TABLE IF NOT EXISTS bare (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body TEXT)"); err != nil {
			b.Fatal(err)
		}
		body := fmt.Sprintf("%300d", 0)
		for b.Loop() {
			for _, rows := range []int{2, 6, 6, 6} {
				tx, err := db.Begin(ctx)
				if err != nil {
					b.Fatal(err)
				}
				for range rows {
					if _, err := tx.Exec(ctx, "INSERT INTO bare (body) VALUES ($1)", body); err != nil {
						b.Fatal(err)
					}
				}
				if err := tx.Commit(ctx); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	last, turn := int64(0), 0
	b.Run("store", func(b *testing.B) {
		stored, err := s.Open(ctx, "bench")
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = s.Release(ctx, "bench", stored.Epoch) }()
		for b.Loop() {
			turn++
			for _, c := range turnCommits(stored.Epoch, last, turn) {
				if err := s.Commit(ctx, c); err != nil {
					b.Fatal(err)
				}
			}
			last += 4
		}
	})
}
