package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
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
	for _, m := range []*belay.Message{response, final} {
		m.Model, m.Usage = "bench/model", &belay.Usage{In: 1000, Out: 100, Cost: 0.01}
	}
	return []*belay.Commit{
		{Session: "bench", Epoch: epoch, Messages: []*belay.Message{asked}, State: state},
		{Session: "bench", Epoch: epoch, Messages: []*belay.Message{response}, Calls: []belay.CallRecord{call}, Runs: runs[:3], State: state},
		{Session: "bench", Epoch: epoch, Messages: []*belay.Message{results}, Calls: []belay.CallRecord{done}, Runs: runs[3:6], State: state},
		{Session: "bench", Epoch: epoch, Messages: []*belay.Message{final}, Runs: runs[6:], State: &belay.SessionState{Turns: turn}},
	}
}

// BenchmarkTurn measures the commits of a turn. For comparison, "floor" measures the same
// number of plain transactions with the same rows.
func BenchmarkTurn(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+"?_txlock=immediate&_journal_mode=WAL&_synchronous=FULL")
		if err != nil {
			b.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		defer func() { _ = db.Close() }()
		ctx := context.Background()
		if _, err := db.ExecContext(ctx, "CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)"); err != nil {
			b.Fatal(err)
		}
		insert, err := db.PrepareContext(ctx, "INSERT INTO rows (body) VALUES (?)")
		if err != nil {
			b.Fatal(err)
		}
		body := string(make([]byte, 300))
		for b.Loop() {
			for _, rows := range []int{2, 6, 6, 6} {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					b.Fatal(err)
				}
				for range rows {
					if _, err := tx.StmtContext(ctx, insert).ExecContext(ctx, body); err != nil { //nolint:sqlclosecheck // the transaction closes it
						b.Fatal(err)
					}
				}
				if err := tx.Commit(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("store", func(b *testing.B) {
		ctx, s := context.Background(), open(b, nil)
		stored, err := s.Open(ctx, "bench")
		if err != nil {
			b.Fatal(err)
		}
		last, turn := stored.Last, 0
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

// BenchmarkOpen measures opening a new store and an existing store.
func BenchmarkOpen(b *testing.B) {
	again := func(b *testing.B, path func(i int) string) {
		for i := 0; b.Loop(); i++ {
			s, err := sqlite.Open(context.Background(), path(i), nil)
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("new", func(b *testing.B) {
		dir := b.TempDir()
		again(b, func(i int) string { return filepath.Join(dir, fmt.Sprint(i, ".db")) })
	})
	b.Run("used", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "belay.db")
		again(b, func(int) string { return path })
	})
}

// BenchmarkAppend measures storing the runs of a dispatch with 100 hooks. For comparison,
// "one" measures storing one run.
func BenchmarkAppend(b *testing.B) {
	for name, hooks := range map[string]int{"one": 1, "hundred": 100} {
		b.Run(name, func(b *testing.B) {
			s := open(b, nil)
			for n := 0; b.Loop(); n++ {
				if err := s.Journal().Append(context.Background(), dispatch(n)[:hooks]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
