package sqltest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
)

// AuditBackend makes it possible to change the tables of a store behind its back.
type AuditBackend struct {
	*Backend
	// Raw opens the database of a store. Changes are not checked against foreign keys.
	Raw func(t testing.TB, s Store) *sql.DB
	// Verify verifies the database of a transaction.
	Verify func(ctx context.Context, tx *sql.Tx) (*audit.Verification, error)
	// Names is a query for the names of the tables of a store.
	Names string
	// Untyped says that a column can have values of any type.
	Untyped bool
}

// uncovered are the tables that the chain does not cover, and why. A new table must be added
// here or to package audit.
var uncovered = map[string]string{
	"sessions":       "a part of the transcript; the grants in its column state are covered",
	"session_labels": "titles and labels, which anybody who may describe a session changes",
	"messages":       "the transcript",
	"calls":          "the transcript",
	"turn_usage":     "sums of the transcript",
	"queued_turns":   "work that waits",
	"due_turns":      "work that waits",
	"turn_keys":      "work that waits",
	"job_keys":       "work that waits",
	"job_inputs":     "work that waits",
	"unfolded":       "empty except in a migration",
	"holders":        "processes that have the store open",
	"counters":       "the next numbers",

	"belay_version": "the version of the schema", "belay_postgres_version": "the version of the schema",

	"river_leader": "River", "river_migration": "River", "river_notification": "River", "river_job": "River", "river_queue": "River",
}

// Covers asserts that each table of the database is covered by the chain, or is known not to be,
// and that each column of a covered table is hashed. So a new column cannot be forgotten.
func (b *AuditBackend) Covers(t *testing.T) {
	raw := b.Raw(t, b.Open(t, nil))
	covered := make(map[string][]string)
	for _, table := range []*audit.Table{&audit.Runs, &audit.Approvals, &audit.Words, &audit.Hooks, &chainTable} {
		covered[table.Name] = table.Columns
	}
	tables, err := record.Collect(t.Context(), raw, b.Names, nil, func(rows *sql.Rows, name *string) error { return rows.Scan(name) })
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if _, known := uncovered[table]; known {
			continue
		}
		hashed, ok := covered[table]
		if !ok {
			t.Errorf("the table %s is new: add it to the tables of package audit, or to those that the chain does not cover, with the reason", table)
			continue
		}
		rows, err := raw.QueryContext(t.Context(), "SELECT * FROM "+table+" LIMIT 0") //nolint:gosec,unqueryvet // the name comes from the database, and all columns are asked for
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err := errors.Join(err, rows.Err(), rows.Close()); err != nil { //nolint:sqlclosecheck // in a loop
			t.Fatal(err)
		}
		for _, c := range columns {
			if !slices.Contains(hashed, c) {
				t.Errorf("%s.%s is new, and the chain does not cover it: add it to the table in package audit, and to the query of package chain", table, c)
			}
		}
	}
}

// auditStore is a store that can do everything that the chain must follow.
type auditStore interface {
	Store
	audit.Store
	Delete(ctx context.Context, session string) error
}

