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

// pipe runs the shared queries in a transaction. Writes without a result are
// buffered until the next read or the commit, and sent in one batch, because most of
// the cost is the round trip. The shared queries keep their order. Statements of
// River or this package on the transaction itself use other rows and may be sent
// before the buffered ones.
type pipe struct {
	bound
	tx    pgx.Tx
	batch pgx.Batch
	// placing makes PutRun use the next position, and buffers it although its
	// number of changed rows matters.
	placing bool
	// failed is the first error of the buffered statements. Later statements of the
	// transaction fail with it.
	failed error
}

// silent is sqlc's mark of a query without a result.
const silent = " :exec\n"

// ExecContext executes a statement, at once if its result is needed,
// otherwise with the next batch.
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

// QueryContext sends the buffered statements and then runs a query.
func (p *pipe) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if _, err := p.flush(ctx); err != nil {
		return nil, err
	}
	return p.bound.QueryContext(ctx, query, args...)
}

// QueryRowContext sends the buffered statements and then runs a query. If the
// statements fail, the row has an error, too.
func (p *pipe) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	_, _ = p.flush(ctx) // if it fails, the query fails too; p.failed keeps the reason
	return p.bound.QueryRowContext(ctx, query, args...)
}

// flush sends the buffered statements and returns the number of rows that
// each has changed.
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

// The first parameter of PutRun is the run's position, 0 here: the server adds the
// next number, without an extra query.
const (
	placeOf    = "$1,"
	numberedBy = "$1::bigint + nextval('belay_run'),"
)

// numbered assigns the transaction its number before it takes a position for a
// run: Follow relies on it.
const numbered = "SELECT pg_current_xact_id()"

// appendRuns stores runs by the rules of hook.Journal. Concurrent writers do not
// wait for each other, so positions can become visible in another order.
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
