package chain

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Lines collects the lines of an entry.
type Lines struct{ text []byte }

// Len returns the length of the text.
func (l *Lines) Len() int { return len(l.text) }

// Cut shortens the text to a length.
func (l *Lines) Cut(n int) { l.text = l.text[:n] }

// Body returns the text.
func (l *Lines) Body() string { return string(l.text) }

func (l *Lines) add(parts ...string) {
	if len(l.text) > 0 {
		l.text = append(l.text, ' ')
	}
	for _, part := range parts {
		l.text = append(l.text, part...)
	}
}

// started is the state of a record that has not ended.
var started = hook.Started.String()

// Run adds the hash of a row of runs.
func (l *Lines) Run(r *table.Run) {
	key := runKey(r)
	if r.State != started {
		key = audit.Final(key)
	}
	l.add(key, "=", runHash(r))
}

// RunFound adds the hash of a row of runs, of which the transaction changes a part.
func (l *Lines) RunFound(r *table.Run) { l.add(audit.Found(runKey(r)), "=", runHash(r)) }

func runKey(r *table.Run) string { return "r" + strconv.FormatInt(r.Seq, 10) }

func runHash(r *table.Run) string {
	return audit.RowHash(
		strconv.FormatInt(r.Seq, 10), r.ID, strconv.FormatInt(r.Changed, 10), r.Holder, r.Subscription, r.JobHandler, r.Version, r.Phase, r.Dispatch,
		r.OriginKind, r.OriginName, r.OriginFile, strconv.FormatInt(r.OriginLine, 10), r.Session, r.Turn, strconv.FormatInt(r.Step, 10), r.Agent,
		r.Execution, r.State, strconv.FormatBool(r.Shadow), r.Visibility, r.Job, strconv.FormatInt(r.Attempt, 10), r.IdempotencyKey,
		strconv.FormatInt(r.Started, 10), strconv.FormatInt(r.Ended, 10), strconv.FormatInt(r.Latency, 10), r.ErrorClass, r.Severity,
		r.Contributed, r.Audit, r.Diagnostics, strconv.FormatInt(r.More, 10), r.Hooks, r.Folded)
}

// Approval adds the hashes of an approval and of its texts.
func (l *Lines) Approval(row *table.ApprovalRow) {
	letters := [...]string{"a", "w"}
	if row.Approval.Decision != "" {
		letters = [...]string{"A", "W"} // see audit.Final
	}
	l.approval(letters, row)
}

// ApprovalFound adds the hashes of an approval and of its texts, of which the transaction changes
// a part.
func (l *Lines) ApprovalFound(row *table.ApprovalRow) {
	l.approval([...]string{audit.Found("a"), audit.Found("w")}, row)
}

func (l *Lines) approval(letters [2]string, row *table.ApprovalRow) {
	a, w := &row.Approval, &row.ApprovalWord
	key := audit.Key(a.ID)
	l.add(letters[0], key, "=", audit.RowHash(a.ID, a.Session, strconv.FormatInt(a.Response, 10), a.Turn, a.CallID, a.Tool, a.Hash, a.AskedBy,
		strconv.FormatBool(a.Floor), strconv.FormatInt(a.Asked, 10), strconv.FormatInt(a.Expires, 10), a.Decision))
	l.add(letters[1], key, "=", audit.RowHash(w.ID, w.Reason, w.Answer, w.Pattern))
}

// Grants adds the hash of a session's grants.
func (l *Lines) Grants(session, hash string) { l.add("g", audit.Key(session), "=", hash) }

// GrantsFound adds the hash of the grants that a session has in the database. A commit changes
// them next.
func (l *Lines) GrantsFound(ctx context.Context, q *table.Queries, session string) error {
	row, err := q.SessionRow(ctx, session)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil // the commit fails
	case err != nil:
		return err
	}
	l.add(audit.Found("g"), audit.Key(session), "=", storedGrants(row.State))
	return nil
}

// Removed says that rows were removed.
func (l *Lines) Removed(r *record.Removed) {
	for _, seq := range r.Runs {
		l.add("-r", strconv.FormatInt(seq, 10))
	}
	for _, id := range r.Approvals {
		key := audit.Key(id)
		l.add("-a", key)
		l.add("-w", key)
	}
	if r.Session != "" {
		l.add("-s", audit.Key(r.Session))
	}
}

// Head adds the hash of an entry of another lane.
func (l *Lines) Head(e *audit.Entry) {
	l.add("c", e.Lane, ":", strconv.FormatInt(e.Idx, 10), "=", e.Hash)
}

// storedGrants returns the hash of the grants in the state of a session.
func storedGrants(text string) string {
	var state struct {
		Grants []belay.Grant `json:"grants"`
	}
	if err := record.Decode(text, &state); err != nil {
		return "unreadable" // no grants have this hash, so Verify reports them
	}
	return GrantsHash(state.Grants)
}

// GrantsHash returns the hash of grants, or "" if there are none.
func GrantsHash(grants []belay.Grant) string {
	if len(grants) == 0 {
		return ""
	}
	text, err := json.Marshal(grants)
	if err != nil {
		return audit.RowHash(err.Error()) // a grant has only texts and times; a time that JSON refuses cannot be stored either
	}
	return audit.RowHash(string(text))
}
