package riverjobs_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river/riverdriver/riversqlite"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite" // the database under test

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/riverjobs"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(victimFile); file != "" {
		beVictim(file) // ends the process
	}
	goleak.VerifyTestMain(m)
}

// jobs is the queue under test.
type jobs = riverjobs.Queue[*sql.Tx]

// database is a minimal store with runs and keys in a file. River and the writes share its
// only connection.
type database struct {
	*sql.DB
	file string
	// around is called for each Write. It must call write.
	around func(ctx context.Context, write func() error) error
	// inside is called at the end of each transaction, before it is committed.
	inside func(ctx context.Context, tx *sql.Tx) error
}

const tables = `
CREATE TABLE runs (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, state TEXT, body TEXT);
CREATE TABLE keys (key TEXT PRIMARY KEY, done INTEGER);`

// openFile opens a database file. It creates the file if necessary.
func openFile(file string) (*database, error) {
	dsn := "file:" + (&url.URL{Path: filepath.ToSlash(file)}).EscapedPath() + "?_txlock=immediate&_pragma=" +
		"busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &database{
		DB: db, file: file,
		around: func(_ context.Context, write func() error) error { return write() },
		inside: func(context.Context, *sql.Tx) error { return nil },
	}, nil
}

// template returns a database file with all tables. It is made once, and every test gets a
// copy.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "riverjobs")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := openFile(filepath.Join(dir, "template.db"))
	if err != nil {
		return nil, err
	}
	_, made := db.ExecContext(context.Background(), tables)
	queue, err := db.queue(nil)
	if err == nil {
		err = queue.Migrate(context.Background())
	}
	if err := errors.Join(made, err, db.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(db.file)
})

// newDatabase opens an empty database. It is closed when the test ends.
func newDatabase(t testing.TB) *database {
	t.Helper()
	content, err := template()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "jobs.db")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return reopen(t, file)
}

// reopen opens a database file again, as another process would.
func reopen(t testing.TB, file string) *database {
	t.Helper()
	db, err := openFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// queue returns a queue on the database, with settings for tests.
func (db *database) queue(opts *riverjobs.Options) (jobs, error) {
	var o riverjobs.Options
	if opts != nil {
		o = *opts
	}
	if o.Poll == 0 {
		o.Poll = 5 * time.Millisecond
	}
	if o.Grace == 0 {
		o.Grace = 50 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return riverjobs.New(riversqlite.New(db.DB), db, &o)
}

// newQueue returns a queue on the database. It fails the test on an error.
func newQueue(t testing.TB, db *database, opts *riverjobs.Options) jobs {
	t.Helper()
	queue, err := db.queue(opts)
	if err != nil {
		t.Fatal(err)
	}
	return queue
}

// Write runs f in a transaction.
func (db *database) Write(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	return db.around(ctx, func() error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := errors.Join(f(ctx, tx), db.inside(ctx, tx)); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	})
}

// AppendRuns stores runs as a hook.Journal does.
func (db *database) AppendRuns(ctx context.Context, tx *sql.Tx, runs []hook.Run) error {
	for _, run := range runs {
		body, err := json.Marshal(run)
		if err != nil {
			return err
		}
		var stored string
		err = tx.QueryRowContext(ctx, "SELECT state FROM runs WHERE id = ?", run.ID).Scan(&stored)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err = tx.ExecContext(ctx, "INSERT INTO runs (id, state, body) VALUES (?, ?, ?)", run.ID, run.State.String(), string(body))
		case err != nil:
		case stored == hook.Started.String():
			_, err = tx.ExecContext(ctx, "UPDATE runs SET state = ?, body = ? WHERE id = ?", run.State.String(), string(body), run.ID)
		case run.State.Final() && run.State.String() != stored:
			err = fmt.Errorf("run %s is %s: %w", run.ID, stored, hook.ErrSettled)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TakeKeys reserves keys and returns the keys that were free.
func (db *database) TakeKeys(ctx context.Context, tx *sql.Tx, keys []string) ([]string, error) {
	var taken []string
	for _, key := range keys {
		result, err := tx.ExecContext(ctx, "INSERT INTO keys (key, done) VALUES (?, 0) ON CONFLICT DO NOTHING", key)
		if err != nil {
			return nil, err
		}
		if n, err := result.RowsAffected(); err == nil && n == 1 {
			taken = append(taken, key)
		}
	}
	return taken, nil
}

// KeyDone reports whether a job with this key has succeeded.
func (db *database) KeyDone(ctx context.Context, tx *sql.Tx, key string) (bool, error) {
	var done bool
	err := tx.QueryRowContext(ctx, "SELECT count(*) FROM keys WHERE key = ? AND done", key).Scan(&done)
	return done, err
}

// EndKey is called when a job has ended. If done is true, the key stays reserved. Otherwise
// the key is free again.
func (db *database) EndKey(ctx context.Context, tx *sql.Tx, key string, done bool) error {
	if done {
		_, err := tx.ExecContext(ctx, "UPDATE keys SET done = 1 WHERE key = ?", key)
		return err
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM keys WHERE key = ?", key)
	return err
}

// Append stores runs in a transaction of its own.
func (db *database) Append(ctx context.Context, runs []hook.Run) error {
	return db.Write(ctx, func(ctx context.Context, tx *sql.Tx) error { return db.AppendRuns(ctx, tx, runs) })
}

// List yields the matching runs in the order in which they were first stored.
func (db *database) List(ctx context.Context, filter hook.Filter) iter.Seq2[hook.Run, error] {
	return func(yield func(hook.Run, error) bool) {
		for _, body := range db.texts(ctx, "SELECT body FROM runs ORDER BY seq") {
			var run hook.Run
			err := json.Unmarshal([]byte(body), &run)
			if (err != nil || filter.Match(run)) && !yield(run, err) {
				return
			}
		}
	}
}

// texts reads one column. If that fails, the last text is the error, which is not JSON.
func (db *database) texts(ctx context.Context, query string) (texts []string) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return []string{err.Error()}
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return append(texts, err.Error())
		}
		texts = append(texts, text)
	}
	if err := rows.Err(); err != nil {
		texts = append(texts, err.Error())
	}
	return texts
}

// runs returns all runs in the form "id state".
func (db *database) runs(t testing.TB) (runs []string) {
	t.Helper()
	for run, err := range db.List(context.Background(), hook.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run.ID+" "+run.State.String())
	}
	return runs
}

// rows returns the states of River's rows, oldest first.
func (db *database) rows() []string {
	return db.texts(context.Background(), "SELECT state FROM river_job ORDER BY id")
}
