// Package filetest helps tests that need a file which takes long to create, such as an
// empty database with all its tables. The file is created once, and each test gets a copy.
//
//	var newFile = filetest.Copies("belay.db", func(path string) error { … })
package filetest

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Copies returns a function that gives each test its own copy of a file with this name. The
// first call creates the file with create, which must close it. Other files that create
// makes are not copied.
func Copies(name string, create func(path string) error) func(t testing.TB) string {
	content := sync.OnceValues(func() (content []byte, err error) {
		dir, err := os.MkdirTemp("", "belay-template")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		path := filepath.Join(dir, name)
		if err := create(path); err != nil {
			return nil, err
		}
		return os.ReadFile(path)
	})
	return func(t testing.TB) string {
		t.Helper()
		content, err := content()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
}
