package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/serve/api"
	"github.com/spf13/cobra"
)

func (a *app) renameSessionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rename SESSION TITLE",
		Short: "Give a session a title",
		Long: `Gives a session a title, which listings show instead of its first words. The id stays the same. An empty TITLE removes the
title. You can rename a session while it is in use.`,
		Example: `  belay sessions rename 20261115-k3f9x "The refund"
  belay sessions rename 20261115-k3f9x ""`,
		Args:              arguments(2, 2, "name the SESSION and its new TITLE, in quotes"),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.describe(cmd.Context(), args[0], api.UpdateSession{Title: &args[1]})
		},
	}
}

func (a *app) labelSessionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "label SESSION NAME=VALUE…",
		Short: "Set or remove labels of a session",
		Long: `Sets labels of a session, by which "belay sessions --label" finds it. NAME= removes a label. The other labels stay.
You can set labels while the session is in use.`,
		Example: `  belay sessions label 20261115-k3f9x user=ann team=red
  belay sessions label 20261115-k3f9x team=`,
		Args:              arguments(2, 33, "name the SESSION and its labels, as NAME=VALUE"),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			labels, err := labelsOf("", args[1:], true)
			if err != nil {
				return err
			}
			return a.describe(cmd.Context(), args[0], api.UpdateSession{Labels: labels})
		},
	}
}

// describe changes the title or labels of a session.
func (a *app) describe(ctx context.Context, word string, update api.UpdateSession) error {
	return a.records(ctx, func(r records) error {
		found, err := findRecord(ctx, r, word)
		if err != nil {
			return err
		}
		update.Session = found.ID
		return r.Update(ctx, update)
	})
}

func (a *app) deleteSessionCommand() *cobra.Command {
	var memories bool
	cmd := &cobra.Command{
		Use:   "delete SESSION",
		Short: "Delete a session with everything it left",
		Long: `Deletes a session and the sessions of its subagents: messages, calls, approvals, grants, queued turns, labels, records of hooks,
waiting jobs, and the files of long results. With --memories, also deletes the memories from these sessions. A parked or interrupted
turn is deleted too. A session that is in use is not deleted. This cannot be undone.`,
		Example: `  belay sessions delete 20261115-k3f9x
  belay sessions delete 20261115-k3f9x --memories`,
		Args:              arguments(1, 1, "name the SESSION to delete, with its whole id: `belay sessions` lists them"),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.records(cmd.Context(), func(r records) error {
				return a.deleteSession(cmd.Context(), r, args[0], memories)
			})
		},
	}
	cmd.Flags().BoolVar(&memories, "memories", false, "also forget the memories from this session")
	return cmd
}

// deleteSession deletes a session and its files. If memories is true, it also forgets what
// was remembered from the session.
func (a *app) deleteSession(ctx context.Context, r records, id string, memories bool) error {
	if _, remote := r.(*serverRecords); remote && memories {
		return usage("--memories works only on the machine that has the memories: leave it out, or run the command there")
	}
	found, err := findRecord(ctx, r, id)
	switch {
	case err != nil:
		return err
	case found.ID != id: // do not guess: deletion cannot be undone
		return usage("to delete session %s, give its whole id", found.ID)
	}
	family, err := familyOf(ctx, r, id)
	if err != nil {
		return err
	}
	if err := r.Delete(ctx, id); err != nil {
		if errors.Is(err, belay.ErrHeld) {
			return fmt.Errorf("%w: end the process that uses the session, or wait until its turn ends", err)
		}
		return err
	}
	forgotten := 0
	if memories {
		if forgotten, err = a.forgetSessions(ctx, family); err != nil {
			return fmt.Errorf("the session is deleted, but its memories are not all forgotten: %w", err)
		}
	}
	text := "deleted session " + id
	if n := len(family) - 1; n > 0 {
		text += fmt.Sprintf("; sessions of subagents deleted: %d", n)
	}
	if memories {
		text += fmt.Sprintf("; memories forgotten: %d", forgotten)
	}
	a.remarkf("%s", text)
	return nil
}

// familyOf returns the ids of a session and of its subagents' sessions.
func familyOf(ctx context.Context, r records, id string) ([]string, error) {
	ids := []string{id}
	for s, err := range r.Sessions(ctx, belay.SessionFilter{Prefix: id + "/"}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, s.ID)
	}
	return ids, nil
}

// forgetSessions forgets the memories of these sessions. It returns how many there were.
func (a *app) forgetSessions(ctx context.Context, sessions []string) (count int, err error) {
	err = a.memories(ctx, func(_ *config.Loaded, store *memory.Store) error {
		for _, session := range sessions {
			var ids []string
			for m, err := range store.List(ctx, memory.Filter{Session: session, States: []memory.State{memory.Active, memory.Proposed}}) {
				if err != nil {
					return err
				}
				ids = append(ids, m.ID)
			}
			for _, id := range ids {
				if _, err := store.Forget(ctx, id); err != nil {
					return err
				}
				count++
			}
		}
		return nil
	})
	if none := (*noMemoriesError)(nil); errors.As(err, &none) {
		return 0, nil
	}
	return count, err
}