// fill stores what the chain covers: runs of all kinds, approvals, grants, and what is left of
// a deleted session.
func (b *AuditBackend) fill(t *testing.T, s auditStore) {
	t.Helper()
	ctx := t.Context()
	for _, session := range []string{"a", "gone"} {
		stored := Hold(t, s, session)
		c := Say(session, stored.Epoch, 1, "hello")
		c.Approvals = []belay.Approval{
			{ID: session + "-ask", Session: session, Turn: "turn", Call: "call", Tool: "shell", Hash: "sha256:1f", Reason: "it deletes", By: "floor", Floor: true, Asked: time.Now()},
			{ID: session + "-wait", Session: session, Turn: "turn", Call: "other", Tool: "write", Hash: "sha256:2f", Reason: "it writes", By: "hook", Asked: time.Now(), Expires: time.Now().Add(time.Hour)},
		}
		r := Run(session+"-in-commit", hook.Completed)
		r.Scope.Session = session
		c.Runs = []hook.Run{r}
		Commit(t, s, c)
		started := Run(session+"-started", hook.Started)
		started.Scope.Session, started.Attempt = session, 1
		AppendRuns(t, s, started)
		ended := started
		ended.State, ended.Ended, ended.Latency = hook.Failed, started.Started.Add(time.Second), hook.Latency(time.Second)
		ended.Diagnostics = []hook.Diagnostic{{Code: "panic", Message: "it failed"}}
		AppendRuns(t, s, ended)
		AppendRuns(t, s, ended) // once more, as after a lost connection
		var folded []hook.Run
		for i := range 6 {
			r := Run(fmt.Sprintf("%s-fold%d", session, i), hook.Completed)
			r.Scope.Session, r.Dispatch, r.Subscription = session, session+"-dispatch", fmt.Sprintf("hook%d", i)
			r.Started = started.Started.Add(time.Duration(i) * time.Microsecond)
			r.Ended = r.Started
			folded = append(folded, r)
		}
		AppendRuns(t, s, folded...)
		decision := belay.Decision{Approval: session + "-ask", Hash: "sha256:1f", Allow: true, By: "ann", Reason: "fine", Scope: belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: "shell(git *)"}, Time: time.Now()}
		if _, err := s.Decide(ctx, decision); err != nil {
			t.Fatal(err)
		}
		Commit(t, s, &belay.Commit{Session: session, Epoch: stored.Epoch, State: &belay.SessionState{Turns: 1, Grants: []belay.Grant{
			{Approval: session + "-ask", Asker: "floor", Tool: "shell", Pattern: "shell(git *)", By: "ann", Time: time.Now()},
		}}})
		if err := s.Release(ctx, session, stored.Epoch); err != nil {
			t.Fatal(err)
		}
	}
	orphan := Run("orphan", hook.Completed)
	orphan.Scope = hook.Scope{}
	AppendRuns(t, s, orphan)
	if err := s.Delete(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AnchorAudit(ctx); err != nil {
		t.Fatal(err)
	}
}

// chainTable is the chain itself.
var chainTable = audit.Table{Name: "audit_chain", Order: "seq", Columns: []string{"seq", "lane", "idx", "time", "body", "hash"}}

// Audit changes every column of every row that the chain covers, one after the other. It also
// removes, copies and swaps rows. Verify must find each change, and nothing without one.
func (b *AuditBackend) Audit(t *testing.T) {
	s := b.Open(t, nil).(auditStore)
	b.fill(t, s)
	ctx, raw := t.Context(), b.Raw(t, s)
	v, err := s.VerifyAudit(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Problems) > 0 || v.Deleted != 1 || v.DeletedApprovals != 2 || v.Approvals != 2 || v.Grants != 1 || v.Runs < 4 || v.Entries < 8 {
		t.Fatalf("verify says %+v, want one deleted session with two approvals, two approvals, one session with grants, and no problem", v)
	}
	tables := []*audit.Table{&audit.Runs, &audit.Approvals, &audit.Words, &chainTable}
	if count(t, raw, "run_hooks") > 0 {
		tables = append(tables, &audit.Hooks)
	}
	changes := 0
	for _, table := range tables {
		rows := read(t, raw, table)
		for i, row := range rows {
			where := rowIs(table, row)
			for c, column := range table.Columns {
				changes++
				b.found(t, raw, fmt.Sprintf("one bit of %s.%s in row %d (%q)", table.Name, column, i, row[c]), table.Name,
					"UPDATE "+table.Name+" SET "+column+" = "+flipped(t, column, row[c])+" WHERE "+where)
			}
			b.retype(t, raw, table, row)
			in := table.Name
			if in == chainTable.Name && i == len(rows)-1 {
				in = "" // the rows of the last entry show that it is missing
			}
			b.found(t, raw, fmt.Sprintf("row %d of %s removed", i, table.Name), in, "DELETE FROM "+table.Name+" WHERE "+where)
			b.found(t, raw, fmt.Sprintf("row %d of %s copied", i, table.Name), table.Name, copyOf(table, row, where))
			if i > 0 {
				changes++
				b.found(t, raw, fmt.Sprintf("rows %d and %d of %s swapped", i-1, i, table.Name), table.Name, swap(table, rows[i-1], row)...)
			}
		}
	}
	if b.Untyped {
		for _, column := range []string{"id", "state"} {
			b.found(t, raw, "another type of sessions."+column, "sessions", "UPDATE sessions SET "+column+" = "+retyped(column)+" WHERE id = 'a'")
		}
	}
	b.forge(t, raw)
	for what, change := range map[string]string{
		"a grant added":   `UPDATE sessions SET state = replace(state, '"shell(git *)"', '"shell(*)"') WHERE id = 'a'`,
		"grants removed":  `UPDATE sessions SET state = '' WHERE id = 'a'`,
		"a session added": `INSERT INTO sessions (id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state) SELECT 'b', epoch, '', created, changed, last, response, compaction, keep, turn_state, state FROM sessions WHERE id = 'a'`,
	} {
		b.found(t, raw, what, "sessions", change)
	}
	if changes < 200 {
		t.Errorf("only %d changes were tried", changes)
	}
	if v, err := s.VerifyAudit(ctx, nil); err != nil || len(v.Problems) > 0 {
		t.Errorf("afterwards verify says %+v, %v: the changes were not undone", v, err)
	}
}

