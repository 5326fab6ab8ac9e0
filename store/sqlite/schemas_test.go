package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/belay-run/belay/store/internal/sqltest"
	"github.com/belay-run/belay/store/internal/table"
	"github.com/belay-run/belay/store/sqlite"
)

var updateSchemas = flag.Bool("update-schemas", false, "write the missing files of testdata/schemas")

// dumpOf is the name of the dump of a store with the tables of a version. Up to version 15 it is the real store of version 1, brought
// up by the migrations to this version, with the rows of testdata/rows: those that programs of each version on the way stored in its
// new tables and columns. Since version 16 it is the store before, opened by the program of this version, with such rows. A file is
// written while its version is the newest, and never changed after that.
func dumpOf(version int64) string { return fmt.Sprintf("testdata/schemas/v%02d.sql", version) }

// provider returns the migrations for a database.
func provider(t *testing.T, db *sql.DB) *goose.Provider {
	t.Helper()
	migrations, err := fs.Sub(table.Migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithTableName("belay_version"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Stores of all earlier versions are opened with everything in them. The store as it was is kept beside it.
//
// SPEC Q-03
func TestEveryEarlierSchema(t *testing.T) {
	t.Parallel()
	made := filepath.Join(t.TempDir(), "new.db")
	s := openFile(t, made, nil)
	_, newest := s.Migrated()
	want := shapeOf(t, made)
	for version := int64(1); version <= newest; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			t.Parallel()
			if *updateSchemas {
				writeDump(t, version, newest)
			}
			script, err := os.ReadFile(dumpOf(version))
			if err != nil {
				t.Fatalf("%v: write it with go test ./store/sqlite -run TestEveryEarlierSchema -update-schemas", err)
			}
			file := filepath.Join(t.TempDir(), "belay.db")
			execute(t, file, string(script))
			before := rowsIn(t, file)
			opened := openFile(t, file, nil)
			if from, to := opened.Migrated(); from != version || to != newest {
				t.Fatalf("migrated from %d to %d, want from %d to %d", from, to, version, newest)
			}
			now := rowsIn(t, file)
			before.Kept(t, now)
			if used := now["turn_usage"]; len(used) != 1 || used[0]["tokens_in"] != "10" {
				t.Errorf("the usage is %v, want that of the only response", used)
			}
			sqltest.WantOld(t, opened, version)
			wantUntouched(t, file)
			if got := shapeOf(t, file); got != want {
				t.Errorf("the tables differ from those of a new file:\n%s\nwant:\n%s", got, want)
			}
			if version == newest {
				return
			}
			kept := fmt.Sprintf("%s.v%d.bak", file, version)
			info, err := os.Stat(kept)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("others may read the copy: %v", info.Mode())
			}
			if got := versionOf(t, kept); got != version {
				t.Errorf("the copy has version %d, want %d", got, version)
			}
		})
	}
}

// A migration that is repeated makes the copy again: it has what happened after the attempt that failed. So is a copy that was
// interrupted.
//
// SPEC Q-03
func TestKeepOldAnew(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(dumpOf(1))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "belay.db")
	execute(t, file, string(script)+"CREATE INDEX runs_job ON runs (job);") // the next migration makes this index too, and fails
	if s, err := sqlite.Open(t.Context(), file, nil); err == nil {
		closeStore(t, s)
		t.Fatal("the migration does not fail")
	}
	copied := file + ".v1.bak"
	if got := epochOf(t, copied); got != 1 {
		t.Errorf("the first copy has the epoch %d", got)
	}
	execute(t, file, "UPDATE counters SET value = 7 WHERE name = 'epoch'; DROP INDEX runs_job") // the old program goes on
	openFile(t, file, nil)
	if version, epoch := versionOf(t, copied), epochOf(t, copied); version != 1 || epoch != 7 {
		t.Errorf("the copy has version %d and epoch %d, want 1 and 7", version, epoch)
	}
	other := filepath.Join(t.TempDir(), "belay.db")
	execute(t, other, string(script))
	if err := os.WriteFile(other+".v1.bak.part", []byte("a part"), 0o600); err != nil {
		t.Fatal(err)
	}
	openFile(t, other, nil)
	if got := versionOf(t, other+".v1.bak"); got != 1 {
		t.Errorf("the copy has version %d", got)
	}
	openFile(t, filepath.Join(filepath.Dir(file), "fresh.db"), nil)
	if made, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "fresh.db*.bak")); len(made) > 0 {
		t.Errorf("a new store has copies: %v", made)
	}
}

