package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Expire makes the holder of a session count as gone: no lock file has the name of the new
// holder.
func (s *Store) Expire(ctx context.Context, session string) error {
	_, err := s.writer.ExecContext(ctx, "UPDATE sessions SET holder = 'nobody' WHERE id = ?", session)
	return err
}

// OpenReadOnly opens a store with a connection that cannot write.
func OpenReadOnly(ctx context.Context, path string) (*Store, error) {
	return Open(ctx, path, &Options{mode: "ro"})
}

// MaxPages lets the file grow by only this many pages, as if the disk were full then. 0
// removes the limit.
func (s *Store) MaxPages(ctx context.Context, more int) error {
	limit := "4294967294"
	if more > 0 {
		var pages int
		if err := s.writer.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages); err != nil {
			return err
		}
		limit = fmt.Sprint(pages + more)
	}
	_, err := s.writer.ExecContext(ctx, "PRAGMA max_page_count = "+limit)
	return err
}

// FreePages makes pages free: it removes some sessions.
func (s *Store) FreePages(ctx context.Context, sessions int) error {
	ids, err := s.read.NewestSessions(ctx, int64(sessions))
	for _, id := range ids {
		if err == nil {
			err = s.Delete(ctx, id)
		}
	}
	return err
}

// Execute runs a statement on the database.
func (s *Store) Execute(ctx context.Context, query string, args ...any) error {
	_, err := s.writer.ExecContext(ctx, query, args...)
	return err
}

// QueryRow reads one row of the database.
func (s *Store) QueryRow(ctx context.Context, query string, to ...any) error {
	return s.reader.QueryRowContext(ctx, query).Scan(to...)
}

// MigrateDown undoes the migrations after a version.
func (s *Store) MigrateDown(ctx context.Context, version int64) error {
	provider, _, err := s.migrations()
	if err == nil {
		_, err = provider.DownTo(ctx, version)
	}
	return err
}

// QueryPlan returns SQLite's plan for a listing of runs or, if places is true, of their
// positions.
func (s *Store) QueryPlan(ctx context.Context, filter hook.Filter, places bool) ([]string, error) {
	columns := record.RunColumns
	if places {
		columns = record.PlaceColumns
	}
	text, args := (&record.RunQuery{Filter: filter}).SQL(columns)
	return s.planOf(ctx, text, args...)
}

// FollowPlan returns SQLite's plan for following the journal.
func (s *Store) FollowPlan(ctx context.Context) ([]string, error) {
	var asked asked
	if _, err := table.New(&asked).RunsChanged(ctx, table.RunsChangedParams{After: 1, Until: 2}); !errors.Is(err, errAsked) {
		return nil, err
	}
	return s.planOf(ctx, asked.query, asked.args...)
}

// asked is a database that only records the query text.
type asked struct {
	table.DBTX
	query string
	args  []any
}

var errAsked = errors.New("it was asked")

func (a *asked) QueryContext(_ context.Context, query string, args ...any) (*sql.Rows, error) {
	a.query, a.args = query, args
	return nil, errAsked
}

func (s *Store) planOf(ctx context.Context, query string, args ...any) (plan []string, err error) {
	rows, err := s.reader.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return nil, err
		}
		plan = append(plan, detail)
	}
	return plan, rows.Err()
}

// Batch calls all functions in one transaction and returns their errors.
func (s *Store) Batch(do ...func(ctx context.Context) error) []error {
	requests := make([]*request, len(do))
	told := make([]error, len(do))
	for i, f := range do {
		requests[i] = &request{ctx: context.Background(), do: func(ctx context.Context, _ *writing) error { return f(ctx) }}
	}
	_ = s.committer.transact(requests, told)
	return told
}

// CommitTogether writes all commits in one transaction and returns their errors.
func (s *Store) CommitTogether(ctx context.Context, commits ...*belay.Commit) []error {
	s.committer.mu.Lock() // the committer waits until all commits are queued
	told := make([]chan error, len(commits))
	for i, c := range commits {
		rows, err := record.NewCommit(c, s.id, s.now())
		if err != nil {
			panic(err)
		}
		told[i] = make(chan error, 1)
		s.committer.waiting = append(s.committer.waiting, &request{
			ctx: ctx, done: told[i], do: func(ctx context.Context, w *writing) error { return s.put(ctx, w, rows) },
		})
	}
	s.committer.wake <- struct{}{}
	s.committer.mu.Unlock()
	errs := make([]error, len(told))
	for i := range told {
		errs[i] = <-told[i]
	}
	return errs
}

// Block keeps the committer busy until the returned function is called.
func (s *Store) Block() (release func()) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s.committer.add(&request{ctx: context.Background(), done: make(chan error, 1), do: func(context.Context, *writing) error {
		close(entered)
		<-leave
		return nil
	}})
	<-entered
	return func() { close(leave) }
}

// Waiting returns the number of queued writes.
func (s *Store) Waiting() int {
	s.committer.mu.Lock()
	defer s.committer.mu.Unlock()
	return len(s.committer.waiting)
}

// HoldOpening blocks other processes that open the file, like a process that is opening it.
func HoldOpening(ctx context.Context, path string) (done func(), err error) {
	if path, err = locate(path); err != nil {
		return nil, err
	}
	file, err := (&Store{path: path, opts: Options{BusyTimeout: time.Second}}).opening(ctx)
	return func() { _ = file.Close() }, err
}

// LockFiles returns the lock files of all holders.
func (s *Store) LockFiles() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(s.lockDir(), "*"))
	return slices.DeleteFunc(files, func(name string) bool { return filepath.Base(name) == openingLock }), err
}

// EmptyLog copies the write-ahead log into the database and empties it.
func (s *Store) EmptyLog(ctx context.Context) error {
	return s.executeAlone(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
}

// FirstBatch returns how many writes of each stage the first transaction has, if so many
// wait. The writes that open a session are the oldest, then those that begin a turn.
func (s *Store) FirstBatch(open, begin, other int) [3]int {
	c := &committer{store: s}
	for at, n := range map[stage]int{opens: open, begins: begin, continues: other} {
		for range n {
			c.waiting = append(c.waiting, &request{stage: at})
		}
	}
	slices.SortStableFunc(c.waiting, func(a, b *request) int { return int(b.stage - a.stage) })
	all := len(c.waiting)
	batch, more := c.take()
	if more != (all > len(batch)) || len(c.waiting) != all-len(batch) {
		return [3]int{-1, -1, -1}
	}
	var got [3]int
	for _, r := range batch {
		got[opens-r.stage]++
	}
	return got
}

// SessionsPlan returns SQLite's plan for a listing of sessions.
func (s *Store) SessionsPlan(ctx context.Context, filter belay.SessionFilter) ([]string, error) {
	var asked asked
	if _, err := record.Sessions(ctx, &asked, filter); !errors.Is(err, errAsked) {
		return nil, err
	}
	return s.planOf(ctx, asked.query, asked.args...)
}