// Rewrites changes rows of which Belay later writes only a part, and lets Belay write them. Verify
// must find each change afterwards, although the row and its last line match.
func (b *AuditBackend) Rewrites(t *testing.T) {
	decide := func(t *testing.T, s auditStore) auditStore {
		t.Helper()
		if _, err := s.Decide(t.Context(), belay.Decision{Approval: "a-wait", Hash: "sha256:2f", Allow: true, By: "ann", Time: time.Now()}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	grant := func(t *testing.T, s auditStore) auditStore {
		t.Helper()
		stored := Hold(t, s, "a")
		state := stored.State
		state.Grants = append(state.Grants, belay.Grant{Approval: "a-wait", Asker: "floor", Tool: "write", Pattern: "write(b)", By: "ann", Time: time.Now()})
		Commit(t, s, &belay.Commit{Session: "a", Epoch: stored.Epoch, State: &state})
		if err := s.Release(t.Context(), "a", stored.Epoch); err != nil {
			t.Fatal(err)
		}
		return s
	}
	interrupt := func(t *testing.T, s auditStore) auditStore {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Reopen(t, s, nil).(auditStore)
	}
	end := func(t *testing.T, s auditStore) auditStore {
		t.Helper()
		AppendRuns(t, s, Run("open", hook.Completed))
		return s
	}
	for what, c := range map[string]struct {
		table, change string // table is empty if nothing of the change is left
		write         func(*testing.T, auditStore) auditStore
	}{
		"a decision":                    {write: decide},
		"another question is decided":   {"approval_words", "UPDATE approval_words SET reason = 'it reads' WHERE id = 'a-wait'", decide},
		"another asker is decided":      {"approvals", "UPDATE approvals SET asked_by = 'floor' WHERE id = 'a-wait'", decide},
		"a grant":                       {write: grant},
		"a grant after a changed one":   {"sessions", `UPDATE sessions SET state = replace(state, '"shell(git *)"', '"shell(*)"') WHERE id = 'a'`, grant},
		"a grant after removed ones":    {"sessions", "UPDATE sessions SET state = '' WHERE id = 'a'", grant},
		"an interruption":               {write: interrupt},
		"another record is interrupted": {"runs", "UPDATE runs SET subscription = 'other' WHERE id = 'open'", interrupt},
		"the end of a changed record":   {"", "UPDATE runs SET subscription = 'other', more = 1, hooks = 'x', folded = 'x' WHERE id = 'open'", end},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := b.Open(t, nil).(auditStore)
			b.fill(t, s)
			AppendRuns(t, s, Run("open", hook.Started))
			if raw := b.Raw(t, s); c.change != "" {
				if _, err := raw.ExecContext(t.Context(), c.change); err != nil {
					t.Fatal(err)
				}
			}
			s = c.write(t, s)
			b.Raw(t, s) // says that the store was changed
			v, err := s.VerifyAudit(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.table == "" && len(v.Problems) > 0 || c.table != "" && (len(v.Problems) != 1 || v.Problems[0].Table != c.table) {
				t.Errorf("the problems are %+v, want one in %q, or none if that is empty", v.Problems, c.table)
			}
		})
	}
}

// found makes a change in a transaction, and asserts that Verify finds it and names the table,
// if table is not empty.
func (b *AuditBackend) found(t *testing.T, raw *sql.DB, what, table string, change ...string) {
	t.Helper()
	for _, p := range b.problems(t, raw, what, change...) {
		if p.Table == table || table == "" {
			return
		}
	}
	t.Errorf("%s: verify does not find it in %q", what, table)
}

// problems makes a change in a transaction, and returns what Verify finds. Each problem must say
// where it is.
func (b *AuditBackend) problems(t *testing.T, raw *sql.DB, what string, change ...string) []audit.Problem {
	t.Helper()
	tx, err := raw.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range change {
		result, err := tx.ExecContext(t.Context(), statement)
		if err != nil {
			t.Fatalf("%s: %v: %s", what, err, statement)
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			t.Fatalf("%s: %d rows changed, %v: %s", what, n, err, statement)
		}
	}
	v, err := b.Verify(t.Context(), tx)
	if err != nil {
		t.Fatalf("%s: verify does not say where it is: %v", what, err)
	}
	for _, p := range v.Problems {
		if p.Table == "" || p.Row == "" || p.Text == "" {
			t.Errorf("%s: a problem does not say where it is: %+v", what, p)
		}
	}
	return v.Problems
}

func count(t *testing.T, raw *sql.DB, table string) (n int) {
	t.Helper()
	if err := raw.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func read(t *testing.T, raw *sql.DB, table *audit.Table) [][]string {
	t.Helper()
	rows, err := record.Collect(t.Context(), raw, "SELECT "+strings.Join(table.Columns, ", ")+" FROM "+table.Name+" ORDER BY "+table.Order, nil, func(rows *sql.Rows, row *[]string) error {
		*row = make([]string, len(table.Columns))
		into := make([]any, len(table.Columns))
		for i := range into {
			into[i] = &(*row)[i]
		}
		return rows.Scan(into...)
	})
	if err != nil || len(rows) == 0 {
		t.Fatalf("%s has %d rows, %v: want some", table.Name, len(rows), err)
	}
	return rows
}

// keysOf are the columns that identify a row.
func keysOf(table *audit.Table) []string { return strings.Split(table.Order, ", ") }

func rowIs(table *audit.Table, row []string) string {
	var all []string
	for _, key := range keysOf(table) {
		for c, column := range table.Columns {
			if column == key {
				all = append(all, key+" = "+quote(row[c]))
			}
		}
	}
	return strings.Join(all, " AND ")
}

// forge changes rows as somebody who knows the chain would do: with an entry that has the hash
// of the changed row, or without the row.
func (b *AuditBackend) forge(t *testing.T, raw *sql.DB) {
	t.Helper()
	for table, column := range map[*audit.Table]string{&audit.Runs: "subscription", &audit.Approvals: "decision", &audit.Words: "pattern"} {
		tried := 0
		at := slices.Index(table.Columns, column)
		for i, row := range read(t, raw, table) {
			if row[at] == "" {
				continue // the row of an undecided approval
			}
			tried++
			stored := slices.Clone(row)
			for c, column := range table.Columns {
				if isTruth(column) {
					stored[c] = strings.NewReplacer("0", "false", "1", "true").Replace(row[c])
				}
			}
			changed := slices.Clone(stored)
			changed[at] = "x" + row[at]
			update := "UPDATE " + table.Name + " SET " + column + " = " + quote(changed[at]) + " WHERE " + rowIs(table, row)
			line, same := audit.Final(table.Line(changed)), table.Line(stored)
			key, _, _ := strings.Cut(open(line), "=")
			for what, body := range map[string]string{
				"changes row %d of %s":                                   line,
				"opens and changes row %d of %s":                         open(line),
				"opens row %d of %s as it was, and changes it":           open(same) + " " + line,
				"opens row %d of %s as it was, and changes it (2 times)": open(same) + " " + open(same) + " " + line,
				"removes row %d of %s, adds it again and changes it":     "-" + key + " " + line,
				"removes row %d of %s, opens it again and changes it":    "-" + key + " " + open(line),
			} {
				b.found(t, raw, "an entry that "+fmt.Sprintf(what, i, table.Name), table.Name, update, forged(t, raw, body))
			}
			b.found(t, raw, fmt.Sprintf("an entry that opens row %d of %s", i, table.Name), table.Name, forged(t, raw, open(same)))
		}
		if tried == 0 {
			t.Errorf("no row of %s was tried", table.Name)
		}
	}
	if b.Untyped { // and with one chain
		b.found(t, raw, "an entry of another lane", chainTable.Name, insertEntry(audit.Entry{Seq: -1, Lane: "other", Idx: 1, Time: 1, Body: "r1000000="}, ""))
	}
}

// open returns a line with a small letter: the row can change.
func open(line string) string { return strings.ToLower(line[:1]) + line[1:] }

// forged returns a statement that adds an entry to the lane of the last one.
func forged(t *testing.T, raw *sql.DB, body string) string {
	t.Helper()
	var last audit.Entry
	err := raw.QueryRowContext(t.Context(), "SELECT seq, lane, idx, time, body, hash FROM audit_chain ORDER BY seq DESC LIMIT 1").Scan(&last.Seq, &last.Lane, &last.Idx, &last.Time, &last.Body, &last.Hash)
	if err != nil {
		t.Fatal(err)
	}
	return insertEntry(audit.Entry{Seq: last.Seq + 1, Lane: last.Lane, Idx: last.Idx + 1, Time: last.Time + 1, Body: body}, last.Hash)
}

func insertEntry(e audit.Entry, before string) string {
	return fmt.Sprintf("INSERT INTO audit_chain (seq, lane, idx, time, body, hash) VALUES (%d, %s, %d, %d, %s, %s)", e.Seq, quote(e.Lane), e.Idx, e.Time, quote(e.Body), quote(audit.HashOf(before, &e)))
}

// copyOf inserts a copy of a row with other keys.
func copyOf(table *audit.Table, _ []string, where string) string {
	var values []string
	for _, column := range table.Columns {
		switch column {
		case "seq", "idx":
			values = append(values, column+" + 1000000")
		case "id":
			values = append(values, "id || 'x'")
		default:
			values = append(values, column)
		}
	}
	return "INSERT INTO " + table.Name + " (" + strings.Join(table.Columns, ", ") + ") SELECT " + strings.Join(values, ", ") + " FROM " + table.Name + " WHERE " + where
}

// swap exchanges the places of two rows.
func swap(table *audit.Table, a, b []string) []string {
	keys := keysOf(table)
	last := keys[len(keys)-1]
	value := func(row []string) (text string) {
		for c, column := range table.Columns {
			if column == last {
				text = row[c]
			}
		}
		return text
	}
	if table.Name == audit.Hooks.Name && a[0] != b[0] { // two lists: exchange the names
		return []string{"UPDATE run_hooks SET list = " + quote(b[0]) + ", idx = 1000 WHERE " + rowIs(table, a)}
	}
	other := "'swapped'"
	if isNumber(last) {
		other = "-5"
	}
	update := "UPDATE " + table.Name + " SET " + last + " = "
	free := append([]string(nil), a...)
	for c, column := range table.Columns {
		if column == last {
			free[c] = strings.Trim(other, "'")
		}
	}
	return []string{update + other + " WHERE " + rowIs(table, a), update + quote(value(a)) + " WHERE " + rowIs(table, b), update + quote(value(b)) + " WHERE " + rowIs(table, free)}
}

// Anchors asserts that a chain which was made anew does not have the anchors of before, and
// that the removal of the last entries with their rows is found by an anchor.
func (b *AuditBackend) Anchors(t *testing.T) {
	s := b.Open(t, nil).(auditStore)
	if _, err := s.AnchorAudit(t.Context()); !errors.Is(err, audit.ErrEmpty) {
		t.Errorf("the anchor of an empty chain: %v, want ErrEmpty", err)
	}
	b.fill(t, s)
	ctx, raw := t.Context(), b.Raw(t, s)
	anchor, err := s.AnchorAudit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	AppendRuns(t, s, Run("later", hook.Completed))
	if v, err := s.VerifyAudit(ctx, []audit.Anchor{anchor}); err != nil || len(v.Problems) > 0 {
		t.Fatalf("verify with an anchor: %+v, %v", v, err)
	}
	for _, wrong := range []audit.Anchor{{Seq: anchor.Seq, Hash: strings.Repeat("0", 64)}, {Seq: 1 << 40, Hash: anchor.Hash}} {
		if v, err := s.VerifyAudit(ctx, []audit.Anchor{wrong}); err != nil || len(v.Problems) != 1 {
			t.Errorf("verify with the wrong anchor %s: %+v, %v: want one problem", wrong, v, err)
		}
	}
	// Somebody removes everything: nothing is left that could contradict it, but the anchor.
	for _, table := range []string{"runs", "run_hooks", "approval_words", "approvals", "sessions", "audit_chain"} {
		if _, err := raw.ExecContext(ctx, "DELETE FROM "+table); err != nil { //nolint:gosec // the names are those above
			t.Fatal(err)
		}
	}
	if v, err := s.VerifyAudit(ctx, []audit.Anchor{anchor}); err != nil || len(v.Problems) == 0 {
		t.Errorf("verify of an emptied store with an anchor: %+v, %v: want a problem", v, err)
	}
}

// Exports asserts that an export can be checked without the store, and that a changed export
// is refused.
func (b *AuditBackend) Exports(t *testing.T) {
	s := b.Open(t, nil).(auditStore)
	b.fill(t, s)
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	stranger, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := audit.Export(t.Context(), s, &out, private); err != nil {
		t.Fatal(err)
	}
	v, err := audit.VerifyExport(t.Context(), bytes.NewReader(out.Bytes()), public, nil)
	if err != nil || len(v.Problems) > 0 || v.Runs < 4 || v.Approvals != 2 {
		t.Errorf("the export: %+v, %v", v, err)
	}
	if strings.Contains(out.String(), "it deletes") || strings.Contains(out.String(), "git *") {
		t.Error("the export has texts that can quote the conversation")
	}
	if _, err := audit.VerifyExport(t.Context(), bytes.NewReader(bytes.TrimSpace(out.Bytes())), public, nil); err != nil {
		t.Errorf("without the last end of line: %v", err)
	}
	for _, more := range []string{"{}\n", "\n", "more"} {
		if _, err := audit.VerifyExport(t.Context(), strings.NewReader(out.String()+more), public, nil); err == nil {
			t.Errorf("an export with %q behind the signature is accepted", more)
		}
		if _, err := audit.VerifyExport(t.Context(), strings.NewReader(strings.TrimSpace(out.String())+" "+strings.TrimSpace(more)+"x\n"), public, nil); err == nil {
			t.Errorf("an export with %q in the line of the signature is accepted", more)
		}
	}
	if _, err := audit.VerifyExport(t.Context(), bytes.NewReader(out.Bytes()), stranger, nil); !errors.Is(err, audit.ErrSignature) {
		t.Errorf("with another key: %v, want ErrSignature", err)
	}
	for _, at := range []int{10, out.Len() / 2, out.Len() - 10} {
		changed := bytes.Clone(out.Bytes())
		changed[at] ^= 1
		if _, err := audit.VerifyExport(t.Context(), bytes.NewReader(changed), public, nil); err == nil {
			t.Errorf("an export with another byte at %d of %d is accepted", at, out.Len())
		}
	}
	if _, err := audit.VerifyExport(t.Context(), bytes.NewReader(out.Bytes()[:out.Len()/2]), public, nil); err == nil {
		t.Error("half an export is accepted")
	}
}
