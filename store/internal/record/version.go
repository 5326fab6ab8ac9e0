package record

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
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

// raisesOldest matches the statements with which a migration sets the counter Oldest.
var raisesOldest = lazyregexp.New(`\('oldest', (\d+)\)|SET value = (\d+) WHERE name = 'oldest'`)

// OldestAfter returns the value of the counter Oldest that the shared migrations after a
// version set, or 0 if they set none. A program that knows only earlier versions must not
// use the tables after these migrations. So it must not have them open meanwhile.
func OldestAfter(migrations fs.FS, version int64) (oldest int64, err error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	for _, name := range files {
		own, err := VersionOf(name)
		if err != nil {
			return 0, err
		}
		if own <= version {
			continue
		}
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			return 0, fmt.Errorf("migrations: %w", err)
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		found := raisesOldest.FindStringSubmatch(up)
		if found == nil {
			if strings.Contains(up, "'"+Oldest+"'") {
				return 0, fmt.Errorf("%s: write UPDATE counters SET value = N WHERE name = 'oldest', so that programs see which versions it excludes", name)
			}
			continue
		}
		raised, err := strconv.ParseInt(found[1]+found[2], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		oldest = max(oldest, raised)
	}
	return oldest, nil
}

// VersionOf returns the version of a migration. Its file name begins with it.
func VersionOf(name string) (int64, error) {
	number, _, _ := strings.Cut(path.Base(name), "_")
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return version, nil
}
