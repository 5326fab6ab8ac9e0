package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/store/postgres"
	"github.com/belay-run/belay/store/sqlite"
	"github.com/spf13/cobra"
)

func (a *app) storeCommand() *cobra.Command {
	store := parent(&cobra.Command{
		Use:   "store",
		Short: "Migrate, check, export, back up, prune and vacuum the store of sessions",
		Long: `The store is one SQLite file, .belay/belay.db in the project unless the settings say otherwise. For several machines it is a
PostgreSQL database: store: postgres://… in the user's settings, --store, or BELAY_STORE.`,
		Example: `  belay store check
  belay store export 20261115-k3f9x > session.jsonl
  belay store backup ~/backups/belay.db
  belay store prune --older-than 90d --keep 20
  belay --store postgres://belay@db.example/belay store migrate`,
	})
	store.AddCommand(a.storeMigrate(), a.storeCheck(), a.storeExport(), a.storeBackup(), a.storePrune(), a.storeVacuum())
	return store
}

func (a *app) storeCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the integrity of the store, and show what is in it",
		Long: `Shows whether the store is intact, its size and contents, which processes have it open, and what is queued. A file is read
completely. For a database it checks whether the server stores data safely.`,
		Example: `  belay store check
  belay store check --json`,
		Args: arguments(0, 0, "check takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.look(cmd.Context(), func(store assembly.Store) error {
				health, err := healthOf(cmd.Context(), store)
				if err != nil {
					return err
				}
				if err := a.showHealth(health, asJSON); err != nil {
					return err
				}
				if len(health.Problems) > 0 {
					return &exitError{code: exitFailed}
				}
				return nil
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object")
	return cmd
}

func (a *app) showHealth(h *health, asJSON bool) error {
	if asJSON {
		return a.printJSON(h)
	}
	s := a.onOut
	verdict := s.green("intact")
	if len(h.Problems) > 0 {
		verdict = s.red("damaged")
		if h.Database != "" {
			verdict = s.red("at risk")
		}
	}
	var t table
	if h.Database != "" {
		t.add(s.dim("database"), h.Database+", PostgreSQL "+h.Server+"  "+verdict)
	} else {
		t.add(s.dim("file"), h.Path+"  "+verdict)
	}
	for _, p := range h.Problems {
		t.add("", s.red(oneLine(p)))
	}
	size := bytesOf(h.Bytes)
	if h.contents == nil {
		t.add(s.dim("size"), size)
		t.add(s.dim("holds"), "unknown: damaged data cannot be counted")
		t.add(s.dim("do"), "keep a copy of the file, then restore a backup, or save what can be read: sqlite3 "+quoted(h.Path)+" .recover")
		return t.write(a.out, nil)
	}
	if h.Path != "" {
		size = fmt.Sprintf("%s, %s of it free, log %s", size, bytesOf(h.Free), bytesOf(h.Log))
	}
	t.add(s.dim("size"), size)
	t.add(s.dim("holds"), fmt.Sprintf("%s, %s, %s pending", visible.Counted(int(h.Sessions), "session"), visible.Counted(int(h.Runs), "record"), visible.Counted(int(h.Pending), "approval")))
	t.add(s.dim("jobs"), fmt.Sprintf("%d waiting (at most %s), %d running", h.Jobs.Waiting, visible.Grouped(h.Jobs.Capacity), h.Jobs.Running))
	for _, o := range h.Holders {
		if !o.Self {
			t.add(s.dim("open in"), fmt.Sprintf("process %d on %s, since %s", o.PID, oneLine(o.Host), o.Since.Local().Format(time.DateTime)))
		}
	}
	return t.write(a.out, nil)
}

func (a *app) storeExport() *cobra.Command {
	return &cobra.Command{
		Use:   "export SESSION",
		Short: "Write a session as JSON lines",
		Long: `Writes all data that is stored for a session to standard output, one JSON object per line: the session, its messages,
calls, approvals and records of hooks. The output contains the whole conversation: be careful whom you give it to.`,
		Example:           "  belay store export 20261115-k3f9x > session.jsonl",
		Args:              arguments(1, 1, "name the SESSION: `belay sessions` lists them"),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.look(ctx, func(store assembly.Store) error {
				info, err := findSession(ctx, store, args[0])
				if err != nil {
					return err
				}
				return store.Export(ctx, a.out, info.ID)
			})
		},
	}
}

