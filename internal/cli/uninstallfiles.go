package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/internal/warmhook"
	"github.com/belay-run/belay/store/sqlite"
)

// notOurs is what to do about something that Belay may not have written.
const notOurs = "Belay may not have written this: look at it, and remove it yourself"

// left collects what Belay left on the machine. The paths can come from the settings of a cloned repository, so a path is
// removed only if what is there is what Belay writes.
type left struct {
	all  []remnant
	open []string // the store files that a program has open
}

// openNow returns for each store that is open which processes have it open, and what to do.
func (l *left) openNow() (lines []string) {
	for _, r := range l.all {
		if slices.Contains(l.open, r.Path) {
			lines = append(lines, r.Path+": "+r.Remedy)
		}
	}
	return lines
}

func (l *left) add(r remnant) {
	if !slices.ContainsFunc(l.all, func(other remnant) bool { return other.Path == r.Path }) {
		l.all = append(l.all, r)
	}
}

// file adds a file, if it is there and is no link.
func (l *left) file(kind, path string) {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		l.add(remnant{Kind: kind, Path: path, remove: func() error { return removeFile(path) }})
	}
}

// removeFile removes a file. It may be gone: a link can give one file two names in the list.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// dir adds a directory whose name Belay chose, with all that is in it.
func (l *left) dir(kind, path string) {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		l.add(remnant{Kind: kind, Path: path, remove: func() error { return removeDir(path) }})
	}
}

// removeDir removes a directory with all that is in it. Go keeps packages in directories that nobody may change: they are made
// changeable first. Links in the directory do not lead out of it. It may be gone, as a file may.
func removeDir(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error { // what fails here, RemoveAll reports
		if err == nil && entry.IsDir() {
			if info, err := entry.Info(); err == nil && info.Mode().Perm()&0o700 != 0o700 {
				_ = root.Chmod(name, 0o700)
			}
		}
		return nil
	})
	return errors.Join(root.Close(), os.RemoveAll(dir))
}

// keep adds something that a person must remove.
func (l *left) keep(kind, path, remedy string) {
	l.add(remnant{Kind: kind, Path: path, Remedy: remedy})
}

// store adds a store or a memory file and what is beside it. The file itself is last: if removing stops before it, the next
// attempt finds the rest.
func (l *left) store(kind, file string) {
	info, err := os.Lstat(file)
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case gone && !ownHome(filepath.Dir(file)):
		return
	case gone:
	case err != nil || !info.Mode().IsRegular():
		l.keep(kind, file, notOurs)
		return
	}
	if users, err := sqlite.Users(file); err != nil || len(users) > 0 {
		remedy := "open in " + visible.Clean(strings.Join(users, " and ")) + ": end this first"
		if err != nil {
			remedy = oneLine(err.Error()) + ": make sure that no program uses this store, and remove it yourself"
		}
		if l.keep(kind, file, remedy); !slices.Contains(l.open, file) { // projects and settings may name it again
			l.open = append(l.open, file)
		}
		return
	}
	if !gone && !isStore(file) {
		l.keep(kind, file, notOurs)
		return
	}
	for _, end := range []string{"-holders", "-live"} {
		l.dir(kind, file+end)
	}
	for _, path := range append(assembly.StoreCopies(file), file+"-wal", file+"-shm", file+"-journal", file) {
		l.file(kind, path)
	}
}

// home adds what Belay keeps in the directory of a store.
func (l *left) home(home string) {
	names := []string{"spill", "snapshots", "transcripts", "channels"}
	if !ownHome(home) {
		for _, name := range append(names, "history", "hooks.log") {
			if path := filepath.Join(home, name); exists(path) {
				l.keep("store", path, notOurs)
			}
		}
		return
	}
	l.store("store", filepath.Join(home, "belay.db"))
	for _, name := range names {
		l.dir("store", filepath.Join(home, name))
	}
	l.file("store", filepath.Join(home, "history"))
	l.file("store", filepath.Join(home, "hooks.log"))
	if ignore := filepath.Join(home, ".gitignore"); l.onlyIgnores(home) {
		if text, err := os.ReadFile(ignore); err == nil && string(text) == assembly.KeptOut {
			l.file("store", ignore)
		}
	}
}

// onlyIgnores reports whether a directory has nothing but what is removed and a .gitignore.
func (l *left) onlyIgnores(home string) bool {
	entries, err := os.ReadDir(home)
	if err != nil {
		return false
	}
	for _, e := range entries {
		path := filepath.Join(home, e.Name())
		if e.Name() != ".gitignore" && !slices.ContainsFunc(l.all, func(r remnant) bool { return r.Path == path && r.remove != nil }) {
			return false
		}
	}
	return true
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// ownHome reports whether a directory is one that Belay makes for its files: .belay, and not a link to another directory.
func ownHome(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && filepath.Base(dir) == ".belay"
}

// isStore reports whether a file is a database that Belay made: a store, or a memory file. SQLite keeps the mark of the program
// that made a database at byte 68.
func isStore(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	head := make([]byte, 72)
	if _, err := io.ReadFull(f, head); err != nil || !bytes.HasPrefix(head, []byte("SQLite format 3\x00")) {
		return false
	}
	mark := string(head[68:])
	return mark == "blay" || mark == "bmem"
}

// workerEnd is how long endHookWorkers waits.
const workerEnd = 5 * workerLook

// endHookWorkers ends the workers of "belay hook", which keep a store open until no event comes for some minutes: a worker without
// its socket ends. It waits until the stores are closed, but not for long: another program may have them open.
func endHookWorkers(ctx context.Context, stores []string) (closed bool) {
	if warmhook.CheckPlace() != nil {
		return false // there are no workers of this user
	}
	entries, _ := os.ReadDir(warmhook.Place()) // one that cannot be listed has no worker
	for _, e := range entries {
		closed = strings.HasPrefix(e.Name(), "hook-") && os.Remove(filepath.Join(warmhook.Place(), e.Name())) == nil || closed
	}
	ctx, cancel := context.WithTimeout(ctx, workerEnd)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for closed && slices.ContainsFunc(stores, func(file string) bool { users, err := sqlite.Users(file); return err != nil || len(users) > 0 }) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return closed
}
