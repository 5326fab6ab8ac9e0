package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/belay-run/belay/internal/riverjobs"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// These are goose's tables of applied migrations: one for the shared migrations, and one
// for the migrations of PostgreSQL.
const (
	versionTable    = "belay_version"
	ownVersionTable = "belay_postgres_version"
)

// These are the keys of the store's advisory locks. In ASCII they begin with "belay".
const (
	migrating = 0x62656c617900 + iota
	enqueuing
)

//go:embed migrations/*.sql
var ownMigrations embed.FS

// prepare migrates the tables. Only one process at a time does so.
func (s *Store) prepare(ctx context.Context) (err error) {
	if current, err := s.current(ctx); err != nil || current {
		return err
	}
	conn, done, err := s.apart(ctx)
	if err != nil {
		return err
	}
	defer done() // closing the connection releases the lock
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(migrating)); err != nil {
		return err //nolint:wrapcheck // Open adds context
	}
	if err := s.claim(ctx, conn); err != nil {
		return err
	}
	return s.unblocked(ctx, conn, s.bringUp)
}

// A change of a table waits for its readers, and everyone else waits for the change. So the
// change waits only for lockWait, lets the others continue for lockPause, and tries again.
const (
	lockWait  = 2 * time.Second
	lockPause = time.Second
)

// unblocked calls change until no other process blocks it.
func (s *Store) unblocked(ctx context.Context, conn *pgx.Conn, change func(context.Context, *pgxpool.Pool) error) error {
	config := s.pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = 2, 0, 0
	config.ConnConfig = s.plain.Copy()                             // building an index may take long, so there is no timeout
	wait := min(lockWait, max(s.opts.Timeout/8, time.Millisecond)) // short enough that others who wait for the change do not time out
	config.ConnConfig.RuntimeParams["lock_timeout"] = strconv.FormatInt(wait.Milliseconds(), 10)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err //nolint:wrapcheck // Open adds context
	}
	defer pool.Close()
	for began := time.Now(); ; {
		err := change(ctx, pool)
		if found, ok := errors.AsType[*pgconn.PgError](err); !ok || found.Code != "55P03" {
			return err
		}
		if time.Since(began) > migrateWithin(s.opts.Timeout) {
			return &ServerError{
				Database: s.name, Err: err,
				Remedy: "the tables were not changed: " + inTheWay(ctx, conn) + "; wait until it ends, or end it with pg_terminate_backend, then run belay store migrate again",
			}
		}
		if err := s.await(ctx, nil, min(lockPause, 2*wait)); err != nil {
			return err
		}
	}
}

// migrateWithin returns how long unblocked tries.
func migrateWithin(timeout time.Duration) time.Duration { return 2 * timeout }

// inTheWay describes the process that has used the tables for the longest time.
func inTheWay(ctx context.Context, conn *pgx.Conn) string {
	var pid int64
	var program, user, state, table string
	var since time.Time
	err := conn.QueryRow(ctx, `SELECT a.pid, coalesce(a.application_name, ''), coalesce(a.usename::text, ''), coalesce(a.state, ''), coalesce(a.xact_start, a.backend_start), min(c.relname)
		FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.granted AND l.locktype = 'relation' AND c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
			AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND a.pid <> pg_backend_pid()
		GROUP BY 1, 2, 3, 4, 5 ORDER BY 5 LIMIT 1`).Scan(&pid, &program, &user, &state, &since, &table)
	if err != nil {
		return "a long transaction is using the tables"
	}
	return fmt.Sprintf("the server's process %d (program %q, user %s, state %s) has a transaction that has used the table %s since %s", pid, program, user, state, table, since.UTC().Format(time.RFC3339))
}

func (s *Store) bringUp(ctx context.Context, pool *pgxpool.Pool) error {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }() // pool owns the connections
	if err := s.migrate(ctx, db, translated{s.migrations()}, versionTable); err != nil {
		return err
	}
	if err := s.migrate(ctx, db, ownMigrations, ownVersionTable); err != nil {
		return err
	}
	if err := s.countUsage(ctx, pool); err != nil {
		return fmt.Errorf("count the usage of old messages: %w", err)
	}
	if err := s.chainOld(ctx, db); err != nil {
		return fmt.Errorf("add the old records to the audit chain: %w", err)
	}
	jobs, err := riverjobs.New(riverpgxv5.New(pool), (*backend)(s), &riverjobs.Options{ID: s.id, Logger: s.opts.Logger})
	if err != nil {
		return err
	}
	return jobs.Migrate(ctx)
}

// current reports whether all tables are up to date. Usually they are, and then prepare
// needs no lock.
func (s *Store) current(ctx context.Context) (bool, error) {
	var noted bool
	if err := s.pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL", versionTable, ownVersionTable).Scan(&noted); err != nil || !noted {
		return false, err //nolint:wrapcheck // Open adds context
	}
	for versions, from := range map[string]fs.FS{versionTable: s.migrations(), ownVersionTable: ownMigrations} {
		newest, err := newestOf(from)
		if err != nil {
			return false, err
		}
		var stored int64
		if err := s.pool.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+versions).Scan(&stored); err != nil || stored != newest {
			return false, err //nolint:wrapcheck // likewise
		}
		if versions == versionTable {
			s.migrated[1] = stored
			if s.migrated[0] == 0 {
				s.migrated[0] = stored
			}
		}
	}
	if counted, err := s.usageCounted(ctx); err != nil || !counted {
		return false, err
	}
	if chained, err := s.chained(ctx); err != nil || !chained {
		return false, err
	}
	return s.queue.Current(ctx)
}

