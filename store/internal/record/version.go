package record

import (
	"context"

	"github.com/belay-run/belay/store/internal/table"
)

// The oldest versions that a program must know to use the tables: of the
// shared migrations, and of those of PostgreSQL.
const (
	Oldest         = "oldest"
	OldestPostgres = "oldest_postgres"
)

// Readable reports whether a program that knows the migrations up to a version can use
// newer tables: it can, unless a later migration removed something that it needs.
func Readable(ctx context.Context, q *table.Queries, counter string, knows int64) bool {
	oldest, err := q.Counter(ctx, counter)
	return err == nil && oldest <= knows
}
