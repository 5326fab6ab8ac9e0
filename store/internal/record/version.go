package record

import (
	"context"

	"github.com/belay-run/belay/store/internal/table"
)

// These are the names of counters. The value of a counter is the lowest version that a
// program must know to use the tables. Oldest is for the shared migrations, and
// OldestPostgres is for the migrations of PostgreSQL.
const (
	Oldest         = "oldest"
	OldestPostgres = "oldest_postgres"
)

// Readable reports whether a program can use tables that are newer than the program. knows
// is the last migration that the program knows. Readable returns false if a later migration
// removed something that the program needs.
func Readable(ctx context.Context, q *table.Queries, counter string, knows int64) bool {
	oldest, err := q.Counter(ctx, counter)
	return err == nil && oldest <= knows
}
