package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/audit"
)

// Rows are the rows of the tables of a database. A row is a value for each column.
type Rows map[string][]map[string]string

// ReadRows reads all tables. The query names them.
func ReadRows(t testing.TB, db *sql.DB, names string) Rows {
	t.Helper()
	all := Rows{}
	for _, name := range queried(t, db, names) {
		for _, table := range name {
			all[table] = queried(t, db, `SELECT * FROM "`+table+`"`) //nolint:unqueryvet // the columns are not known
		}
	}
	return all
}

func queried(t testing.TB, db *sql.DB, query string) (found []map[string]string) {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }() // Err reports what went wrong
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		row := map[string]string{}
		for i, column := range columns {
			row[column] = fmt.Sprint(values[i])
		}
		found = append(found, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// empty are the tables that have no rows in a store that nobody has open.
var empty = []string{"holders", "river_leader", "river_notification", "river_queue"}

// Kept asserts that each table of an older store has rows, and that all of them are there after the migration, in the columns that
// are still there.
func (r Rows) Kept(t testing.TB, now Rows) {
	t.Helper()
	for table, rows := range r {
		if len(rows) == 0 && !slices.Contains(empty, table) {
			t.Errorf("the old store has no rows in %s: the test would not notice if they were lost", table)
		}
		if table == "counters" { // some must change
			continue
		}
		for _, row := range rows {
			if !slices.ContainsFunc(now[table], func(found map[string]string) bool { return agree(row, found) }) {
				t.Errorf("the row of %s is gone or changed: %v\nthe rows are %v", table, row, now[table])
			}
		}
	}
}

// agree reports whether two rows are equal in the columns that both have.
func agree(a, b map[string]string) bool {
	for column, value := range a {
		if other, ok := b[column]; ok && other != value {
			return false
		}
	}
	return true
}

// WantOld asserts that a store that was migrated from a version has what was stored before: see store/sqlite/testdata/rows.
func WantOld(t testing.TB, s Store, version int64) {
	t.Helper()
	ctx := context.Background()
	runs := []string{"first completed", "second interrupted"}
	approvals := map[string]string{"ask": "", "answered": "it wrote fine"}
	if version >= 5 {
		approvals["worded"] = "it lists go on"
	}
	if version >= 13 {
		runs = append(runs, "folded-0 completed", "folded-1 completed", "folded-2 completed", "folded-3 completed", "folded-4 completed")
	}
	WantStates(t, s, runs...)
	for a, err := range s.Approvals(ctx, belay.ApprovalFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		words := a.Reason
		if a.Decided != nil {
			words += " " + a.Decided.Reason
		}
		if want, ok := approvals[a.ID]; !ok || words != want {
			t.Errorf("the approval %s says %q, want %q", a.ID, words, want)
		}
		delete(approvals, a.ID)
	}
	if len(approvals) > 0 {
		t.Errorf("approvals are missing: %v", approvals)
	}
	v, err := s.(audit.Store).VerifyAudit(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Problems) > 0 || v.Runs < 2 || v.Approvals < 2 || v.Grants != 1 {
		t.Errorf("the audit chain has the problems %+v, %d runs, %d approvals and %d grants", v.Problems, v.Runs, v.Approvals, v.Grants)
	}
	stored := Hold(t, s, "demo")
	if len(stored.Messages) != 2 || stored.Messages[1].Text() != "it's <done> 日本語" || stored.State.Turns != 1 || len(stored.Calls) != 1 || len(stored.Approvals) != 1 {
		t.Errorf("opened: %+v, want what was stored", stored)
	}
	Commit(t, s, Say("demo", stored.Epoch, 3, "the session continues"))
	if grants := Hold(t, s, "granted").State.Grants; len(grants) != 1 || grants[0].Tool != "shell" {
		t.Errorf("the grants are %+v", grants)
	}
}
