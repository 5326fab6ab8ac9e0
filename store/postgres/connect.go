package postgres

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// connect makes the pools. They open connections when they are first asked.
func (s *Store) connect(ctx context.Context, dsn string) error {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return err //nolint:wrapcheck // it names the field, and has no password in it
	}
	conn := config.ConnConfig
	s.id, s.name = rand.Text(), conn.Database+" at "+address(conn.Host, conn.Port)
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "belay"
	}
	// A process that is stopped in the middle of a transaction must not keep others
	// from what it has locked.
	conn.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt(max(s.lease()/2, time.Second).Milliseconds(), 10)
	config.AfterConnect = durable
	switch {
	case s.opts.MaxConns > 0:
		config.MaxConns = int32(min(s.opts.MaxConns, 1<<15))
	case !strings.Contains(dsn, "pool_max_conns"):
		config.MaxConns = 16
	}
	pulse := config.Copy()
	pulse.MaxConns, pulse.MinConns, pulse.MinIdleConns = 1, 0, 0
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err //nolint:wrapcheck // Open says what for
	}
	if s.pulse, err = pgxpool.NewWithConfig(ctx, pulse); err != nil {
		return err //nolint:wrapcheck // likewise
	}
	s.db = stdlib.OpenDBFromPool(s.pool)
	s.read = table.New(s.bind(s.db))
	if err := s.openQueue(); err != nil {
		return err
	}
	return s.pool.Ping(ctx) //nolint:wrapcheck // likewise
}

// durable sees to it that a commit is on the disk when the server says so, if the
// server's own setting does not.
func durable(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
	return err //nolint:wrapcheck // Open says what for
}

func address(host string, port uint16) string {
	if strings.HasPrefix(host, "/") { // a socket
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

func (s *Store) bind(db table.DBTX) bound { return bound{db, &s.spellings} }

// Where goose notes which migrations the database has: those that all databases
// share, and PostgreSQL's own.
const (
	versionTable    = "belay_version"
	ownVersionTable = "belay_postgres_version"
)

// The locks that stores take, apart from rows: "belay", and a number.
const (
	migrating = 0x62656c617900 + iota
	enqueuing
)

//go:embed migrations/*.sql
var ownMigrations embed.FS

// prepare brings the tables up to date, one process at a time.
func (s *Store) prepare(ctx context.Context) (err error) {
	if current, err := s.current(ctx); err != nil || current {
		return err
	}
	conn, err := s.pulse.Acquire(ctx) // goose has the others
	if err != nil {
		return err //nolint:wrapcheck // Open says what for
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(migrating)); err != nil {
		return err //nolint:wrapcheck // likewise
	}
	defer func() {
		if _, unlocked := conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", int64(migrating)); unlocked != nil {
			_ = conn.Conn().Close(context.WithoutCancel(ctx)) // which unlocks too
		}
	}()
	if err := s.claim(ctx, conn); err != nil {
		return err
	}
	if err := s.migrate(ctx, translated{s.migrations()}, versionTable); err != nil {
		return err
	}
	if err := s.migrate(ctx, ownMigrations, ownVersionTable); err != nil {
		return err
	}
	return s.queue.Migrate(ctx)
}

// current reports whether all tables are up to date, as they are but for the first
// store of a new version: then nobody waits for anybody.
func (s *Store) current(ctx context.Context) (bool, error) {
	var noted bool
	if err := s.pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL", versionTable, ownVersionTable).Scan(&noted); err != nil || !noted {
		return false, err //nolint:wrapcheck // Open says what for
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
	}
	return s.queue.Current(ctx)
}

// migrations are those that all databases share, as this program knows them.
func (s *Store) migrations() fs.FS {
	if s.opts.migrations != nil {
		return s.opts.migrations
	}
	return table.Migrations
}

