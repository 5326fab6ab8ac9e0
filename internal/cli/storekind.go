package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/store/postgres"
	"github.com/belay-run/belay/store/sqlite"
)

// missingStore returns an error if the store file does not exist yet. It returns nil for
// a database, because only the database server knows whether the store exists.
func missingStore(settings *config.Loaded) error {
	if config.IsDSN(settings.Store) {
		return nil
	}
	if err := assembly.CheckStore(settings); err != nil {
		return err
	}
	if _, err := os.Stat(settings.Store); errors.Is(err, fs.ErrNotExist) {
		return &noStoreError{settings.Store}
	}
	return nil
}

// health is the result of "store check", for every kind of store.
type health struct {
	// Path is set for a file. Database (its name) and Server (its version) are set for a
	// database.
	Path     string `json:"path,omitempty"`
	Database string `json:"database,omitempty"`
	Server   string `json:"server,omitempty"`

	Version  int64    `json:"version,omitempty"`
	Problems []string `json:"problems,omitempty"`
	Bytes    int64    `json:"bytes"`
	Holders  []holder `json:"holders,omitempty"`
	// contents is nil if the file is damaged and cannot be counted.
	*contents
}

// contents counts what a store has.
type contents struct {
	Free     int64           `json:"free,omitempty"`
	Log      int64           `json:"log,omitempty"`
	Sessions int64           `json:"sessions"`
	Runs     int64           `json:"runs"`
	Pending  int64           `json:"pending"`
	Jobs     hook.QueueStats `json:"jobs"`
}

// holder is a process that has a store open.
type holder struct {
	PID   int64     `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
	Self  bool      `json:"self,omitempty"`
	Gone  bool      `json:"gone,omitempty"`
}

// healthOf checks the integrity of a store.
func healthOf(ctx context.Context, store assembly.Store) (*health, error) {
	switch store := store.(type) {
	case *sqlite.Store:
		h, err := store.Check(ctx)
		of := &health{
			Path: h.Path, Version: h.Version, Problems: h.Problems, Bytes: h.Bytes,
			contents: &contents{h.Free, h.Log, h.Sessions, h.Runs, h.Pending, h.Jobs},
		}
		if info, err := os.Stat(h.Path); len(h.Problems) > 0 && err == nil { // a damaged file was not counted
			of.Bytes, of.contents = info.Size(), nil
		}
		for _, o := range h.Holders {
			of.Holders = append(of.Holders, holder{o.PID, o.Host, o.Since, o.Self, o.Gone})
		}
		return of, err
	case *postgres.Store:
		h, err := store.Check(ctx)
		of := &health{
			Database: h.Database, Server: h.Server, Version: h.Version, Problems: h.Problems, Bytes: h.Bytes,
			contents: &contents{Sessions: h.Sessions, Runs: h.Runs, Pending: h.Pending, Jobs: h.Jobs},
		}
		for _, o := range h.Holders {
			of.Holders = append(of.Holders, holder{o.PID, o.Host, o.Since, o.Self, o.Gone})
		}
		return of, err
	default:
		return nil, fmt.Errorf("a store of type %T cannot be checked", store)
	}
}
