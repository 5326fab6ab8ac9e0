package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/toolbox"
)

// rewindOptions are the flags of belay rewind.
type rewindOptions struct {
	at        int64
	as        string
	yes       bool
	files     bool
	messages  bool
	overwrite bool
	json      bool
}

func (a *app) rewindCommand() *cobra.Command {
	var o rewindOptions
	cmd := &cobra.Command{
		Use:   "rewind SESSION",
		Short: "Go back to an earlier message, with the files as they were",
		Long: `Brings back the files as they were after a message of a session, and makes a new session that continues from there. --at N names
the last message that stays; "belay show SESSION" prints the number of each message. Without --at it lists the messages of the user.
The command shows what would change; --yes changes it. Files that somebody else has changed are left as they are, unless --overwrite
is set. To undo a rewind, rewind the old session to its last message.`,
		Example: `  # to which messages can I go back?
  belay rewind 20261115-k3f9x
  # what would change? Then change it
  belay rewind 20261115-k3f9x --at 4
  belay rewind 20261115-k3f9x --at 4 --yes`,
		Args:              arguments(1, 1, "name the SESSION to rewind: `belay sessions` lists them"),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen := cmd.Flags().Changed("at")
			if chosen && o.at < 0 {
				return usage("--at: messages are counted from 1; 0 stands for the time before the first")
			}
			if !chosen && o.yes {
				return usage("--yes needs --at, the number of the last message that stays")
			}
			return a.look(cmd.Context(), func(store assembly.Store) error {
				if !chosen {
					return a.listRewinds(cmd.Context(), store, args[0], &o)
				}
				return a.rewind(cmd.Context(), store, args[0], &o)
			})
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&o.at, "at", 0, "the last message that stays; 0 for none")
	flags.BoolVarP(&o.yes, "yes", "y", false, "make the changes; without it they are only shown")
	flags.StringVar(&o.as, "as", "", "give the new session this id")
	flags.BoolVar(&o.files, "files", false, "change only the files: the session keeps its messages")
	flags.BoolVar(&o.messages, "messages", false, "go back in the conversation only: the files stay as they are")
	flags.BoolVar(&o.overwrite, "overwrite", false, "also change files that somebody else has changed")
	jsonFlag(cmd, &o.json, "print what would change as JSON lines")
	exclusive(cmd, "files", "messages")
	exclusive(cmd, "files", "as")
	return cmd
}

// rewindPoint is a message of the user, in a list.
type rewindPoint struct {
	// At is the number for --at, with which this message is the first one that goes.
	At      int64     `json:"at"`
	Message int64     `json:"message"`
	Time    time.Time `json:"time"`
	Text    string    `json:"text"`
	Files   int       `json:"files"`
}

// listRewinds lists the messages of the user, and how many files a rewind to before each
// would change.
func (a *app) listRewinds(ctx context.Context, store assembly.Store, word string, o *rewindOptions) error {
	found, snapshots, err := a.toRewind(ctx, store, word)
	if err != nil {
		return err
	}
	var points []rewindPoint
	for m, err := range store.Read(ctx, found.ID, 0) {
		if err != nil {
			return err
		}
		if m.Kind != belay.KindUser {
			continue
		}
		plan, err := snapshots.Plan(ctx, store, found.ID, m.Seq-1)
		if err != nil {
			return err
		}
		points = append(points, rewindPoint{At: m.Seq - 1, Message: m.Seq, Time: m.Time, Text: m.Text(), Files: len(plan.Files)})
	}
	if o.json {
		return printAll(a, points)
	}
	if len(points) == 0 {
		a.remarkf("session %s has no messages yet", found.ID)
		return nil
	}
	for _, p := range points {
		files := "changes no file"
		if p.Files > 0 {
			files = "changes " + visible.Counted(p.Files, "file")
		}
		if _, err := fmt.Fprintf(a.out, "--at %-4d %-17s before %q\n", p.At, files, short(oneLine(p.Text), 80)); err != nil {
			return err
		}
	}
	return nil
}