// newestOf is the version of the last migration.
func newestOf(from fs.FS) (newest int64, err error) {
	files, err := fs.Glob(from, "migrations/*.sql")
	for _, name := range files {
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, failed := strconv.ParseInt(number, 10, 64)
		newest, err = max(newest, version), errors.Join(err, failed)
	}
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	return newest, nil
}

// claim refuses a database that has tables of our names and no note of ours.
func (s *Store) claim(ctx context.Context, conn *pgxpool.Conn) error {
	var noted bool
	var taken string
	err := conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL,
		coalesce((SELECT min(name) FROM unnest(ARRAY['sessions', 'messages', 'calls', 'approvals', 'runs', 'holders', 'counters']) name WHERE to_regclass(name) IS NOT NULL), '')`,
		versionTable).Scan(&noted, &taken)
	if err != nil {
		return err //nolint:wrapcheck // Open says what for
	}
	if !noted && taken != "" {
		return &ServerError{
			Database: s.name, Kind: ErrNotStore, Remedy: "give Belay a database of its own, or a schema: add search_path to the DSN",
			Err: fmt.Errorf("it has a table %s of another program", taken),
		}
	}
	return nil
}

// migrate brings one set of tables up to date.
func (s *Store) migrate(ctx context.Context, from fs.FS, versions string) error {
	migrations, err := fs.Sub(from, "migrations")
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, s.db, migrations,
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
			break // what was added since does not matter to it
		}
		return &ServerError{
			Database: s.name, Kind: ErrNewer, Remedy: "use a newer version of Belay, or another database",
			Err: fmt.Errorf("its tables have version %d, this program knows up to %d", stored, newest),
		}
	case stored < newest:
		if err := s.mayContract(ctx, sources, stored); err != nil {
			return err
		}
		if _, err := provider.Up(ctx); err != nil {
			return fmt.Errorf("migrations: %w", err)
		}
	}
	if versions == versionTable {
		s.migrated = [2]int64{max(stored, 0), max(stored, newest)}
	}
	return nil
}

// Migrated tells which version the tables had when the store was opened, 0 if there
// were none, and which they have now.
func (s *Store) Migrated() (from, to int64) { return s.migrated[0], s.migrated[1] }

const (
	// contracts is in the names of migrations that take something away.
	contracts = "_contract_"
	// firstKnown is the first version of the tables whose programs say what they know.
	firstKnown = 6
)

// mayContract refuses a migration that takes something away while a program is at work
// that may need it: one that knows none of the migrations before it that prepare for it.
func (s *Store) mayContract(ctx context.Context, sources []*goose.Source, stored int64) error {
	for _, source := range sources {
		if source.Version <= stored || stored < firstKnown || !strings.Contains(source.Path, contracts) {
			continue
		}
		var pid int64
		var host string
		err := s.pool.QueryRow(ctx, "SELECT pid, host FROM holders WHERE knows < $1 AND seen + lease > clock_timestamp() ORDER BY since LIMIT 1", source.Version-1).Scan(&pid, &host)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return err //nolint:wrapcheck // Open says what for
		default:
			return &ServerError{
				Database: s.name, Kind: ErrOlder, Remedy: "end the workers of the older version first, and start this one again",
				Err: fmt.Errorf("process %d on %s has it open, and needs what version %d of the tables takes away", pid, host, source.Version),
			}
		}
	}
	return nil
}

// translated are the shared migrations as PostgreSQL should read them. An INTEGER
// PRIMARY KEY has 64 bits in SQLite, and texts compare by their bytes there: so do
// they here, whatever the database's language.
type translated struct{ fs.FS }

var translation = strings.NewReplacer("INTEGER NOT NULL PRIMARY KEY", "BIGINT NOT NULL PRIMARY KEY", " TEXT ", ` TEXT COLLATE "C" `)

// ReadFile reads a migration.
func (t translated) ReadFile(name string) ([]byte, error) {
	text, err := fs.ReadFile(t.FS, name)
	return []byte(translation.Replace(string(text))), err
}

// Open opens a directory, or a migration for reading.
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
