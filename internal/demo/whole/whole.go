// Package whole is the tour of `belay demo`: the tour of package demo on SQLite, with a
// process that is killed, and with hooks in files. They are apart because they take most of
// the time that the program needs to compile.
package whole

import (
	"context"

	"github.com/belay-run/belay/internal/demo"
	"github.com/belay-run/belay/store/sqlite"
)

// Options returns the options of the whole tour.
func Options() demo.Options {
	return demo.Options{Open: open, Spaces: spaces}
}

type store struct{ *sqlite.Store }

func (s store) StillOpen() int { return len(s.Recovery().Open) }

func open(ctx context.Context, path string) (demo.Store, error) { //nolint:ireturn // demo.Options wants it so
	s, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	return store{s}, nil
}
