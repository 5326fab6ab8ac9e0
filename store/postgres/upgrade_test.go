package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/store/postgres"
)

// later returns the migrations of this version, and the migrations in more.
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

// echo is a model that answers at once with "echo: " and the text of the last message.
type echo struct{}

func (echo) Stream(_ context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		said := req.Messages[len(req.Messages)-1].Text()
		yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text("echo: " + said)}, StopReason: belay.StopEnd}}, nil)
	}
}

// worker runs a worker on a store. The channel gets the turns that the worker has run.
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

// take submits a turn, waits until a worker has run it, and asserts that it succeeded.
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

// The tables can be migrated while workers of the previous version run. Migrations that
// only add (expand) do not disturb these workers, which can even be restarted. A migration
// that removes (contract) fails while such a worker runs. After it, workers of the previous
// version are rejected.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	ctx, dsn := t.Context(), server.Database(t, template)
	expand := map[string]string{"00017_more.sql": "ALTER TABLE sessions ADD COLUMN mood TEXT NOT NULL DEFAULT '';\nCREATE TABLE moods (id TEXT NOT NULL PRIMARY KEY);"}
	contract := map[string]string{
		"00017_more.sql":          expand["00017_more.sql"],
		"00018_contract_less.sql": "ALTER TABLE sessions DROP COLUMN watched;\nUPDATE counters SET value = 17 WHERE name = 'oldest';",
	}
	opts := postgres.Options{Takeover: takeover}

	old := openDSN(t, dsn, &opts)
	taken, stop := worker(t, old)
	take(t, old, taken, "before")

	busy := make(chan error, 1)
	enough := make(chan struct{})
	go func() { busy <- keepBusy(old, taken, enough) }()                // ends after enough is closed
	next := openDSN(t, dsn, postgres.OfVersion(opts, later(t, expand))) // Open applies the migration that only adds
	close(enough)
	if err := <-busy; err != nil {
		t.Fatal(err)
	}
	if from, to := next.Migrated(); from != 16 || to != 17 {
		t.Fatalf("the tables were brought from %d to %d, want from 16 to 17", from, to)
	}
	take(t, old, taken, "old worker, new tables")
	again := openDSN(t, dsn, &opts) // a restart of an old worker
	if _, to := again.Migrated(); to != 17 {
		t.Errorf("an old store sees version %d, want 17", to)
	}
	closeStore(t, again)
	newTaken, newStop := worker(t, next)
	both := make([]string, 0, 10)
	for i := range cap(both) { // both workers run turns
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

	// A contract migration fails while an old worker runs.
	last := postgres.OfVersion(opts, later(t, contract))
	if _, err := postgres.Open(ctx, dsn, last); !errors.Is(err, postgres.ErrOlder) {
		t.Fatalf("taking away what an old worker needs: %v, want %v", err, postgres.ErrOlder)
	}
	take(t, old, merged(taken, newTaken), "still there")
	stop()
	closeStore(t, old)
	newest := openDSN(t, dsn, last)
	if from, to := newest.Migrated(); from != 17 || to != 18 {
		t.Errorf("the tables were brought from %d to %d, want from 17 to 18", from, to)
	}
	_, err := postgres.Open(ctx, dsn, &opts)
	wantError(t, "Open by a version that needs what is gone", err, postgres.ErrNewer, "newer version")
	newStop()
}

// A migration after which older programs must not write fails while such a program runs, also if it removes nothing.
//
// SPEC Q-03
func TestExcludingMigration(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t, template)
	opts := postgres.Options{Takeover: takeover}
	excludes := postgres.OfVersion(opts, later(t, map[string]string{"00017_more.sql": "UPDATE counters SET value = 17 WHERE name = 'oldest' AND value < 17;"}))
	old := openDSN(t, dsn, &opts)
	_, err := postgres.Open(t.Context(), dsn, excludes)
	wantError(t, "excluding a program that runs", err, postgres.ErrOlder, fmt.Sprintf("process %d on ", os.Getpid()), "version 17", "stop the processes")
	closeStore(t, old)
	if from, to := openDSN(t, dsn, excludes).Migrated(); from != 16 || to != 17 {
		t.Errorf("the tables were brought from %d to %d, want from 16 to 17", from, to)
	}
	_, err = postgres.Open(t.Context(), dsn, &opts)
	wantError(t, "Open by an excluded version", err, postgres.ErrNewer, "newer version")
}

