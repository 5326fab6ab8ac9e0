package sqltest

import (
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/belay-run/belay/audit"
)

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// isNumber and isTruth say what a column holds.
func isNumber(column string) bool {
	return slices.Contains(strings.Fields("seq changed origin_line step attempt started ended latency more response asked expires idx time"), column)
}

func isTruth(column string) bool { return column == "shadow" || column == "floor" }

// flipped returns a value that differs from a column's value in one bit.
func flipped(t *testing.T, column, value string) string {
	t.Helper()
	switch {
	case isTruth(column):
		return "NOT " + column
	case isNumber(column):
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return strconv.FormatInt(n^1<<30, 10) // a high bit, so that no other row has the number
	case value == "":
		return "'x'"
	}
	text := []byte(value)
	text[len(text)/2] ^= 1
	if text[len(text)/2] == 0 || text[len(text)/2] >= 0x80 {
		text = append(text, 'x')
	}
	return quote(string(text))
}

// retype changes the types of all values of a row, one after the other. Verify must name the row.
func (b *AuditBackend) retype(t *testing.T, raw *sql.DB, table *audit.Table, row []string) {
	t.Helper()
	if !b.Untyped {
		return
	}
	where := rowIs(table, row)
	for c, column := range table.Columns {
		name := row[max(slices.Index(table.Columns, "id"), 0)] // a list of hooks and an entry have no id
		switch column {
		case "seq":
			continue // a primary key that is an integer has its type
		case "id", "list":
			name = fmt.Sprintf("blob X'%X'", row[c])
		}
		what := fmt.Sprintf("another type of %s.%s where %s", table.Name, column, where)
		all := b.problems(t, raw, what, "UPDATE "+table.Name+" SET "+column+" = "+retyped(column)+" WHERE "+where)
		if !slices.ContainsFunc(all, func(p audit.Problem) bool { return p.Table == table.Name && p.Row == name }) {
			t.Errorf("%s: verify does not name the row %q of %s: %+v", what, name, table.Name, all)
		}
	}
}

// retyped returns the value of a column with another type. It has the same text, but queries do
// not find it.
func retyped(column string) string {
	if isTruth(column) {
		return "CASE WHEN " + column + " THEN 'true' ELSE 'false' END"
	}
	return "CAST(" + column + " AS BLOB)"
}
