package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

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
	empty, err := s.claim(ctx)
	if err != nil {
		return err
	}
	provider, newest, err := s.migrations()
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if empty {
		if err := s.create(ctx, provider.ListSources()); err != nil {
			return fmt.Errorf("open store: make the tables: %w", s.explain(err))
		}
		s.migrated = [2]int64{0, newest}
	} else if err := s.update(ctx, provider, newest); err != nil {
		return err
	}
	if err := s.countUsage(ctx); err != nil {
		return fmt.Errorf("open store: count the usage of old messages: %w", s.explain(err))
	}
	if err := s.chainOld(ctx); err != nil {
		return fmt.Errorf("open store: add the old records to the audit chain: %w", s.explain(err))
	}
	return nil
}

// update applies the migrations that a file does not have yet.
func (s *Store) update(ctx context.Context, provider *goose.Provider, newest int64) error {
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
		if err := s.mayExclude(stored); err != nil {
			return fmt.Errorf("open store: %w", err)
		}
		if err := s.keepOld(ctx, stored); err != nil {
			return fmt.Errorf("open store: copy the store before its tables are migrated: %w", err)
		}
		if err := s.bringUp(ctx, provider, stored); err != nil {
			return fmt.Errorf("open store: migrations: %w", s.explain(err))
		}
	}
	s.migrated = [2]int64{max(stored, 0), max(stored, newest)}
	return nil
}

// mayExclude returns ErrOlder if a pending migration excludes a program that has the store
// open. Such a program knows only the stored version: if it knew a later one, it would have
// migrated the tables when it opened the store.
func (s *Store) mayExclude(stored int64) error {
	oldest, err := record.OldestAfter(table.Migrations, stored)
	if err != nil || oldest <= max(stored, 0) {
		return err
	}
	users, err := s.users()
	if len(users) > 0 {
		return &FileError{
			Path: s.path, Kind: ErrOlder, Remedy: "end the programs that have the store open, then try again",
			Err: fmt.Errorf("%s has the store open, and must not use tables of version %d", strings.Join(users, ", "), oldest),
		}
	}
	return err
}

// keepOld copies the store to a file beside it before a migration changes it: belay.db.v15.bak has the tables of version 15. An
// older program can open the copy. It replaces a copy from an earlier attempt that failed: the store still has the tables of this
// version, and a program of that version may have used it since.
func (s *Store) keepOld(ctx context.Context, version int64) error {
	if version < 1 {
		return nil // a new file
	}
	path := fmt.Sprintf("%s.v%d.bak", s.path, version)
	part := path + ".part" // a copy that was interrupted does not look like one
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err //nolint:wrapcheck // the caller adds context
	}
	if _, err := s.writer.ExecContext(ctx, "VACUUM INTO ?", part); err != nil {
		return errors.Join(s.explain(err), os.Remove(part))
	}
	return os.Rename(part, path)
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
		if _, err := s.writer.ExecContext(ctx, "UPDATE counters SET value = ?1 WHERE name = ?2 AND value < ?1", foldedRuns, record.Oldest); err != nil {
			return err //nolint:wrapcheck // likewise
		}
	}
	_, err := provider.Up(ctx)
	return err //nolint:wrapcheck // likewise
}

// countUsage fills the table of usage from the messages that are older than the table, once.
func (s *Store) countUsage(ctx context.Context) (err error) {
	var counted int64
	if err := s.writer.QueryRowContext(ctx, "SELECT value FROM counters WHERE name = ?", record.CounterUsage).Scan(&counted); err != nil || counted > 0 {
		return err //nolint:wrapcheck // the caller adds context
	}
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return err //nolint:wrapcheck // likewise
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	for _, statement := range []string{oldUsage, "UPDATE counters SET value = 1 WHERE name = '" + record.CounterUsage + "'"} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err //nolint:wrapcheck // likewise
		}
	}
	return tx.Commit() //nolint:wrapcheck // likewise
}

// oldUsage adds up the usage in messages. A fork has not used the messages that it copied.
const oldUsage = `INSERT INTO turn_usage (session, turn, day, model, agent, root, tokens_in, tokens_out, cache_read, cache_write, cost)
SELECT m.session, COALESCE(m.body ->> '$.turn', ''), unixepoch(m.body ->> '$.time') / 86400, COALESCE(m.body ->> '$.model', ''),
	COALESCE(CASE WHEN s.state <> '' THEN s.state ->> '$.agent' END, ''),
	CASE WHEN instr(m.session, '/') > 0 THEN substr(m.session, 1, instr(m.session, '/') - 1) ELSE m.session END,
	COALESCE(sum(m.body ->> '$.usage.in'), 0), COALESCE(sum(m.body ->> '$.usage.out'), 0),
	COALESCE(sum(m.body ->> '$.usage.cache_read'), 0), COALESCE(sum(m.body ->> '$.usage.cache_write'), 0), COALESCE(sum(m.body ->> '$.usage.cost'), 0)
FROM (SELECT session, seq, CASE WHEN json_valid(body) THEN body ELSE '{}' END AS body FROM messages) m JOIN sessions s ON s.id = m.session
WHERE m.body -> '$.usage' IS NOT NULL AND unixepoch(m.body ->> '$.time') IS NOT NULL
	AND m.seq > COALESCE(CASE WHEN s.state <> '' THEN s.state ->> '$.forked_from.seq' END, 0)
GROUP BY 1, 2, 3, 4, 5, 6`

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

// claim rejects a database of another program. It marks a new database as a Belay store. empty
// means that there are no tables yet.
func (s *Store) claim(ctx context.Context) (empty bool, err error) {
	var id, tables int64
	if err := s.writer.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return false, s.unopened(err)
	}
	if err := s.writer.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return false, s.unopened(err)
	}
	if id == applicationID {
		if tables == 0 && s.wasMade() { // in a new file, tables can be missing because a process was killed before it created them
			return false, fmt.Errorf("open store: %w", s.damaged(errors.New("the tables of the store are missing")))
		}
		return tables == 0, nil
	}
	if tables > 0 {
		return false, fmt.Errorf("open store: %w", s.noStore("use another file", errors.New("the file is a database of another program")))
	}
	if _, err := s.writer.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
		return false, s.unopened(err)
	}
	return true, nil
}
