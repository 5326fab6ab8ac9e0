package record

import (
	"context"

	"github.com/belay-run/belay/store/internal/table"
)

// The counters that say which programs can use the tables: those that know so many
// migrations, of those that all databases share, and of PostgreSQL's own.
const (
	Oldest         = "oldest"
	OldestPostgres = "oldest_postgres"
)

// Readable reports whether a program that knows the migrations up to a version can use
// tables that have more: as long as nothing was taken away that it needs.
func Readable(ctx context.Context, q *table.Queries, counter string, knows int64) bool {
	oldest, err := q.Counter(ctx, counter)
	return err == nil && oldest <= knows
}