func (a *app) storePrune() *cobra.Command {
	var olderThan, most string
	var keep int
	var asJSON, dry bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove old sessions",
		Long: `Removes whole sessions with their records, the oldest first. First it removes sessions that have not changed for longer than
--older-than, then more sessions until the store is smaller than --max-size. Without these flags the settings retention.age and retention.size apply.
Sessions that are in use, have an open turn, or wait for a decision are kept. With --dry-run nothing is removed,
and the command prints what it would remove. If the store is a file, it prunes a copy of the file to find this out.`,
		Example: `  belay store prune --older-than 90d
  belay store prune --max-size 500MB --keep 20 --dry-run`,
		Args: arguments(0, 0, "prune takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			for _, f := range []struct{ path, name, word string }{{"retention.age", "older-than", olderThan}, {"retention.size", "max-size", most}} {
				if cmd.Flags().Changed(f.name) {
					if err := settings.Override(f.path, f.name, f.word); err != nil {
						return usage("%w", err)
					}
				}
			}
			if keep < 0 {
				return usage("--keep must not be negative")
			}
			r := settings.Retention
			if cmd.Flags().Changed("older-than") && r.Age == 0 {
				return usage("--older-than: %s is not an age: give how old a session must be, such as 1h or 90d", olderThan)
			}
			if cmd.Flags().Changed("max-size") && r.Size == 0 {
				return usage("--max-size: %s is not a size: name one, such as 500MB", most)
			}
			if r.Age == 0 && r.Size == 0 {
				return usage("no limit is set: pass --older-than or --max-size, or set retention in %s", config.Name)
			}
			return a.look(cmd.Context(), func(store assembly.Store) error {
				switch store := store.(type) {
				case *sqlite.Store:
					return a.prune(cmd.Context(), store, sqlite.Retention{Age: r.Age, MaxBytes: r.Size, Keep: keep}, dry, asJSON)
				case *postgres.Store:
					return a.pruneDatabase(cmd.Context(), store, r, keep, dry, asJSON)
				default:
					return fmt.Errorf("a store of type %T cannot be pruned", store)
				}
			})
		},
	}
	cmd.Flags().StringVar(&olderThan, "older-than", "", "remove sessions that have not changed for this long: 90d, 36h")
	cmd.Flags().StringVar(&most, "max-size", "", "remove the oldest sessions until the store has no more than this: 500MB")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "remove nothing, and print what would be removed")
	cmd.Flags().IntVar(&keep, "keep", 0, "always keep this many sessions, the last changed ones")
	jsonFlag(cmd, &asJSON, "print one JSON object")
	return cmd
}

func (a *app) prune(ctx context.Context, store *sqlite.Store, keep sqlite.Retention, dry, asJSON bool) error {
	prune, did, now := store.Prune, "removed", "now"
	if dry {
		prune, did, now = rehearsal(store), "would remove", "then"
	}
	pruned, err := prune(ctx, keep)
	if err != nil {
		return err
	}
	if keep.MaxBytes > 0 && pruned.After > keep.MaxBytes {
		a.remarkf("%s", a.onErr.yellow(fmt.Sprintf("%s are still stored, more than %s: the remaining sessions are in use, open, waiting or kept, or the store itself needs the space",
			bytesOf(pruned.After), bytesOf(keep.MaxBytes))))
	}
	if asJSON {
		return a.printJSON(pruned)
	}
	line := fmt.Sprintf("%s %s and %s; %s stored before, %s %s", did, visible.Counted(len(pruned.Sessions), "session"), visible.Counted(int(pruned.Runs), "record"),
		bytesOf(pruned.Before), bytesOf(pruned.After), now)
	if len(pruned.Sessions) > 0 {
		line += "\n" + a.onOut.dim(strings.Join(pruned.Sessions, "  "))
	}
	_, err = fmt.Fprintln(a.out, line)
	return err
}

// rehearsal returns a function that prunes a copy of the store. In the copy no session is in
// use, so the copy loses sessions that the real store would keep. The function leaves those
// sessions out of its result.
func rehearsal(store *sqlite.Store) func(context.Context, sqlite.Retention) (sqlite.Pruned, error) {
	return func(ctx context.Context, keep sqlite.Retention) (did sqlite.Pruned, err error) {
		dir, err := os.MkdirTemp("", "belay-prune-*")
		if err != nil {
			return did, fmt.Errorf("make room for a copy of the store: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		path := filepath.Join(dir, "copy.db")
		if err := store.Backup(ctx, path); err != nil {
			return did, err
		}
		replica, err := sqlite.Open(ctx, path, nil)
		if err != nil {
			return did, err
		}
		did, err = replica.Prune(ctx, keep)
		if err := errors.Join(err, replica.Close()); err != nil {
			return did, err
		}
		for info, err := range store.Sessions(ctx, belay.SessionFilter{}) {
			if err != nil {
				return did, err
			}
			if info.Held {
				did.Sessions = slices.DeleteFunc(did.Sessions, func(id string) bool { return id == info.ID })
			}
		}
		return did, nil
	}
}
