package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// applicationID marks a database as a Belay store. In ASCII it is "blay".
const applicationID = 0x626c6179

// versionTable is goose's table of applied migrations.
const versionTable = "belay_version"

// migrate brings the tables up to date. The caller has exclusive access to the
// file.
func (s *Store) migrate(ctx context.Context) error {
	if err := s.claim(ctx); err != nil {
		return err
	}
	provider, newest, err := s.migrations()
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	stored, err := provider.GetDBVersion(ctx)
	switch {
	case err != nil && !errors.Is(err, database.ErrVersionNotFound):
		return fmt.Errorf("open store: migrations: %w", s.explainVersion(ctx, err))
	case stored > newest:
		if record.Readable(ctx, table.New(s.writer), record.Oldest, newest) {
			break // the program does not need the later migrations
		}
		return fmt.Errorf("open store: %w", s.newer(stored, newest))
	case stored < newest:
		if err := s.bringUp(ctx, provider, stored); err != nil {
			return fmt.Errorf("open store: migrations: %w", s.explain(err))
		}
	}
	s.migrated = [2]int64{max(stored, 0), max(stored, newest)}
	return nil
}

// foldedRuns is the first version of the tables that has folded rows of runs. Older programs
// would list only the first run of such a row.
const foldedRuns = 13

// bringUp applies the migrations. Before the tables get the version foldedRuns, it excludes
// programs that do not know this version.
func (s *Store) bringUp(ctx context.Context, provider *goose.Provider, stored int64) error {
	if stored < foldedRuns {
		if _, err := provider.UpTo(ctx, foldedRuns-1); err != nil {
			return err //nolint:wrapcheck // the caller adds context
		}
		if _, err := s.writer.ExecContext(ctx, "UPDATE counters SET value = ? WHERE name = ? AND value < ?", foldedRuns, record.Oldest, foldedRuns); err != nil {
			return err //nolint:wrapcheck // likewise
		}
	}
	_, err := provider.Up(ctx)
	return err //nolint:wrapcheck // likewise
}

// migrations returns the migration provider and its newest version.
func (s *Store) migrations() (*goose.Provider, int64, error) {
	migrations, err := fs.Sub(table.Migrations, "migrations")
	if err != nil {
		return nil, 0, fmt.Errorf("migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, cmp.Or(s.writer, s.reader), migrations,
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, 0, fmt.Errorf("migrations: %w", s.explain(err))
	}
	sources := provider.ListSources()
	return provider, sources[len(sources)-1].Version, nil
}

// newer returns ErrNewer for a file that a newer version of Belay wrote.
func (s *Store) newer(stored, newest int64) *FileError {
	return &FileError{
		Path: s.path, Kind: ErrNewer, Remedy: "use a newer version of Belay, or another file",
		Err: fmt.Errorf("the tables have version %d, but this program supports only up to %d", stored, newest),
	}
}

// explainVersion explains an error of reading the version. If the version table is damaged,
// goose takes it for missing, and fails to create it because it exists.
func (s *Store) explainVersion(ctx context.Context, err error) error {
	var rows int64
	reading := s.explain(s.writer.QueryRowContext(ctx, "SELECT count(*) FROM "+versionTable).Scan(&rows))
	if isDamage(reading) {
		return reading
	}
	return s.explain(err)
}

// Migrated returns the version of the tables before and after Open. from is 0 for a new
// file.
func (s *Store) Migrated() (from, to int64) { return s.migrated[0], s.migrated[1] }

// claim rejects a database of another program. It marks a new database as a Belay store.
func (s *Store) claim(ctx context.Context) error {
	var id, tables int64
	if err := s.writer.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return s.unopened(err)
	}
	if err := s.writer.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return s.unopened(err)
	}
	if id == applicationID {
		if tables == 0 && s.wasMade() { // in a new file, tables can be missing because a process was killed before it created them
			return fmt.Errorf("open store: %w", s.damaged(errors.New("the tables of the store are missing")))
		}
		return nil
	}
	if tables > 0 {
		return fmt.Errorf("open store: %w", s.noStore("use another file", errors.New("the file is a database of another program")))
	}
	if _, err := s.writer.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
		return s.unopened(err)
	}
	return nil
}
