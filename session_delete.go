package belay

import (
	"context"
	"errors"
	"fmt"

	"github.com/belay-run/belay/internal/spill"
)

// DeleteSession removes a session and the sessions of its subagents. It removes everything
// that [ManageStore.Delete] removes, the files of long results in Options.SpillDir, and what
// each [ForgetExtension] keeps. It does not remove memories: see package memory. If this agent has the session open and
// idle, DeleteSession closes the session first.
//
// The error is ErrBusy if this agent is running a turn of the session, ErrHeld if another
// process or agent uses the session, and ErrNotFound if the session does not exist.
func (a *Agent) DeleteSession(ctx context.Context, id string) error {
	store, ok := a.store.(ManageStore)
	if !ok {
		return fmt.Errorf("delete session %q: %w", id, errNoManageStore)
	}
	if err := a.closeIdle(ctx, id); err != nil {
		return fmt.Errorf("delete session %q: %w", id, err)
	}
	err := store.Delete(ctx, id)
	if err != nil && !errors.Is(err, ErrNotFound) { // an earlier attempt may have left files
		return err
	}
	for _, x := range a.composed.Load().extensions {
		f, ok := x.Extension.(ForgetExtension)
		if !ok {
			continue
		}
		if left := f.ForgetSession(ctx, id); left != nil {
			err = errors.Join(err, fmt.Errorf("delete session %q: the session was removed from the store, but not all that extension %s keeps: %w", id, f.Name(), left))
		}
	}
	a.mu.Lock()
	dir := a.opts.SpillDir
	a.mu.Unlock()
	if dir == "" {
		return err
	}
	if left := spill.Remove(dir, id); left != nil {
		return errors.Join(err, fmt.Errorf("delete session %q: the session was removed from the store, but its files could not be removed: %w", id, left))
	}
	return err
}

// closeIdle closes the session if this agent has it open. It returns ErrBusy if a turn is
// running.
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
