package record

import (
	"context"

	"github.com/belay-run/belay/store/internal/table"
)

// The counters of the migrations that a program must know to use the tables:
// shared ones, and those of PostgreSQL.
const (
	Oldest         = "oldest"
	OldestPostgres = "oldest_postgres"
)

// Readable reports whether a program that knows the migrations up to a version can use
// newer tables: it can as long as nothing was removed that it needs.
func Readable(ctx context.Context, q *table.Queries, counter string, knows int64) bool {
	oldest, err := q.Counter(ctx, counter)
	return err == nil && oldest <= knows
}