// toRewind finds the session and its snapshots.
func (a *app) toRewind(ctx context.Context, store assembly.Store, word string) (belay.SessionInfo, *toolbox.Snapshots, error) {
	settings, err := a.settings()
	if err != nil {
		return belay.SessionInfo{}, nil, err
	}
	found, err := findSession(ctx, store, word)
	return found, a.assembler().OpenSnapshots(settings), err
}

// rewind shows what a rewind would change, and makes the changes with --yes.
func (a *app) rewind(ctx context.Context, store assembly.Store, word string, o *rewindOptions) error {
	found, snapshots, err := a.toRewind(ctx, store, word)
	if err != nil {
		return err
	}
	plan, err := snapshots.Plan(ctx, store, found.ID, o.at)
	if errors.Is(err, belay.ErrNotFound) {
		return fmt.Errorf("session %s has no message %d: its last message is %d", found.ID, o.at, found.Last)
	}
	if err != nil {
		return err
	}
	if o.messages {
		plan.Files, plan.Incomplete = nil, ""
	}
	if err := a.showRewind(plan, o); err != nil {
		return err
	}
	if !o.yes {
		a.remarkf("%s", a.onErr.dim("nothing was changed: add --yes to make the changes"))
		return nil
	}
	if o.as == "" {
		o.as = inspect.NewSessionID(time.Now())
	}
	if err := a.free(ctx, store, o.as); err != nil {
		return err
	}
	agent, err := belay.New(scripted.New(nil, nil), &belay.Options{Store: store}) // a rewind needs no model
	if err != nil {
		return err
	}
	defer func() { _ = agent.Close(context.WithoutCancel(ctx)) }() // ignore errors: everything is stored
	session, err := snapshots.Rewind(ctx, agent, plan, &toolbox.RewindOptions{As: o.as, KeepFiles: o.messages, KeepMessages: o.files, Overwrite: o.overwrite})
	if session == nil {
		return err
	}
	if _, printed := fmt.Fprintln(a.out, session.ID()); printed != nil {
		return printed
	}
	if err != nil {
		return err
	}
	a.remarkf("%s", a.onErr.dim(fmt.Sprintf("to continue: belay run --session %s \"…\"; to undo: belay rewind %s --at %d --yes", session.ID(), found.ID, plan.Last)))
	return nil
}

// showRewind prints what a rewind would change.
func (a *app) showRewind(plan *toolbox.Rewind, o *rewindOptions) error {
	if plan.Incomplete != "" {
		a.warn(plan.Incomplete)
	}
	if o.json {
		type line struct {
			Path     string `json:"path"`
			Action   string `json:"action"`
			Added    int    `json:"added"`
			Removed  int    `json:"removed"`
			Conflict string `json:"conflict,omitempty"`
			Lost     string `json:"lost,omitempty"`
			Diff     string `json:"diff,omitempty"`
		}
		var lines []line
		for _, f := range plan.Files {
			lines = append(lines, line{f.Path, f.Action, f.Added, f.Removed, f.Conflict, f.Lost, f.Diff})
		}
		return printAll(a, lines)
	}
	if len(plan.Files) == 0 && !o.messages {
		a.remarkf("no file changes")
	}
	for _, f := range plan.Files {
		what := f.Action
		switch {
		case f.Lost != "":
			what = "cannot restore"
		case f.Conflict != "" && !o.overwrite:
			what = "leave"
		}
		a.remarkf("%s %s (+%d -%d)", what, visible.All(f.Name), f.Added, f.Removed)
		if why := f.Lost; why != "" {
			a.warn(visible.All(f.Name) + ": " + why)
		} else if f.Conflict != "" {
			a.warn(visible.All(f.Name) + ": " + f.Conflict)
		}
		if f.Diff != "" && !o.yes {
			if _, err := fmt.Fprint(a.out, visible.Clean(f.Diff)); err != nil {
				return err
			}
		}
	}
	return nil
}
