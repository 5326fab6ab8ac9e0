// Package record contains the code that the SQL stores share. It encodes sessions,
// messages, calls, approvals and runs as rows, writes commits, and reads the rows again.
// Package table has the tables and the queries.
//
// No function here begins a transaction or takes a lock. The caller of a function that
// writes must have a transaction, and must prevent concurrent writes to the rows that the
// function reads. Database errors are returned unchanged; the stores explain them.
package record

import (
	"context"
	"database/sql"
	"math"
	"time"
)

// These are the first and the last time that fit into nanoseconds since 1970.
var (
	firstMoment = time.Unix(0, math.MinInt64)
	lastMoment  = time.Unix(0, math.MaxInt64)
)

// Nanos encodes a time as nanoseconds since 1970, and the zero time as 0. Times before 1678
// or after 2261 become the first or the last moment.
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

// Moment decodes a time that Nanos encoded.
func Moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// Cause returns the context's cause if the context has ended, and otherwise err.
func Cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Database runs queries. A question mark stands for a parameter.
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
	defer func() { _ = rows.Close() }() // rows.Err reports the error
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

// each decodes rows one by one and calls do for each.
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
