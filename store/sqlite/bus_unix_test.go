//go:build unix

package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/storetest"
)

// SPEC V-03
func TestBus(t *testing.T) {
	t.Parallel()
	storetest.TestBus(t, func(t testing.TB) (one, other belay.BusStore) {
		path := filepath.Join(t.TempDir(), "belay.db")
		return openFile(t, path, nil), openFile(t, path, nil)
	})
}

// Belay removes no foreign files from the directory of mailboxes. It does not use the
// directory if it is a link, which a project may contain, or if other users can use it.
//
// SPEC V-05
func TestBusTouchesNoForeignFiles(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(t *testing.T, live, other string) error{
		"a link to another directory":     func(_ *testing.T, live, other string) error { return os.Symlink(other, live) },
		"a directory that others can use": func(_ *testing.T, live, _ string) error { return os.Mkdir(live, 0o755) },
		"a file in a directory of ours": func(_ *testing.T, live, _ string) error {
			return errors.Join(os.Mkdir(live, 0o700), os.WriteFile(filepath.Join(live, "notes"), []byte("mine"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			other, path := filepath.Join(dir, "home"), filepath.Join(dir, "belay.db")
			if err := errors.Join(os.Mkdir(other, 0o700), os.WriteFile(filepath.Join(other, "notes"), []byte("mine"), 0o600), make(t, path+"-live", other)); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadDir(path + "-live")
			if err != nil {
				t.Fatal(err)
			}
			s := openFile(t, path, nil)
			_ = s.Broadcast(t.Context(), "hello") // whether this is an error does not matter here
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for range s.Broadcasts(ctx) {
				t.Error("a message arrives")
			}
			after, err := os.ReadDir(path + "-live")
			if err != nil || len(after) != len(before) {
				t.Errorf("the directory had %v and has %v, %v", before, after, err)
			}
			if _, err := os.Stat(filepath.Join(other, "notes")); err != nil {
				t.Error(err)
			}
		})
	}
}
