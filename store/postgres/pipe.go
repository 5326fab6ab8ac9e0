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

// pipe runs the shared queries in a transaction. It buffers writes without a result until
// the next read or the commit, and sends them in one batch, because round trips cost most.
// The shared queries keep their order. River and this package also run statements directly
// on the transaction. These may reach the server before buffered ones, but they use other
// rows.
type pipe struct {
	bound
	tx    pgx.Tx
	batch pgx.Batch
	// placing is set while appendRuns stores runs. PutRun then takes the next position.
	// PutRun is also buffered, although its number of changed rows is needed.
	placing bool
	// failed is the first error of a buffered statement. Later statements of the
	// transaction fail with it.
	failed error
}

// silent is how sqlc marks a query without a result.
const silent = " :exec\n"

// ExecContext executes a statement at once if its result is needed. Otherwise it buffers
// the statement.
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

// QueryRowContext sends the buffered statements and then runs a query. If a buffered
// statement fails, the query fails, too.
func (p *pipe) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	_, _ = p.flush(ctx) // after an error the query fails, too; p.failed has the reason
	return p.bound.QueryRowContext(ctx, query, args...)
}

// flush sends the buffered statements and returns how many rows each of them has changed.
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

// The first parameter of PutRun is the position of the run. Here it is 0, and the server
// adds the next number. This saves a query.
const (
	placeOf    = "$1,"
	numberedBy = "$1::bigint + nextval('belay_run'),"
)

// numbered gives the transaction its number. It must run before a run gets its position,
// because settledUpTo relies on this order.
const numbered = "SELECT pg_current_xact_id()"

// appendRuns stores runs and gives them positions. Concurrent writers do not wait for each
// other, so a higher position can become visible before a lower one.
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
		w.touched.runs = append(w.touched.runs, rows[i].ID)
	}
	w.link()
	changed, err := w.pipe.flush(ctx)
	if err != nil {
		return err
	}
	for i, n := range changed[before : before+len(rows)] {
		if n == 0 {
			if err := record.Late(ctx, w.Queries, &rows[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
