package sqlite_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/belay-run/belay/store/internal/table"
)

var updateSchemas = flag.Bool("update-schemas", false, "write the missing files of testdata/schemas")

// dumpOf is the name of the dump of a store with the tables of a version. A file is written once, when the next migration is added,
// and never changed: it is what users of that version have.
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
	s := openFile(t, filepath.Join(t.TempDir(), "new.db"), nil)
	_, newest := s.Migrated()
	for version := int64(1); version < newest; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			t.Parallel()
			if *updateSchemas {
				writeDump(t, version)
			}
			script, err := os.ReadFile(dumpOf(version))
			if err != nil {
				t.Fatalf("%v: write it with go test ./store/sqlite -run TestEveryEarlierSchema -update-schemas", err)
			}
			file := filepath.Join(t.TempDir(), "belay.db")
			execute(t, file, string(script))
			opened := openFile(t, file, nil)
			if from, to := opened.Migrated(); from != version || to != newest {
				t.Fatalf("migrated from %d to %d, want from %d to %d", from, to, version, newest)
			}
			stored := hold(t, opened, "demo")
			if len(stored.Messages) != 2 || stored.Messages[1].Text() != "it's <done> 日本語" || stored.State.Turns != 1 || len(stored.Calls) != 1 || len(stored.Approvals) != 1 {
				t.Errorf("opened: %+v, want what was stored", stored)
			}
			commit(t, opened, say("demo", stored.Epoch, 3, "the session continues"))
			wantUntouched(t, file)
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

// A copy that is already there is not replaced, and one that was interrupted is made again.
func TestKeepOldOnce(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(dumpOf(1))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "belay.db")
	execute(t, file, string(script))
	for name, text := range map[string]string{".v1.bak": "the first copy", ".v1.bak.part": "a part"} {
		if err := os.WriteFile(file+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	openFile(t, file, nil)
	if text, err := os.ReadFile(file + ".v1.bak"); err != nil || string(text) != "the first copy" {
		t.Errorf("the copy is %q, %v", text, err)
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

// versionOf returns the version of the tables in a file.
func versionOf(t *testing.T, file string) int64 {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var version int64
	if err := db.QueryRowContext(t.Context(), "SELECT max(version_id) FROM belay_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version
}

// writeDump writes the dump of a version: the store of version 1 with the migrations up to this version.
func writeDump(t *testing.T, version int64) {
	t.Helper()
	if _, err := os.Stat(dumpOf(version)); err == nil {
		return
	}
	script, err := os.ReadFile(oldFile)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "old.db")
	execute(t, file, string(script))
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := provider(t, db).UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
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
