package record

import (
	"context"

	"github.com/belay-run/belay/store/internal/table"
)

// These are the names of counters. Each counter is the oldest migration that a program must
// know to use the tables. Oldest is for the shared migrations, and OldestPostgres is for
// the migrations of PostgreSQL.
const (
	Oldest         = "oldest"
	OldestPostgres = "oldest_postgres"
)

// Readable reports whether a program that knows the migrations up to version knows can use
// newer tables. It returns false if a later migration removed something that the program
// needs.
func Readable(ctx context.Context, q *table.Queries, counter string, knows int64) bool {
	oldest, err := q.Counter(ctx, counter)
	return err == nil && oldest <= knows
}
