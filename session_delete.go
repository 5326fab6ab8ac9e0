package belay

import (
	"context"
	"errors"
	"fmt"

	"github.com/belay-run/belay/internal/spill"
)

// DeleteSession removes a session with everything that it left: what [ManageStore.Delete]
// removes, and the files of long results in Options.SpillDir. The sessions of its subagents
// are removed too. Memories are not: see package memory. If this agent has the session open
// and idle, it is closed first. ErrBusy: this agent is running a turn of it. ErrHeld:
// another process or agent uses it. ErrNotFound: there is no such session.
func (a *Agent) DeleteSession(ctx context.Context, id string) error {
	store, ok := a.store.(ManageStore)
	if !ok {
		return fmt.Errorf("delete session %q: %w", id, errNoManageStore)
	}
	if err := a.closeIdle(ctx, id); err != nil {
		return fmt.Errorf("delete session %q: %w", id, err)
	}
	err := store.Delete(ctx, id)
	if err != nil && !errors.Is(err, ErrNotFound) { // files may be left of an earlier attempt
		return err
	}
	a.mu.Lock()
	dir := a.opts.SpillDir
	a.mu.Unlock()
	if dir == "" {
		return err
	}
	if left := spill.Remove(dir, id); left != nil {
		return errors.Join(err, fmt.Errorf("delete session %q: it is removed from the store, but its files are not: %w", id, left))
	}
	return err
}

// closeIdle closes a session that this agent has open, unless it runs a turn.
func (a *Agent) closeIdle(ctx context.Context, id string) error {
	a.mu.Lock()
	s := a.sessions[id]
	a.mu.Unlock()
	if s == nil {
		return nil
	}
	select {
	case s.slot <- struct{}{}:
		<-s.slot
	default:
		return ErrBusy
	}
	return s.Close(ctx)
}