// migrations returns the shared migrations of this program.
func (s *Store) migrations() fs.FS {
	if s.opts.migrations != nil {
		return s.opts.migrations
	}
	return table.Migrations
}

// newestOf returns the version of the last migration.
func newestOf(from fs.FS) (newest int64, err error) {
	files, err := fs.Glob(from, "migrations/*.sql")
	for _, name := range files {
		version, failed := record.VersionOf(name)
		newest, err = max(newest, version), errors.Join(err, failed)
	}
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	return newest, nil
}

// claim rejects a database that has tables with Belay's names but no version table of
// Belay.
func (s *Store) claim(ctx context.Context, conn *pgx.Conn) error {
	var noted bool
	var taken string
	err := conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL,
		coalesce((SELECT min(name) FROM unnest(ARRAY['sessions', 'messages', 'calls', 'approvals', 'runs', 'holders', 'counters']) name WHERE to_regclass(name) IS NOT NULL), '')`,
		versionTable).Scan(&noted, &taken)
	if err != nil {
		return err //nolint:wrapcheck // Open adds context
	}
	if !noted && taken != "" {
		return &ServerError{
			Database: s.name, Kind: ErrNotStore, Remedy: "create a database for Belay alone, or a schema: add search_path to the DSN",
			Err: fmt.Errorf("the database has a table %s of another program", taken),
		}
	}
	return nil
}

// migrate applies one set of migrations.
func (s *Store) migrate(ctx context.Context, db *sql.DB, from fs.FS, versions string) error {
	migrations, err := fs.Sub(from, "migrations")
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations,
		goose.WithTableName(versions), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	sources := provider.ListSources()
	newest := sources[len(sources)-1].Version
	stored, err := provider.GetDBVersion(ctx)
	switch {
	case err != nil && !errors.Is(err, database.ErrVersionNotFound):
		return fmt.Errorf("migrations: %w", err)
	case stored > newest:
		counter := record.Oldest
		if versions == ownVersionTable {
			counter = record.OldestPostgres
		}
		if record.Readable(ctx, s.read, counter, newest) {
			break // the program does not need the later migrations
		}
		return &ServerError{
			Database: s.name, Kind: ErrNewer, Remedy: "use a newer version of Belay, or another database",
			Err: fmt.Errorf("the tables have version %d, but this program supports only up to %d", stored, newest),
		}
	case stored < newest:
		if versions == versionTable {
			if err := s.mayExclude(ctx, stored); err != nil {
				return err
			}
		}
		if _, err := provider.Up(ctx); err != nil {
			return fmt.Errorf("migrations: %w", err)
		}
	}
	if versions == versionTable {
		if s.migrated[1] == 0 { // on a retry, keep the first value
			s.migrated[0] = max(stored, 0)
		}
		s.migrated[1] = max(stored, newest)
	}
	return nil
}

// Migrated returns the version of the tables before and after Open. from is 0 for a new
// database.
func (s *Store) Migrated() (from, to int64) { return s.migrated[0], s.migrated[1] }

// firstKnown is the first version of the tables that has the column holders.knows. Each
// running program writes there the newest version that it can use.
const firstKnown = 6

// mayExclude returns ErrOlder if a pending migration excludes a program that is running: it
// removes something that the program needs, or the program would write what is no longer
// complete.
func (s *Store) mayExclude(ctx context.Context, stored int64) error {
	if stored < firstKnown {
		return nil
	}
	oldest, err := record.OldestAfter(s.migrations(), stored)
	if err != nil {
		return err
	}
	var pid int64
	var host string
	err = s.pool.QueryRow(ctx, "SELECT pid, host FROM holders WHERE knows < $1 AND seen + lease > clock_timestamp() ORDER BY since LIMIT 1", oldest).Scan(&pid, &host)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err //nolint:wrapcheck // Open adds context
	default:
		return &ServerError{
			Database: s.name, Kind: ErrOlder, Remedy: "stop the processes of the older version first, then start this one again",
			Err: fmt.Errorf("process %d on %s is using the database, and must not use tables of version %d", pid, host, oldest),
		}
	}
}

// translated are the shared migrations in PostgreSQL's syntax. They behave as in SQLite: an
// INTEGER PRIMARY KEY has 64 bits, and texts are compared by bytes, whatever the locale of
// the database.
type translated struct{ fs.FS }

var translation = strings.NewReplacer("INTEGER NOT NULL PRIMARY KEY", "BIGINT NOT NULL PRIMARY KEY", " TEXT ", ` TEXT COLLATE "C" `)

// ReadFile reads a migration.
func (t translated) ReadFile(name string) ([]byte, error) {
	text, err := fs.ReadFile(t.FS, name)
	return []byte(translation.Replace(string(text))), err
}

// Open opens a directory, or a migration, for reading.
func (t translated) Open(name string) (fs.File, error) {
	file, err := t.FS.Open(name)
	if err != nil || path.Ext(name) != ".sql" {
		return file, err //nolint:wrapcheck // it names the file
	}
	text, err := t.ReadFile(name)
	return &translatedFile{file, strings.NewReader(string(text))}, err
}

type translatedFile struct {
	fs.File
	text *strings.Reader
}

func (f *translatedFile) Read(to []byte) (int, error) {
	return f.text.Read(to) //nolint:wrapcheck // io.EOF must be what it is
}
