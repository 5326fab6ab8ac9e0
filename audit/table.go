package audit

import "strings"

// Table is a table whose rows the chain covers.
type Table struct {
	// Name is the name of the table.
	Name string
	// Order are the columns that rows are sorted by.
	Order string
	// Columns are the columns, in the order in which they are hashed.
	Columns []string

	prefix string // of its lines

	open, openIs string // a row never changes again once this column has another value
}

// The tables. Grants are a part of the sessions.
var (
	Runs = Table{"runs", "seq", []string{
		"seq", "id", "changed", "holder", "subscription", "job_handler", "version", "phase", "dispatch",
		"origin_kind", "origin_name", "origin_file", "origin_line", "session", "turn", "step", "agent",
		"execution", "state", "shadow", "visibility", "job", "attempt", "idempotency_key",
		"started", "ended", "latency", "error_class", "severity",
		"contributed", "audit", "diagnostics", "more", "hooks", "folded",
	}, "r", "state", "started"}
	Approvals = Table{"approvals", "id", []string{
		"id", "session", "response", "turn", "call_id", "tool", "hash", "asked_by", "floor", "asked", "expires", "decision",
	}, "a", "decision", ""}
	Words  = Table{"approval_words", "id", []string{"id", "reason", "answer", "pattern"}, "w", "", ""}
	Hooks  = Table{"run_hooks", "list, idx", []string{"list", "idx", "subscription", "version", "origin_name", "origin_file", "origin_line"}, "", "", ""}
	Grants = Table{"sessions", "id", nil, "g", "", ""}
)

// value returns a column of a row, or "" if the table does not have the column.
func (t *Table) value(row []string, column string) string {
	for i, name := range t.Columns {
		if name == column {
			return row[i]
		}
	}
	return ""
}

// Line returns the line of a row.
func (t *Table) Line(row []string) string {
	key := t.key(row)
	if t.open != "" && t.value(row, t.open) != t.openIs {
		key = Final(key)
	}
	return key + "=" + RowHash(row...)
}

// Final returns the key of a line about a row that never changes again: its first letter is a
// capital one.
func Final(key string) string { return strings.ToUpper(key[:1]) + key[1:] }

// Found returns the key of a line about a row as the transaction found it.
func Found(key string) string { return "<" + key }

// key returns what the lines of an entry call a row.
func (t *Table) key(row []string) string {
	if t.prefix == "r" {
		return t.prefix + t.value(row, "seq")
	}
	return t.prefix + Key(t.value(row, "id"))
}
