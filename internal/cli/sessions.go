package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/spf13/cobra"
)

// listed is a session in the form of `belay sessions --json`.
type listed struct {
	ID      string      `json:"id"`
	Title   string      `json:"title"`
	State   string      `json:"state"`
	Turns   int         `json:"turns"`
	Last    int64       `json:"messages"`
	Created time.Time   `json:"created"`
	Changed time.Time   `json:"changed"`
	Usage   belay.Usage `json:"usage"`
	// ForkedFrom is the session that it was forked from.
	ForkedFrom *belay.ForkPoint `json:"forked_from,omitempty"`
	// Ending is why the last turn ended.
	Ending *belay.Ending `json:"ending,omitempty"`
}

func (a *app) sessionsCommand() *cobra.Command {
	var asJSON, open bool
	var limit int
	var children bool
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the sessions, the last changed first",
		Long: `Lists the sessions of the project's store: id, state, turns, cost, when it changed, and its first words.
The state is running, parked or interrupted while a turn is open, waiting if the first turn has not begun, and otherwise how the
last one ended.`,
		Example: `  belay sessions
  belay sessions --open
  belay sessions --json --limit 1`,
		Args: arguments(0, 0, "sessions takes none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := a.look(cmd.Context(), func(store assembly.Store) error {
				return a.sessions(cmd.Context(), store, &sessionsShown{open, children, limit}, asJSON)
			})
			if none := (*noStoreError)(nil); errors.As(err, &none) {
				a.remarkf("%s", none)
				return nil
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "only those with a turn that is running, parked or interrupted")
	cmd.Flags().BoolVar(&children, "children", false, "include those of subagents")
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "list so many; 0 for all")
	jsonFlag(cmd, &asJSON, "print one JSON object a line")
	return cmd
}

// sessionsShown selects what is listed.
type sessionsShown struct {
	open, children bool
	limit          int
}

func (a *app) sessions(ctx context.Context, store assembly.Store, shown *sessionsShown, asJSON bool) error {
	out := a.newList(asJSON, "SESSION", "STATE", "TURNS", "COST", "CHANGED", "TITLE")
	now := time.Now()
	count := 0
	for info, err := range store.Sessions(ctx, belay.SessionFilter{Open: shown.open}) {
		if err != nil {
			return err
		}
		if isChild(info.ID) && !shown.children {
			continue
		}
		if count++; shown.limit > 0 && count > shown.limit {
			break
		}
		l := listed{
			ID: info.ID, Title: titleOf(ctx, store, info.ID), State: stateOf(info), Turns: info.State.Turns, Last: info.Last,
			Created: info.Created, Changed: info.Changed, Usage: info.State.Spent(), ForkedFrom: info.State.ForkedFrom, Ending: info.State.Ending,
		}
		if info.Last == 0 && info.State.Turn == nil {
			queued, err := store.Queued(ctx, info.ID)
			if err != nil {
				return err
			}
			if len(queued) > 0 {
				l.State, l.Title = "waiting", queued[0].Text
			}
		}
		out.add(l, l.ID, a.dressState(l.State), fmt.Sprint(l.Turns), dollars(l.Usage.Cost), a.onOut.dim(ago(now, l.Changed)), short(oneLine(l.Title), max(a.width-60, 20)))
	}
	return out.end("no sessions")
}

// titleOf returns the user's first text in a session.
func titleOf(ctx context.Context, store belay.Store, id string) string {
	for m, err := range store.Read(ctx, id, 0) {
		if err != nil {
			return ""
		}
		if m.Kind == belay.KindUser && m.PreModifiedText != nil {
			return *m.PreModifiedText
		}
		if m.Kind == belay.KindUser {
			return m.Text()
		}
	}
	return ""
}

// stateOf returns the state of a session, in one word.
func stateOf(info belay.SessionInfo) string {
	switch turn := info.State.Turn; {
	case turn == nil && info.State.Last == belay.EndTurn:
		return "done"
	case turn == nil:
		return cmp.Or(string(info.State.Last), "new")
	case turn.Parked:
		return "parked"
	case info.Held:
		return "running"
	default:
		return "interrupted"
	}
}

func (a *app) dressState(state string) string {
	switch state {
	case "done", "new":
		return a.onOut.dim(state)
	case "running":
		return a.onOut.green(state)
	case "error":
		return a.onOut.red(state)
	default:
		return a.onOut.yellow(state)
	}
}
