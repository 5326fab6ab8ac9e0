package postgres

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Expire makes the holder of a session count as gone: no holder with the new name is
// registered.
func (s *Store) Expire(ctx context.Context, session string) error {
	_, err := s.pool.Exec(ctx, "UPDATE sessions SET holder = 'nobody' WHERE id = $1", session)
	return err
}

// Execute runs a statement on the database.
func (s *Store) Execute(ctx context.Context, query string, args ...any) error {
	_, err := s.pool.Exec(ctx, query, args...)
	return err
}

// QueryRow reads one row of the database.
func (s *Store) QueryRow(ctx context.Context, query string, to ...any) error {
	return s.pool.QueryRow(ctx, query).Scan(to...)
}

// DSN returns the DSN of the store's database.
func (s *Store) DSN() string { return s.pool.Config().ConnString() }

// Lately is the query for the entries that a checkpoint looks at.
const Lately = lately

// Stall locks a session and this holder in a transaction, and calls f before the commit.
func (s *Store) Stall(ctx context.Context, session string, f func()) error {
	return s.submit(ctx, func(ctx context.Context, w *writing) error {
		for _, query := range []string{"SELECT 1 FROM sessions WHERE id = $1 OR $2 = '' FOR UPDATE", "SELECT 1 FROM holders WHERE id = $2 OR $1 = '' FOR UPDATE"} {
			if _, err := w.tx.Exec(ctx, query, session, s.id); err != nil {
				return err
			}
		}
		f()
		return nil
	})
}

// AppendSlowly appends runs, and calls f before the commit.
func (s *Store) AppendSlowly(ctx context.Context, f func(), runs ...hook.Run) error {
	rows, err := record.RunRows(s.id, runs)
	if err != nil {
		return err
	}
	return s.submit(ctx, func(ctx context.Context, w *writing) error {
		err := w.appendRuns(ctx, rows)
		f()
		return err
	})
}

// AppendFolded stores runs in one row, as a later version of Belay may do.
func (s *Store) AppendFolded(ctx context.Context, runs []hook.Run) error {
	rows, err := record.RunRows(s.id, runs)
	if err != nil {
		return err
	}
	hooks, folded := record.Fold(rows)
	return s.submit(ctx, func(ctx context.Context, w *writing) error {
		places, err := w.number(ctx, len(rows))
		if err != nil {
			return err
		}
		for _, h := range record.HooksOf(hooks, rows) {
			if err := w.PutRunHook(ctx, h); err != nil {
				return err
			}
		}
		rows[0].Seq = places[0]
		if _, err := w.PutRun(ctx, rows[0]); err != nil {
			return err
		}
		_, err = w.tx.Exec(ctx, "UPDATE runs SET more = $1, hooks = $2, folded = $3 WHERE seq = $4", len(rows)-1, hooks, folded, places[0])
		return err
	})
}

// Crossing locks a session in a transaction, calls f, and then locks another session.
func (s *Store) Crossing(ctx context.Context, first string, f func(), then string) error {
	return s.submit(ctx, func(ctx context.Context, w *writing) error {
		const lock = "SELECT 1 FROM sessions WHERE id = $1 FOR UPDATE"
		if _, err := w.tx.Exec(ctx, lock, first); err != nil {
			return err
		}
		f()
		_, err := w.tx.Exec(ctx, lock, then)
		return err
	})
}

// Spell and Clean rewrite queries and their arguments.
var (
	Spell = spell
	Clean = clean
)

// OfVersion makes a store use the given migrations, like another version of Belay.
func OfVersion(opts Options, migrations fs.FS) *Options {
	opts.migrations = migrations
	return &opts
}

// SharedMigrations are the migrations of this program.
var SharedMigrations fs.FS = table.Migrations

// TranslatedMigrations are these migrations in PostgreSQL's syntax. OwnMigrations are those of PostgreSQL.
var TranslatedMigrations, OwnMigrations fs.FS = translated{table.Migrations}, ownMigrations

// ID returns the id of this holder.
func (s *Store) ID() string { return s.id }

// SettleHolder calls settle, which releases the sessions of a holder only if it is dead.
func (s *Store) SettleHolder(ctx context.Context, holder string) error { return s.settle(ctx, holder) }

// Owe records a session that could not be released.
func (s *Store) Owe(session string, epoch int64) { s.owed.note(session, epoch) }

// Hog takes all connections of the pool until the returned function is called.
func (s *Store) Hog(ctx context.Context) (release func(), err error) {
	var conns []*pgxpool.Conn
	for range s.pool.Config().MaxConns {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		conns = append(conns, conn)
	}
	return func() {
		for _, conn := range conns {
			conn.Release()
		}
	}, nil
}

// Due returns a channel that is closed when a turn may be due. Heard returns one that is
// closed when a session may have changed.
func (s *Store) Due() <-chan struct{} { return s.due.wait() }

func (s *Store) Heard(session string) (heard <-chan struct{}, stop func()) {
	w, stop := s.ear.watch(session)
	return w.changed.wait(), stop
}

// InTime returns the result of a write that may have timed out.
var InTime = (*Store).inTime

// ClaimPlans returns the plans of the queries of a claim, with the pages that they read.
// The claim of agent "mine" is rolled back.
func (s *Store) ClaimPlans(ctx context.Context, filter belay.TurnFilter) (map[string]string, error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	list, args := record.KindsQuery(filter)
	plans := make(map[string]string)
	for name, q := range map[string]struct {
		text string
		args []any
	}{
		"the list of agents": {list, args},
		"the claim":          {record.ClaimQuery(passing), []any{s.id, int64(1), "mine", ""}},
	} {
		rows, err := tx.Query(ctx, "EXPLAIN (ANALYZE, BUFFERS) "+spell(q.text), q.args...)
		if err != nil {
			return nil, err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, err
		}
		plans[name] = strings.Join(lines, "\n")
	}
	return plans, nil
}

// KnownClaims returns the sessions whose turns this store has claimed, as far as it knows.
func (s *Store) KnownClaims() []string {
	s.claims.mu.Lock()
	defer s.claims.mu.Unlock()
	return slices.Collect(maps.Keys(s.claims.known))
}

// SessionsPlan returns the plan for a listing of sessions.
func (s *Store) SessionsPlan(ctx context.Context, filter belay.SessionFilter) (string, error) {
	var asked asked
	if _, err := record.Sessions(ctx, &asked, filter); !errors.Is(err, errAsked) {
		return "", err
	}
	rows, err := s.pool.Query(ctx, "EXPLAIN "+spell(asked.query), asked.args...)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}

// asked is a database that only records the query text.
type asked struct {
	query string
	args  []any
}

var errAsked = errors.New("it was asked")

func (a *asked) QueryContext(_ context.Context, query string, args ...any) (*sql.Rows, error) {
	a.query, a.args = query, args
	return nil, errAsked
}
