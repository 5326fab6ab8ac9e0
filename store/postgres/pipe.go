package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// pipe is a transaction as the shared queries see it. What they write and want no
// answer to waits until something is asked, or until the commit, and goes to the
// server all at once: on its way to another machine, most of a write is waiting. The
// order among the shared queries stays. What River or this package does by the
// transaction itself is about other rows and overtakes what waits.
type pipe struct {
	bound
	tx    pgx.Tx
	batch pgx.Batch
	// placing has runs put at the next place, and wait although it matters how many
	// rows they change.
	placing bool
	// failed is the first thing that went wrong with what waited. What comes after it
	// in the transaction fails for this reason.
	failed error
}

// silent is how sqlc says that a query wants no answer.
const silent = " :exec\n"

// ExecContext writes something, now or later.
func (p *pipe) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	text := p.spelled(query)
	if p.placing {
		text = strings.Replace(text, placeOf, numberedBy, 1)
	}
	p.batch.Queue(text, clean(args)...)
	if first, _, _ := strings.Cut(query, "\n"); p.placing || strings.HasSuffix(first+"\n", silent) {
		return driver.RowsAffected(1), nil
	}
	changed, err := p.flush(ctx)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(changed[len(changed)-1]), nil
}

// QueryContext asks something, after what waits.
func (p *pipe) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if _, err := p.flush(ctx); err != nil {
		return nil, err
	}
	return p.bound.QueryContext(ctx, query, args...)
}

// QueryRowContext asks something, after what waits. If that failed, so does this.
func (p *pipe) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	_, _ = p.flush(ctx) // the transaction has failed then, and failed says why
	return p.bound.QueryRowContext(ctx, query, args...)
}

// flush sends what waits, and returns how many rows each has changed.
func (p *pipe) flush(ctx context.Context) (changed []int64, err error) {
	if p.batch.Len() == 0 || p.failed != nil {
		return nil, p.failed
	}
	results := p.tx.SendBatch(ctx, &p.batch)
	for range p.batch.Len() {
		var tag pgconn.CommandTag
		if tag, err = results.Exec(); err != nil {
			break
		}
		changed = append(changed, tag.RowsAffected())
	}
	if closed := results.Close(); err == nil {
		err = closed
	}
	p.batch, p.failed = pgx.Batch{}, err
	return changed, err
}

// The first parameter of PutRun is the run's place, 0 here: the server adds the next
// one, so that nobody need ask for it first.
const (
	placeOf    = "$1,"
	numberedBy = "$1::bigint + nextval('belay_run'),"
)

// numbered gives the transaction its own number before it takes a place for a run:
// whoever follows relies on it.
const numbered = "SELECT pg_current_xact_id()"

// appendRuns stores runs by the rules of hook.Journal. Nobody waits for others here,
// so places may become visible in another order.
func (w *writing) appendRuns(ctx context.Context, rows []table.PutRunParams) error {
	if len(rows) == 0 {
		return nil
	}
	w.runs = true
	if !w.wrote {
		w.pipe.batch.Queue(numbered)
	}
	before := w.pipe.batch.Len()
	w.pipe.placing = true
	defer func() { w.pipe.placing = false }()
	for i := range rows {
		if _, err := w.PutRun(ctx, rows[i]); err != nil {
			return err
		}
	}
	changed, err := w.pipe.flush(ctx)
	if err != nil {
		return err
	}
	for i, n := range changed[before:] {
		if n == 0 {
			if err := record.Late(ctx, w.Queries, &rows[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
