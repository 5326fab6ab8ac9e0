package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/store/sqlite"
	"github.com/spf13/cobra"
)

// settings loads the settings. The common flags override them.
func (a *app) settings() (*config.Loaded, error) {
	settings, mistakes, err := a.settingsWithMistakes()
	if mistakes != nil {
		err = usage("%w", &settingsError{mistakes})
	}
	if err != nil {
		return nil, err
	}
	return settings, nil
}

// settingsWithMistakes loads the settings that have no mistakes, for a command that must not
// stop at the others.
func (a *app) settingsWithMistakes() (settings *config.Loaded, mistakes, err error) {
	if a.dir != "" {
		if info, err := os.Stat(a.dir); err != nil || !info.IsDir() {
			return nil, nil, usage("--dir: %q is not a directory", a.dir)
		}
	}
	settings, mistakes = config.Load(&config.Options{Dir: a.dir, UserDir: a.userDir, Environ: a.environ})
	if settings == nil {
		return nil, nil, usage("%w", &settingsError{mistakes})
	}
	for name, word := range map[string]string{"store": a.store, "server": a.server} {
		if word == "" {
			continue
		}
		if err := settings.Override(name, name, word); err != nil {
			return nil, mistakes, usage("%w", err)
		}
	}
	return settings, mistakes, nil
}

// settingsError is a mistake in a settings file or a variable.
type settingsError struct{ error }

func (e *settingsError) Unwrap() error { return e.error }

// at returns a file or a directory that an argument names. A relative path begins at the
// directory of the flag --dir.
func (a *app) at(name string) string {
	if a.dir == "" || name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.dir, name)
}

// look opens the existing store and calls f with it. It does not create a store. If the
// disk is full or the store is damaged, look opens it read-only.
func (a *app) look(ctx context.Context, f func(assembly.Store) error) (err error) {
	settings, err := a.settings()
	if err != nil {
		return err
	}
	if err := missingStore(settings); err != nil {
		return err
	}
	store, err := a.assembler().OpenStore(ctx, settings)
	if err != nil {
		store, err = a.openToRead(ctx, settings, err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return f(store)
}

// noStoreError means that the store does not exist yet.
type noStoreError struct{ path string }

func (e *noStoreError) Error() string {
	return fmt.Sprintf("there are no sessions yet: %s does not exist. `belay run \"task\"` creates the first", e.path)
}

// findSession finds a session of a store: see pickSession.
func findSession(ctx context.Context, store belay.ListStore, word string) (belay.SessionInfo, error) {
	return pickSession(func(f belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] { return store.Sessions(ctx, f) }, func(i belay.SessionInfo) string { return i.ID }, word)
}

// findOpen returns the last changed session that has an open turn and that no process
// holds. If there is none, it returns the last changed session. Sessions of subagents do
// not count.
func findOpen(ctx context.Context, store belay.ListStore) (belay.SessionInfo, error) {
	for info, err := range store.Sessions(ctx, belay.SessionFilter{Open: true}) {
		if err != nil {
			return belay.SessionInfo{}, err
		}
		if !info.Held && !inspect.IsChild(info.ID) {
			return info, nil
		}
	}
	return findSession(ctx, store, "")
}

// completionTimeout is how long the shell waits for the ids of sessions and approvals.
const completionTimeout = 5 * time.Second

func (a *app) completeSessions(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	var words []string
	_ = a.records(ctx, func(r records) error { // ignore errors: the user can type the id without completion
		for s, err := range r.Sessions(ctx, belay.SessionFilter{Prefix: word, Limit: 50}) {
			if err != nil {
				return err
			}
			if inspect.IsChild(s.ID) && !inspect.IsChild(word) {
				continue
			}
			words = append(words, s.ID+"\t"+short(oneLine(s.Title), 60))
		}
		return nil
	})
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// openToRead opens the store file read-only if the disk is full or the file is damaged.
// Otherwise it returns err.
func (a *app) openToRead(ctx context.Context, settings *config.Loaded, err error) (assembly.Store, error) { //nolint:ireturn // like openStore
	if !errors.Is(err, sqlite.ErrFull) && !errors.Is(err, sqlite.ErrCorrupt) {
		return nil, err
	}
	store, unread := sqlite.Open(ctx, settings.Store, &sqlite.Options{ReadOnly: true, Logger: a.logger()})
	if unread != nil {
		return nil, err
	}
	a.warn("the store was opened read-only: " + told(err))
	return store, nil
}
