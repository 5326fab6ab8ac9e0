package postgres_test

import (
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/belay-run/belay/store/internal/sqltest"
	"github.com/belay-run/belay/store/postgres"
)

// Databases of all earlier versions are opened with everything in them. Each has the tables that the migrations of its version make,
// and the rows that the SQLite store of that version has: see store/sqlite/testdata.
//
// SPEC Q-03
func TestEveryEarlierSchema(t *testing.T) {
	t.Parallel()
	_, newest := open(t, nil).Migrated()
	for version := int64(1); version <= newest; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			t.Parallel()
			dsn := server.Database(t, "template1")
			makeOld(t, dsn, version)
			before := rowsIn(t, dsn)
			s := openDSN(t, dsn, nil)
			if from, to := s.Migrated(); from != version || to != newest {
				t.Fatalf("migrated from %d to %d, want from %d to %d", from, to, version, newest)
			}
			now := rowsIn(t, dsn)
			before.Kept(t, now)
			if used := now["turn_usage"]; len(used) != 1 || used[0]["tokens_in"] != "10" {
				t.Errorf("the usage is %v, want that of the only response", used)
			}
			sqltest.WantOld(t, s, version)
		})
	}
}

// rowsIn returns the rows of a database.
func rowsIn(t *testing.T, dsn string) sqltest.Rows {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // it was only read
	return sqltest.ReadRows(t, db, auditBackend.Names)
}

// ownVersion returns the version of PostgreSQL's own migrations that a program with a version of the shared ones had.
func ownVersion(shared int64) int64 {
	switch {
	case shared < 6:
		return 1
	case shared < 16:
		return 2
	default:
		return 3
	}
}

// makeOld makes the tables of a version, and fills them with the rows of the SQLite store of that version.
func makeOld(t *testing.T, dsn string, version int64) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // all statements have succeeded
	up := func(from fs.FS, table string, to int64) {
		t.Helper()
		migrations, err := fs.Sub(from, "migrations")
		if err != nil {
			t.Fatal(err)
		}
		p, err := goose.NewProvider(goose.DialectPostgres, db, migrations, goose.WithTableName(table), goose.WithDisableGlobalRegistry(true))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.UpTo(t.Context(), to); err != nil {
			t.Fatal(err)
		}
	}
	up(postgres.TranslatedMigrations, "belay_version", version)
	script := "DELETE FROM counters;\n" + rowsOf(t, version)
	if _, err := db.ExecContext(t.Context(), script); err != nil {
		t.Fatal(err)
	}
	up(postgres.OwnMigrations, "belay_postgres_version", ownVersion(version))
	script = "SELECT setval('belay_epoch', (SELECT max(epoch) FROM sessions)), setval('belay_run', (SELECT value FROM counters WHERE name = 'run'))"
	if version >= 16 { // the counter is one more than the entries of the main chain
		script += ", setval('belay_chain', (SELECT max(seq) FROM audit_chain)); UPDATE counters SET value = value + 1 WHERE name = 'chain'"
	}
	if _, err := db.ExecContext(t.Context(), script); err != nil {
		t.Fatal(err)
	}
}

var (
	// inserted is a row of a dump of SQLite, in a table that both databases have.
	inserted = regexp.MustCompile(`(?m)^INSERT INTO (\w+) VALUES\((.*)\);$`)
	// plain is a number, or a text, which stays as it is. PostgreSQL takes a number in quotes for a boolean too.
	plain = regexp.MustCompile(`'(?:[^']|'')*'|-?\d+(?:\.\d+)?`)
)

// rowsOf returns the rows of the SQLite store of a version, as PostgreSQL reads them.
func rowsOf(t *testing.T, version int64) string {
	t.Helper()
	dump, err := os.ReadFile(filepath.Join("..", "sqlite", "testdata", "schemas", fmt.Sprintf("v%02d.sql", version)))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, row := range inserted.FindAllStringSubmatch(string(dump), -1) {
		table, values := row[1], row[2]
		if table == "belay_version" || strings.HasPrefix(table, "river_") {
			continue
		}
		fmt.Fprintf(&b, "INSERT INTO %s VALUES (%s);\n", table, plain.ReplaceAllStringFunc(values, func(v string) string {
			if strings.HasPrefix(v, "'") {
				return v
			}
			return "'" + v + "'"
		}))
	}
	if b.Len() == 0 {
		t.Fatal("the dump has no rows")
	}
	return b.String()
}
