package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/spf13/cobra"
)

func (a *app) sessionsCommand() *cobra.Command {
	var asJSON bool
	var shown sessionsShown
	var labels []string
	cmd := parent(&cobra.Command{
		Use:   "sessions",
		Short: "List, rename, label and delete sessions",
		Long: `Lists the sessions of the project's store, the last changed first: id, state, turns, cost, when it changed, and its title.
If a session has no title, its first message is shown instead.
While a turn is open, the state is running, parked or interrupted. If the first turn has not begun, it is waiting. Otherwise the
state shows how the last turn ended. If there are more sessions than --limit, the command to list the next page is printed.`,
		Example: `  belay sessions
  belay sessions --open
  belay sessions --label user=ann --limit 50
  belay sessions --json --limit 1
  belay sessions rename 20261115-k3f9x "The refund"
  belay sessions delete 20261115-k3f9x`,
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if shown.labels, err = labelsOf("--label: ", labels, false); err != nil {
			return err
		}
		err = a.records(cmd.Context(), func(r records) error {
			return a.sessions(cmd.Context(), r, &shown, asJSON)
		})
		if none := (*noStoreError)(nil); errors.As(err, &none) {
			a.remarkf("%s", none)
			return nil
		}
		if errors.Is(err, belay.ErrCursor) {
			return usage("--after: the cursor is invalid: use one that `belay sessions` printed")
		}
		return err
	}
	cmd.Flags().BoolVar(&shown.open, "open", false, "only sessions with a turn that is running, parked or interrupted")
	cmd.Flags().BoolVar(&shown.children, "children", false, "include sessions of subagents")
	cmd.Flags().StringArrayVarP(&labels, "label", "l", nil, "only sessions with this label, as NAME=VALUE; may be repeated")
	cmd.Flags().IntVarP(&shown.limit, "limit", "n", 20, "list at most this many; 0 for all")
	cmd.Flags().StringVar(&shown.after, "after", "", "list the sessions after this cursor; the previous page printed it")
	jsonFlag(cmd, &asJSON, "print one JSON object per line")
	cmd.AddCommand(a.renameSessionCommand(), a.labelSessionCommand(), a.deleteSessionCommand())
	return cmd
}

// labelsOf parses labels of the form NAME=VALUE. where is the prefix of its errors.
func labelsOf(where string, words []string, canRemove bool) (map[string]string, error) {
	labels := make(map[string]string, len(words))
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" || value == "" && !canRemove {
			return nil, usage("%s%q is not NAME=VALUE", where, word)
		}
		labels[name] = value
	}
	return labels, nil
}

// sessionsShown selects the sessions to list.
type sessionsShown struct {
	open, children bool
	labels         map[string]string
	limit          int
	after          string
}

func (a *app) sessions(ctx context.Context, r records, shown *sessionsShown, asJSON bool) error {
	out := a.newList(asJSON, "SESSION", "STATE", "TURNS", "COST", "CHANGED", "TITLE")
	now := time.Now()
	count, last := 0, ""
	for l, err := range r.Sessions(ctx, belay.SessionFilter{Open: shown.open, Labels: shown.labels, After: shown.after}) {
		if err != nil {
			return err
		}
		if inspect.IsChild(l.ID) && !shown.children {
			continue
		}
		if count++; shown.limit > 0 && count > shown.limit {
			if !asJSON {
				a.remarkf("there are more sessions: to list them, add --after %s", last)
			}
			break
		}
		last = l.Cursor
		out.add(l, l.ID, a.dressState(l.State), fmt.Sprint(l.Turns), dollars(l.Usage.Cost), a.onOut.dim(ago(now, l.Changed)), short(oneLine(l.Title), max(a.width-60, 20)))
	}
	return out.end("no sessions")
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
