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
	if _, err := q.DeleteRuns(ctx, session); err != nil {
		return err
	}
	return q.DeleteSession(ctx, session) // foreign keys remove the rows that refer to the session
}
