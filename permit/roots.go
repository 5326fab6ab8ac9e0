package permit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// rootList are the directories beside the project. A floor shares it with its copies for other
// modes.
type rootList struct {
	mu  sync.Mutex
	all []root // replaced, and never changed
}

func (l *rootList) list() []root {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

func (l *rootList) add(r root) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(slices.Clip(l.all), r)
}

// AddRoot adds a directory to the roots, see [Options].Roots. It applies from the next check
// on, in all modes of this floor.
func (f *Floor) AddRoot(dir string) error {
	if info, err := os.Stat(dir); err != nil || !filepath.IsAbs(dir) || !info.IsDir() {
		return fmt.Errorf("permit: the root %q is not the absolute path of a directory", dir)
	}
	r, err := newRoot(dir)
	if err != nil {
		return fmt.Errorf("permit: the root %q: %w", dir, err)
	}
	f.extra.add(r)
	return nil
}