// rowsIn returns the rows of a file.
func rowsIn(t *testing.T, file string) sqltest.Rows {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // it was only read
	return sqltest.ReadRows(t, db, auditBackend.Names)
}

// shapeOf returns the tables of a file, their migrations, and which programs may use them.
func shapeOf(t *testing.T, file string) string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // it was only read
	var tables, versions, counters string
	err = db.QueryRowContext(t.Context(), `SELECT
		(SELECT group_concat(COALESCE(sql, name), char(10) ORDER BY name) FROM sqlite_schema),
		(SELECT group_concat(version_id || ' applied ' || is_applied, char(10) ORDER BY id) FROM belay_version),
		(SELECT group_concat(name || CASE WHEN name LIKE 'oldest%' THEN ' ' || value ELSE '' END, char(10) ORDER BY name) FROM counters)`,
	).Scan(&tables, &versions, &counters)
	if err != nil {
		t.Fatal(err)
	}
	return tables + "\nversions:\n" + versions + "\ncounters:\n" + counters
}

// versionOf returns the version of the tables in a file.
func versionOf(t *testing.T, file string) int64 {
	t.Helper()
	return number(t, file, "SELECT max(version_id) FROM belay_version")
}

// epochOf returns the counter of holds in a file.
func epochOf(t *testing.T, file string) int64 {
	t.Helper()
	return number(t, file, "SELECT value FROM counters WHERE name = 'epoch'")
}

// number returns the number that a query finds in a file.
func number(t *testing.T, file, query string) int64 {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var found int64
	if err := db.QueryRowContext(t.Context(), query).Scan(&found); err != nil {
		t.Fatal(err)
	}
	return found
}

// programs is the first version whose dump its own program has written.
const programs = 16

// writeDump writes the dump of a version, if there is none.
func writeDump(t *testing.T, version, newest int64) {
	t.Helper()
	if _, err := os.Stat(dumpOf(version)); err == nil {
		return
	}
	from, first := oldFile, int64(1)
	if version >= programs {
		if version != newest {
			t.Fatalf("%s is missing, and only the program of version %d can write it", dumpOf(version), version)
		}
		from, first = dumpOf(version-1), version
	}
	script, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "old.db")
	execute(t, file, string(script))
	if version >= programs {
		s, err := sqlite.Open(t.Context(), file, nil)
		if err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for v := first; v <= version; v++ {
		if _, err := provider(t, db).UpTo(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		rows, err := os.ReadFile(fmt.Sprintf("testdata/rows/v%02d.sql", v))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the version has no new tables and columns
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), string(rows)); err != nil {
			t.Fatalf("testdata/rows/v%02d.sql: %v", v, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(dumpOf(version)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dumpOf(version), []byte(dump(t, db)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// clock is a time that a dump must not have from the machine that wrote it.
var clock = regexp.MustCompile(`'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d'`)

// dump returns the statements that make a database again.
func dump(t *testing.T, db *sql.DB) string {
	t.Helper()
	var b strings.Builder
	var id int64
	if err := db.QueryRowContext(t.Context(), "PRAGMA application_id").Scan(&id); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "PRAGMA auto_vacuum = 2;\nPRAGMA application_id = %d;\n", id)
	for _, row := range rowsOf(t, db, "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type = 'table' DESC, rowid", 3) {
		kind, name, statement := row[0], row[1], row[2]
		b.WriteString(statement + ";\n")
		if kind != "table" {
			continue
		}
		var columns []string
		for _, c := range rowsOf(t, db, fmt.Sprintf("SELECT name FROM pragma_table_info('%s')", name), 1) {
			columns = append(columns, "quote("+c[0]+")")
		}
		for _, r := range rowsOf(t, db, "SELECT "+strings.Join(columns, " || ', ' || ")+" FROM "+name, 1) {
			fmt.Fprintf(&b, "INSERT INTO %s VALUES(%s);\n", name, clock.ReplaceAllString(r[0], "'2026-01-01 00:00:00'"))
		}
	}
	return b.String()
}

// rowsOf returns the rows of a query.
func rowsOf(t *testing.T, db *sql.DB, query string, columns int) [][]string {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	var all [][]string
	for rows.Next() {
		row := make([]string, columns)
		into := make([]any, columns)
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
