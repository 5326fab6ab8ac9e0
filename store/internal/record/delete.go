package record

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/table"
)

// Deletion removes a session and the sessions of its subagents. The store sets the
// functions.
type Deletion struct {
	// Alive returns an error that wraps belay.ErrHeld if the holder is alive, and nil if
	// the holder is gone.
	Alive func(ctx context.Context, holder string) error
	// Jobs removes the jobs of a session from the queue. It returns false if one of the
	// jobs is running. Delete then fails, and the caller rolls back.
	Jobs func(ctx context.Context, session string) (bool, error)
	// Removed gets what was removed with a session.
	Removed func(Removed)
}

// Removed is what was removed with a session: the positions of its rows of runs, and the ids
// of its approvals. Session is "" if the runs belong to no session.
type Removed struct {
	Session   string
	Runs      []int64
	Approvals []string
	// Records counts the runs in the rows.
	Records int64
}

// RemovedRow is a removed row of runs: its position, and how many further runs it had.
type RemovedRow = table.DeleteRunsRow

// Add adds removed rows of runs.
func (r *Removed) Add(rows ...RemovedRow) {
	for _, row := range rows {
		r.Runs = append(r.Runs, row.Seq)
		r.Records += 1 + row.More
	}
}

// Remove removes a session with its runs. Foreign keys remove the rows that refer to the
// session.
func Remove(ctx context.Context, q *table.Queries, session string) (Removed, error) {
	removed := Removed{Session: session}
	approvals, err := q.ApprovalIDs(ctx, session)
	if err != nil {
		return removed, err
	}
	removed.Approvals = approvals
	rows, err := q.DeleteRuns(ctx, session)
	if err != nil {
		return removed, err
	}
	removed.Add(rows...)
	return removed, q.DeleteSession(ctx, session)
}

// Delete removes a session and the sessions of its subagents. If a dead holder still has
// one of them, Delete removes nothing and returns that holder. The caller must clean up
// after the holder and call Delete again.
func (d *Deletion) Delete(ctx context.Context, q *table.Queries, session string) (left string, err error) {
	found, err := q.LockFamily(ctx, table.LockFamilyParams{ID: session, First: session + "/", Until: session + "0"})
	switch {
	case err != nil:
		return "", err
	case found == 0:
		return "", belay.ErrNotFound
	}
	family, err := q.FamilyOf(ctx, table.FamilyOfParams{ID: session, First: session + "/", Until: session + "0"})
	if err != nil {
		return "", err
	}
	for _, member := range family {
		holders, err := q.BusyWith(ctx, member.ID)
		if err != nil {
			return "", err
		}
		for _, holder := range append(holders, member.Holder) {
			if holder == "" {
				continue
			}
			if err := d.Alive(ctx, holder); err != nil {
				return "", fmt.Errorf("session %q: %w", member.ID, err)
			}
			return holder, nil
		}
	}
	for _, member := range family {
		if err := d.remove(ctx, q, member.ID); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (d *Deletion) remove(ctx context.Context, q *table.Queries, session string) error {
	removed, err := d.Jobs(ctx, session)
	switch {
	case err != nil:
		return err
	case !removed:
		return fmt.Errorf("session %q: %w: a background job of the session is running", session, belay.ErrHeld)
	}
	if err := q.DeleteJobInputsOf(ctx, session); err != nil {
		return err
	}
	if err := q.FreeKeysOf(ctx, session); err != nil {
		return err
	}
	if err := q.ForgetSessionOfKeys(ctx, session); err != nil {
		return err
	}
	gone, err := Remove(ctx, q, session)
	if err == nil {
		d.Removed(gone)
	}
	return err
}
