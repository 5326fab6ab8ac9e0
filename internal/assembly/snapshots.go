package assembly

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/toolbox"
)

// SnapshotDir returns the directory of the snapshots for rewinding.
func SnapshotDir(s *config.Loaded) string { return filepath.Join(s.Home(), "snapshots") }

// OpenSnapshots opens the snapshots of the project, also if the settings say that no new
// ones are made. The caller closes them.
func (a *Assembler) OpenSnapshots(s *config.Loaded) *toolbox.Snapshots {
	var once sync.Once
	return toolbox.NewSnapshots(SnapshotDir(s), &toolbox.SnapshotOptions{
		NoCommands: s.Snapshots != config.SnapshotsAll, Exclude: unkept(s),
		Failed: func(err error) {
			once.Do(func() { a.caution(fmt.Sprintf("a change cannot be rewound: %v", err)) })
		},
	})
}

// unkept returns the files of Belay that may be in the project. They are not part of its
// snapshots: a rewind must not change the store.
func unkept(s *config.Loaded) []string {
	home := s.Home()
	all := append(ownFiles(s), filepath.Join(s.Project, ".belay"), SpillDir(s), filepath.Join(home, "history"), filepath.Join(home, "hooks.log"))
	if rel, err := filepath.Rel(s.Project, home); err == nil && filepath.IsLocal(rel) && rel != "." {
		all = append(all, home)
	}
	return all
}

// useSnapshots opens the snapshots that an agent makes. They are nil if the settings say so.
func (a *Assembler) useSnapshots(w *Assembled) error {
	if w.Settings.Snapshots == config.SnapshotsOff {
		return nil
	}
	if err := os.MkdirAll(SnapshotDir(w.Settings), 0o700); err != nil {
		return fmt.Errorf("create the directory for snapshots: %w", err)
	}
	w.Snapshots = a.OpenSnapshots(w.Settings)
	w.OnClose(w.Snapshots.Close)
	return nil
}

// foretell tells the snapshots what a command may change.
func foretell(run *toolbox.ShellRun, e *permit.Explanation, confined bool) {
	run.ReadOnly = confined && readsOnly(e)
	for i := range e.Findings {
		if f := &e.Findings[i]; f.Kind == permit.KindWrite {
			run.Changes = append(run.Changes, f.Subject)
		}
	}
	slices.Sort(run.Changes)
	run.Changes = slices.Compact(run.Changes)
}
