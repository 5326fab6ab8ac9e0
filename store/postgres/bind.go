package postgres

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/store/internal/table"
)

// bound rewrites the shared queries for PostgreSQL, where parameters are $1 instead of ?1
// or ?.
//
// Outside of a transaction, bound repeats a query if its connection was dropped.
type bound struct {
	db    table.DBTX
	store *Store
}

func (b bound) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return b.db.ExecContext(ctx, b.spelled(query), clean(args)...)
}

func (b bound) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return b.db.PrepareContext(ctx, b.spelled(query))
}

func (b bound) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	query, args = b.spelled(query), clean(args)
	if !b.alone() {
		return b.db.QueryContext(ctx, query, args...) //nolint:sqlclosecheck // the caller has them
	}
	err = b.store.persist(ctx, func() error {
		rows, err = b.db.QueryContext(ctx, query, args...) //nolint:rowserrcheck,sqlclosecheck // the caller has them
		return err
	})
	return rows, err
}

func (b bound) QueryRowContext(ctx context.Context, query string, args ...any) (row *sql.Row) {
	query, args = b.spelled(query), clean(args)
	if !b.alone() {
		return b.db.QueryRowContext(ctx, query, args...)
	}
	_ = b.store.persist(ctx, func() error { // row contains the error
		row = b.db.QueryRowContext(ctx, query, args...)
		return row.Err()
	})
	return row
}

// alone reports whether each query is a transaction of its own.
func (b bound) alone() bool {
	_, ok := b.db.(*sql.DB)
	return ok
}

// generated is the prefix of queries that sqlc generated.
const generated = "-- name: "

func (b bound) spelled(query string) string {
	if !strings.HasPrefix(query, generated) {
		return spell(query)
	}
	if known, ok := b.store.spellings.Load(query); ok {
		return known.(string)
	}
	text := spell(query)
	b.store.spellings.Store(query, text)
	return text
}

// spell turns ?N into $N. It turns a ? without a number into $ with the next number. The
// queries contain no other question marks.
func spell(query string) string {
	var to strings.Builder
	to.Grow(len(query) + 8)
	next := 0
	for i := range len(query) {
		c := query[i]
		if c != '?' {
			to.WriteByte(c)
			continue
		}
		to.WriteByte('$')
		if i+1 == len(query) || query[i+1] < '0' || query[i+1] > '9' {
			next++
			to.WriteString(strconv.Itoa(next))
		}
	}
	return to.String()
}

// clean replaces characters that PostgreSQL cannot store: NUL and bytes that are not valid
// UTF-8. Messages keep a NUL, because they are JSON, and JSON escapes it.
func clean(args []any) []any {
	for i, arg := range args {
		if text, ok := arg.(string); ok && !storable(text) {
			args[i] = strings.ReplaceAll(string([]rune(text)), "\x00", string(utf8.RuneError))
		}
	}
	return args
}

func storable(text string) bool { return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 }
