package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/table"
)

// commit is a belay.Commit in the form of rows, made before its turn to write
// comes: nothing of the caller's is looked at later.
type commit struct {
	move      table.MoveSessionParams
	last      int64 // what the last message will be, 0 if there is none to add
	messages  []table.AddMessageParams
	calls     []table.PutCallParams
	approvals []approvalRows
	runs      []table.PutRunParams
	jobs      []hook.Job
}

// Commit writes all of c or nothing, durably: it returns when the disk has it.
func (s *Store) Commit(ctx context.Context, c *belay.Commit) error {
	rows, err := s.rows(c)
	if err == nil {
		err = s.submit(ctx, func(ctx context.Context, w *writing) error { return s.put(ctx, w, rows) })
	}
	if err != nil {
		return fmt.Errorf("commit to session %q with epoch %d: %w", c.Session, c.Epoch, err)
	}
	s.committer.commits.Add(1)
	return nil
}

// rows encodes a commit.
func (s *Store) rows(c *belay.Commit) (*commit, error) {
	rows := &commit{
		move: table.MoveSessionParams{ID: c.Session, Epoch: c.Epoch, Holder: s.id, Changed: nanos(s.now()), Added: int64(len(c.Messages))},
		jobs: slices.Clone(c.Jobs),
	}
	if err := rows.encodeState(c.State); err != nil {
		return nil, err
	}
	if err := rows.encodeMessages(c); err != nil {
		return nil, err
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
	}
	var err error
	rows.runs, err = runRows(s.id, c.Runs)
	return rows, err
}

func (rows *commit) encodeState(state *belay.SessionState) error {
	if state == nil {
		return nil
	}
	text, err := encode(state)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	rows.move.HasState, rows.move.State = 1, text
	switch {
	case state.Turn == nil:
	case state.Turn.Parked:
		rows.move.TurnState = turnParked
	default:
		rows.move.TurnState = turnOpen
	}
	return nil
}

// What sessions.turn_state says of a turn that has not ended.
const (
	turnOpen   = "open"
	turnParked = "parked"
)

func (rows *commit) encodeMessages(c *belay.Commit) error {
	if len(c.Messages) == 0 {
		return nil
	}
	rows.messages = make([]table.AddMessageParams, len(c.Messages))
	for i, m := range c.Messages {
		if rows.last++; i == 0 {
			rows.last = m.Seq
		} else if m.Seq != rows.last {
			return fmt.Errorf("message %d comes where %d is the next: %w", m.Seq, rows.last, belay.ErrConflict)
		}
		body, err := encode(m)
		if err != nil {
			return fmt.Errorf("message %d: %w", m.Seq, err)
		}
		rows.messages[i] = table.AddMessageParams{Session: c.Session, Seq: m.Seq, Body: body}
		if m.Kind == belay.KindAssistant {
			rows.move.Response = m.Seq
		}
		if m.IsCompaction {
			rows.move.Compaction, rows.move.Keep = m.Seq, m.Keep
		}
	}
	return nil
}

// put writes a commit. What it is refused for undoes all of it.
func (s *Store) put(ctx context.Context, w *writing, rows *commit) error {
	session, err := w.MoveSession(ctx, rows.move)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return belay.ErrFenced
	case err != nil:
		return err
	case len(rows.messages) > 0 && session.Last != rows.last:
		first, next := rows.messages[0].Seq, session.Last-rows.move.Added+1
		return fmt.Errorf("message %d comes where %d is the next: %w", first, next, belay.ErrConflict)
	}
	for i := range rows.messages {
		if err := w.AddMessage(ctx, rows.messages[i]); err != nil {
			return err
		}
	}
	for i := range rows.calls {
		if at := rows.calls[i].Message; at < 1 || at > session.Last {
			return fmt.Errorf("call %q is of message %d and the last one is %d: %w", rows.calls[i].ID, at, session.Last, belay.ErrConflict)
		}
		if err := w.PutCall(ctx, rows.calls[i]); err != nil {
			return err
		}
	}
	for i := range rows.approvals {
		rows.approvals[i].approval.Response = session.Response
		if err := w.ask(ctx, rows.move.ID, rows.approvals[i]); err != nil {
			return err
		}
	}
	if err := w.appendRuns(ctx, rows.runs); err != nil {
		return err
	}
	return s.insertJobs(ctx, w, rows.jobs)
}
