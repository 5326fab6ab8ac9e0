// Package record is what the stores on SQL databases do alike with the tables and
// queries of package table: how sessions, messages, calls, approvals and runs look
// as rows, how a commit is written, and how all of it is read again.
//
// Nothing here begins a transaction, counts or locks: the caller of a writing
// function has a transaction and prevents concurrent writes to the rows that it
// reads. Errors are those of the database; the stores explain them.
package record

import (
	"context"
	"database/sql"
	"math"
	"time"
)

// The times that fit into nanoseconds since 1970.
var (
	firstMoment = time.Unix(0, math.MinInt64)
	lastMoment  = time.Unix(0, math.MaxInt64)
)

// Nanos is how a time is stored: 0 for none. Times outside the years 1678 to 2261
// are stored as the first or the last moment.
func Nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Before(firstMoment):
		return math.MinInt64
	case t.After(lastMoment):
		return math.MaxInt64
	case t.UnixNano() == 0:
		return 1
	default:
		return t.UnixNano()
	}
}

// Moment is the time that was stored.
func Moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// Cause returns why a reading was cancelled, if it was.
func Cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Database is what queries are asked of. Parameters are question marks.
type Database interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Collect reads all rows of a query.
func Collect[Row any](ctx context.Context, db Database, query string, args []any, scan func(*sql.Rows, *Row) error) ([]Row, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, Cause(ctx, err)
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported it
	var list []Row
	for rows.Next() {
		var row Row
		if err := scan(rows, &row); err != nil {
			return nil, Cause(ctx, err)
		}
		list = append(list, row)
	}
	return list, Cause(ctx, rows.Err())
}

// all decodes rows.
func all[Row, T any](rows []Row, of func(Row) (T, error)) ([]T, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	list := make([]T, len(rows))
	for i, row := range rows {
		var err error
		if list[i], err = of(row); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// each decodes rows one by one.
func each[Row, T any](rows []Row, of func(Row) (T, error), do func(*T) error) error {
	for _, row := range rows {
		v, err := of(row)
		if err == nil {
			err = do(&v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
