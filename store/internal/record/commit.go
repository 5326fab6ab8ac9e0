package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/table"
)

// Commit is a belay.Commit encoded as rows. NewCommit encodes everything at once, so that
// the write does not read the caller's values.
type Commit struct {
	// Runs and Jobs are not written by Put. The store writes Runs, because the store
	// numbers them. The store's queue writes Jobs.
	Runs []table.PutRunParams
	Jobs []hook.Job
	// Approvals are the ids of the approvals that Put writes.
	Approvals []string
	// State says whether the commit has a state. Grants are the grants in it.
	State  bool
	Grants []belay.Grant
	// Watched is the time until which a watcher wants notifications. Put sets it.
	Watched time.Time

	queued    string // id of the queued turn that begins with this commit, or empty
	move      table.MoveSessionParams
	last      int64                     // number of the last message after the commit, 0 if the commit adds no message
	amended   *table.AmendMessageParams // nil if the commit replaces no message
	messages  []table.AddMessageParams
	usage     []table.AddUsageParams
	calls     []table.PutCallParams
	approvals []approvalRows
}

// NewCommit encodes a commit that a holder makes.
func NewCommit(c *belay.Commit, holder string, now time.Time) (*Commit, error) {
	rows := &Commit{
		move: table.MoveSessionParams{ID: c.Session, Epoch: c.Epoch, Holder: holder, Changed: Nanos(now), Added: int64(len(c.Messages))},
		Jobs: slices.Clone(c.Jobs), queued: c.Queued,
	}
	if err := rows.encodeState(c.State); err != nil {
		return nil, err
	}
	if err := rows.encodeMessages(c); err != nil {
		return nil, err
	}
	if m := c.Amended; m != nil {
		body, err := encode(m)
		if err != nil {
			return nil, fmt.Errorf("amended message %d: %w", m.Seq, err)
		}
		rows.amended = &table.AmendMessageParams{Session: c.Session, Seq: m.Seq, Body: body}
	}
	if len(c.Calls) > 0 {
		rows.calls = make([]table.PutCallParams, len(c.Calls))
	}
	for i := range c.Calls {
		var err error
		if rows.calls[i], err = callRow(c.Session, &c.Calls[i]); err != nil {
			return nil, err
		}
	}
	for i := range c.Approvals {
		row, err := approvalRow(&c.Approvals[i])
		if err != nil {
			return nil, err
		}
		rows.approvals = append(rows.approvals, row)
		rows.Approvals = append(rows.Approvals, row.approval.ID)
	}
	var err error
	rows.Runs, err = RunRows(holder, c.Runs)
	return rows, err
}

// Session returns the id of the session.
func (rows *Commit) Session() string { return rows.move.ID }

func (rows *Commit) encodeState(state *belay.SessionState) error {
	if state == nil {
		return nil
	}
	text, err := encode(state)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	rows.move.HasState, rows.move.State = 1, text
	rows.State, rows.Grants = true, state.Grants
	switch {
	case state.Turn == nil:
	case state.Turn.Parked:
		rows.move.TurnState = turnParked
	default:
		rows.move.TurnState = turnOpen
	}
	return nil
}

// These are the values of sessions.turn_state for a turn that has not ended.
const (
	turnOpen   = "open"
	turnParked = "parked"
)

func (rows *Commit) encodeMessages(c *belay.Commit) error {
	if len(c.Messages) == 0 {
		return nil
	}
	rows.messages = make([]table.AddMessageParams, len(c.Messages))
	for i, m := range c.Messages {
		if rows.last++; i == 0 {
			rows.last = m.Seq
		} else if m.Seq != rows.last {
			return fmt.Errorf("message %d cannot be added, because the next message number is %d: %w", m.Seq, rows.last, belay.ErrConflict)
		}
		body, err := encode(m)
		if err != nil {
			return fmt.Errorf("message %d: %w", m.Seq, err)
		}
		rows.messages[i] = table.AddMessageParams{Session: c.Session, Seq: m.Seq, Body: body}
		if m.Kind == belay.KindAssistant {
			rows.move.Response = m.Seq
		}
		rows.addUsage(c, m)
		if m.IsCompaction {
			rows.move.Compaction, rows.move.Keep = m.Seq, m.Keep
		}
	}
	return nil
}

// Put writes a commit, except its runs and jobs. It returns ErrFenced if the holder no
// longer holds the session with the commit's epoch. Until the transaction ends, no other
// process can take the session. After an error the caller must roll back.
func (rows *Commit) Put(ctx context.Context, q *table.Queries) error {
	session, err := q.MoveSession(ctx, rows.move)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return belay.ErrFenced
	case err != nil:
		return err
	case len(rows.messages) > 0 && session.Last != rows.last:
		first, next := rows.messages[0].Seq, session.Last-rows.move.Added+1
		return fmt.Errorf("message %d cannot be added, because the next message number is %d: %w", first, next, belay.ErrConflict)
	}
	rows.Watched = Moment(session.Watched)
	if rows.queued != "" {
		n, err := q.TakeUpTurn(ctx, table.TakeUpTurnParams{ID: rows.queued, Session: rows.move.ID})
		switch {
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("turn %q is not in the queue: %w", rows.queued, belay.ErrConflict)
		}
	}
	if rows.amended != nil {
		if last := session.Last - rows.move.Added; rows.amended.Seq != last || last == 0 {
			return fmt.Errorf("message %d cannot be replaced, because the last message is %d: %w", rows.amended.Seq, last, belay.ErrConflict)
		}
		if err := q.AmendMessage(ctx, *rows.amended); err != nil {
			return err
		}
	}
	for i := range rows.messages {
		if err := q.AddMessage(ctx, rows.messages[i]); err != nil {
			return err
		}
	}
	for i := range rows.usage {
		if err := q.AddUsage(ctx, rows.usage[i]); err != nil {
			return err
		}
	}
	for i := range rows.calls {
		if at := rows.calls[i].Message; at < 1 || at > session.Last {
			return fmt.Errorf("call %q belongs to message %d, but the last message is %d: %w", rows.calls[i].ID, at, session.Last, belay.ErrConflict)
		}
		if err := q.PutCall(ctx, rows.calls[i]); err != nil {
			return err
		}
	}
	for i := range rows.approvals {
		rows.approvals[i].approval.Response = session.Response
		if err := ask(ctx, q, rows.move.ID, rows.approvals[i]); err != nil {
			return err
		}
	}
	return nil
}

// Late is called when a write would change a run that has already ended. It returns
// hook.ErrSettled if the new run has ended with a different state.
func Late(ctx context.Context, q *table.Queries, row *table.PutRunParams) error {
	stored, err := q.RunState(ctx, row.ID)
	if err != nil {
		return err
	}
	return lateAs(row, stored)
}

// lateAs returns hook.ErrSettled if a run has ended with another state than the stored one.
func lateAs(row *table.PutRunParams, stored string) error {
	if row.State == hook.Started.String() || row.State == stored {
		return nil
	}
	return fmt.Errorf("append: run %s has already ended as %s and cannot become %s: %w", row.ID, stored, row.State, hook.ErrSettled)
}
