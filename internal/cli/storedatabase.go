package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/store/postgres"
	"github.com/belay-run/belay/store/sqlite"
	"github.com/spf13/cobra"
)

// pruneDatabase removes old sessions from a PostgreSQL store. If dry is true, it only
// prints what it would remove.
func (a *app) pruneDatabase(ctx context.Context, store *postgres.Store, r config.Retention, keep int, dry, asJSON bool) error {
	if r.Age == 0 {
		return usage("a database is pruned by age: pass --older-than, or set retention.age in %s", config.Name)
	}
	prune, did := store.Prune, "removed"
	if dry {
		prune, did = store.Prunable, "would remove"
	}
	pruned, err := prune(ctx, postgres.Retention{Age: r.Age, Keep: keep})
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(pruned)
	}
	line := fmt.Sprintf("%s %s and %s", did, visible.Counted(len(pruned.Sessions), "session"), visible.Counted(int(pruned.Runs), "record"))
	if len(pruned.Sessions) > 0 {
		line += "\n" + a.onOut.dim(strings.Join(pruned.Sessions, "  "))
	}
	_, err = fmt.Fprintln(a.out, line)
	return err
}

func (a *app) storeMigrate() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Create the store's tables, or migrate them",
		Long: `Every command migrates the store when it opens it. This command does nothing else. If several machines share the store, run
it once before the workers of a new version start. Workers of the old version keep running meanwhile. If they must not use the
new tables, the command names one of them and changes nothing: stop these workers first.`,
		Example: `  belay store migrate
  belay --store postgres://belay@db.example/belay store migrate`,
		Args: arguments(0, 0, "migrate takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			store, err := a.assembler().OpenStore(cmd.Context(), settings)
			if err != nil {
				return err
			}
			from, to := store.Migrated()
			line := fmt.Sprintf("the tables are up to date: version %d", to)
			switch {
			case from == 0 && to > 0:
				line = fmt.Sprintf("the tables were created: version %d", to)
			case from < to:
				line = fmt.Sprintf("the tables were migrated: version %d, before %d", to, from)
			}
			if err := store.Close(); err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.out, line)
			return err
		},
	}
}

func (a *app) storeBackup() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the store to a new file while it is in use",
		Long: `Copies the store, as it is at one moment, to a new file that only you can read. Other processes can work meanwhile. To restore
the copy, end all programs that use the store, and put the copy in the place of the file. Remove the files beside it whose
names end with -wal and -shm. For a database, use pg_dump.`,
		Example: "  belay store backup ~/backups/belay-$(date +%F).db",
		Args:    arguments(1, 1, "name the new file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.look(cmd.Context(), func(store assembly.Store) error {
				file, ok := store.(*sqlite.Store)
				if !ok {
					return usage("the store is a database: use pg_dump to back it up")
				}
				err := file.Backup(cmd.Context(), a.at(args[0]))
				if errors.Is(err, fs.ErrExist) {
					return usage("%s exists already: name a new file", args[0])
				}
				if err != nil {
					return err
				}
				info, err := os.Stat(a.at(args[0]))
				if err != nil {
					return fmt.Errorf("the copy: %w", err)
				}
				_, err = fmt.Fprintf(a.out, "%s: %s\n", args[0], bytesOf(info.Size()))
				return err
			})
		},
	}
}

func (a *app) storeVacuum() *cobra.Command {
	return &cobra.Command{
		Use:   "vacuum",
		Short: "Free the space that removed sessions used",
		Long: `If the store is a file, rewrites it without its free space. This needs disk space for a second copy, and other processes wait
meanwhile. A database server cleans up its tables while other processes work. It keeps the freed space for new data.`,
		Example: "  belay store vacuum",
		Args:    arguments(0, 0, "vacuum takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.look(cmd.Context(), func(store assembly.Store) error {
				before, after, err := store.Vacuum(cmd.Context())
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.out, "%s before, %s now\n", bytesOf(before), bytesOf(after))
				return err
			})
		},
	}
}