// keepBusy submits one turn after the other, and waits each time until a worker has run
// the turn. It ends when enough is closed. All turns must succeed.
func keepBusy(s *postgres.Store, taken <-chan engine.Taken, enough <-chan struct{}) error {
	for i := 0; ; i++ {
		turn, err := belay.NewQueuedTurn(fmt.Sprint("busy ", i), "main", "hello")
		if err == nil {
			err = s.Submit(context.Background(), turn)
		}
		if err != nil {
			return err
		}
		select {
		case got := <-taken:
			if got.Err != nil || got.Turn.Reason != belay.EndTurn {
				return fmt.Errorf("the turn of %s: %+v, %w", got.Session, got.Turn, got.Err)
			}
		case <-time.After(patience):
			return errors.New("nobody takes the turn of " + turn.Session)
		}
		select {
		case <-enough:
			return nil
		default:
		}
	}
}

// A long reader, such as pg_dump, delays only the migration. Workers of the previous
// version continue. When the reader ends, the tables are migrated.
func TestMigrationLetsOthersPass(t *testing.T) {
	t.Parallel()
	ctx, dsn := t.Context(), server.Database(t, template)
	expand := later(t, map[string]string{"00017_more.sql": "ALTER TABLE sessions ADD COLUMN mood TEXT NOT NULL DEFAULT '';"})
	opts := postgres.Options{Timeout: 4 * time.Second}
	old := openDSN(t, dsn, &opts)
	stored := hold(t, old, "a")
	db, dump := connect(t, dsn), connect(t, dsn)
	defer func() { _ = errors.Join(db.Close(context.Background()), dump.Close(context.Background())) }()
	if _, err := dump.Exec(ctx, "BEGIN; SELECT count(*) FROM sessions"); err != nil {
		t.Fatal(err)
	}

	// With a short timeout, Open gives up and reports why.
	short := opts
	short.Timeout = 100 * time.Millisecond
	_, err := postgres.Open(ctx, dsn, postgres.OfVersion(short, expand))
	pid := fmt.Sprint("process ", dump.PgConn().PID())
	if err == nil || !strings.Contains(err.Error(), pid) || !strings.Contains(err.Error(), "sessions") || !strings.Contains(err.Error(), "belay store migrate") {
		t.Errorf("Open gives %v, want that %s is in the way", err, pid)
	}

	opened := make(chan error, 1)
	go func() { // ends when the migration is done
		next, err := postgres.Open(context.Background(), dsn, postgres.OfVersion(opts, expand))
		if err == nil {
			err = next.Close()
		}
		opened <- err
	}()
	for seq := range int64(3) { // each commit runs while the migration waits
		waitsForLock(t, db, "ALTER TABLE sessions%")
		commit(t, old, say("a", stored.Epoch, seq+1, "meanwhile"))
	}
	select {
	case err := <-opened:
		t.Fatalf("the tables were changed under a reader: %v", err)
	default:
	}
	if _, err := dump.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	commit(t, old, say("a", stored.Epoch, 4, "after"))
}

// waitsForLock waits until a query that contains a text waits for a lock.
func waitsForLock(t testing.TB, db *pgx.Conn, asks string) {
	t.Helper()
	often := time.NewTicker(5 * time.Millisecond)
	defer often.Stop()
	over := time.After(patience)
	for waits := false; !waits; {
		query(t, db, &waits, "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '"+asks+"'")
		select {
		case <-often.C:
		case <-over:
			t.Fatalf("nobody waits for %s", asks)
		}
	}
}

// Migrated reports the version, whether or not Open changed the tables.
func TestMigratedTwice(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t, "template1")
	first := openDSN(t, dsn, nil)
	from, made := first.Migrated()
	if from != 0 || made == 0 {
		t.Errorf("the tables were brought from %d to %d, want from nothing", from, made)
	}
	if from, to := openDSN(t, dsn, nil).Migrated(); from != made || to != made {
		t.Errorf("the second time the tables were brought from %d to %d, want %d", from, to, made)
	}
}

// merged returns a channel that gets the next turn of either worker.
func merged(one, other <-chan engine.Taken) <-chan engine.Taken {
	both := make(chan engine.Taken, 1)
	go func() { // ends after one turn
		select {
		case taken := <-one:
			both <- taken
		case taken := <-other:
			both <- taken
		}
	}()
	return both
}
