package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/store/postgres"
)

// later are the migrations of this version and those that come after it, by name.
func later(t testing.TB, more map[string]string) fs.FS {
	t.Helper()
	all := fstest.MapFS{}
	files, err := fs.Glob(postgres.SharedMigrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := fs.ReadFile(postgres.SharedMigrations, name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = &fstest.MapFile{Data: text}
	}
	for name, text := range more {
		all["migrations/"+name] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + text)}
	}
	return all
}

// echo is a model that answers at once.
type echo struct{}

func (echo) Stream(_ context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		said := req.Messages[len(req.Messages)-1].Text()
		yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text("echo: " + said)}, StopReason: belay.StopEnd}}, nil)
	}
}

// worker runs a worker on a store, and tells which sessions it has taken.
func worker(t testing.TB, s *postgres.Store) (taken <-chan engine.Taken, stop func()) {
	t.Helper()
	agent, err := belay.New(echo{}, &belay.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan engine.Taken, 100)
	w, err := engine.New(s, engine.Of(agent), &engine.Options{Told: func(taken engine.Taken) {
		if !errors.Is(taken.Err, belay.ErrNoTurn) {
			told <- taken
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return told, func() {
		cancel()
		if err := errors.Join(<-ended, agent.Close(context.Background())); err != nil {
			t.Error(err)
		}
	}
}

// take has a worker take a turn, which must end well.
func take(t testing.TB, s *postgres.Store, taken <-chan engine.Taken, session string) {
	t.Helper()
	turn, err := belay.NewQueuedTurn(session, "main", "hello")
	if err == nil {
		err = s.Submit(t.Context(), turn)
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-taken:
		if got.Err != nil || got.Session != session || got.Turn.Reason != belay.EndTurn {
			t.Fatalf("the turn of %s: %+v, %v", session, got.Turn, got.Err)
		}
	case <-time.After(time.Minute):
		t.Fatalf("nobody takes the turn of %s", session)
	}
}

// The tables are brought up to date while workers of the version before are at work:
// something is added (expand), they go on, and may even be started again. What they need
// is not taken away (contract) while one of them lives; then it is, and they are refused.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	ctx, dsn := t.Context(), server.Database(t, template)
	expand := map[string]string{"00007_more.sql": "ALTER TABLE sessions ADD COLUMN mood TEXT NOT NULL DEFAULT '';\nCREATE TABLE moods (id TEXT NOT NULL PRIMARY KEY);"}
	contract := map[string]string{
		"00007_more.sql":          expand["00007_more.sql"],
		"00008_contract_less.sql": "ALTER TABLE sessions DROP COLUMN watched;\nUPDATE counters SET value = 7 WHERE name = 'oldest';",
	}
	opts := postgres.Options{Takeover: takeover}

	old := openDSN(t, dsn, &opts)
	taken, stop := worker(t, old)
	take(t, old, taken, "before")

	next := openDSN(t, dsn, postgres.OfVersion(opts, later(t, expand))) // expand
	if from, to := next.Migrated(); from != 6 || to != 7 {
		t.Fatalf("the tables were brought from %d to %d, want from 6 to 7", from, to)
	}
	take(t, old, taken, "old worker, new tables")
	again := openDSN(t, dsn, &opts) // one of the old ones is started again
	if _, to := again.Migrated(); to != 7 {
		t.Errorf("an old store sees version %d, want 7", to)
	}
	closeStore(t, again)
	newTaken, newStop := worker(t, next)
	both := make([]string, 0, 10)
	for i := range cap(both) { // both are at work
		turn, err := belay.NewQueuedTurn(fmt.Sprint("both ", i), "main", "hello")
		if err == nil {
			err = next.Submit(ctx, turn)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range cap(both) {
		var got engine.Taken
		select {
		case got = <-taken:
		case got = <-newTaken:
		case <-time.After(time.Minute):
			t.Fatal("turns are not taken")
		}
		if got.Err != nil {
			t.Error(got.Err)
		}
		both = append(both, got.Session)
	}
	slices.Sort(both)
	if both = slices.Compact(both); len(both) != 10 {
		t.Errorf("%d sessions were taken, want each once", len(both))
	}

	// contract: not while an old one lives
	last := postgres.OfVersion(opts, later(t, contract))
	if _, err := postgres.Open(ctx, dsn, last); !errors.Is(err, postgres.ErrOlder) {
		t.Fatalf("taking away what an old worker needs: %v, want %v", err, postgres.ErrOlder)
	}
	take(t, old, merged(taken, newTaken), "still there")
	stop()
	closeStore(t, old)
	newest := openDSN(t, dsn, last)
	if from, to := newest.Migrated(); from != 7 || to != 8 {
		t.Errorf("the tables were brought from %d to %d, want from 7 to 8", from, to)
	}
	_, err := postgres.Open(ctx, dsn, &opts)
	wantError(t, "Open by a version that needs what is gone", err, postgres.ErrNewer, "newer version")
	newStop()
}

// merged is what either of two workers has taken next.
func merged(one, other <-chan engine.Taken) <-chan engine.Taken {
	both := make(chan engine.Taken, 1)
	go func() { // ends with the next turn
		select {
		case taken := <-one:
			both <- taken
		case taken := <-other:
			both <- taken
		}
	}()
	return both
}
