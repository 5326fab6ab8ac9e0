package sqltest

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/hook"
)

// Replaces changes every column of rows that Belay writes as a whole, and lets Belay write them
// again. Nothing of the change may be left, because verify does not find it any more: the entry of
// the write has the row as it is then.
func (b *AuditBackend) Replaces(t *testing.T) {
	s := b.Open(t, nil).(auditStore)
	b.fill(t, s)
	ctx := t.Context()
	started := Run("open", hook.Started)
	AppendRuns(t, s, started)
	var pending []belay.Approval
	for a, err := range s.Approvals(ctx, belay.ApprovalFilter{ID: "a-wait"}) {
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, a)
	}
	raw := b.Raw(t, s)
	rows := []struct {
		table *audit.Table
		id    string
		keep  string // columns that a write keeps, or by which it finds the row
	}{
		{&audit.Approvals, "a-wait", "id session decision"},
		{&audit.Words, "a-wait", "id"},
		{&audit.Runs, "open", "id seq state changed"},
	}
	before := make([][]string, len(rows))
	for i, r := range rows {
		before[i] = rowOf(t, raw, r.table, r.id)
		var set []string
		for c, column := range r.table.Columns {
			if !slices.Contains(strings.Fields(r.keep), column) {
				set = append(set, column+" = "+flipped(t, column, before[i][c]))
			}
		}
		change := "UPDATE " + r.table.Name + " SET " + strings.Join(set, ", ") + " WHERE id = " + quote(r.id) //nolint:gosec // the names come from package audit
		if _, err := raw.ExecContext(ctx, change); err != nil {
			t.Fatal(err)
		}
	}
	stored := Hold(t, s, "a")
	Commit(t, s, &belay.Commit{Session: "a", Epoch: stored.Epoch, Approvals: pending})
	if err := s.Release(ctx, "a", stored.Epoch); err != nil {
		t.Fatal(err)
	}
	AppendRuns(t, s, started)
	for i, r := range rows {
		after := rowOf(t, raw, r.table, r.id)
		if at := slices.Index(r.table.Columns, "changed"); at >= 0 {
			before[i][at] = after[at]
		}
		if !slices.Equal(before[i], after) {
			t.Errorf("the row of %s was changed and then written, and is\n%q\nwant\n%q", r.table.Name, after, before[i])
		}
	}
}

// row returns the row of a table that has an id.
func rowOf(t *testing.T, raw *sql.DB, table *audit.Table, id string) []string {
	t.Helper()
	for _, row := range read(t, raw, table) {
		if row[slices.Index(table.Columns, "id")] == id {
			return row
		}
	}
	t.Fatalf("%s has no row %q", table.Name, id)
	return nil
}
