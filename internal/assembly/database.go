package assembly

import (
	"context"
	"io"
	"log/slog"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/store/postgres"
	"github.com/belay-run/belay/store/sqlite"
)

// A Store keeps sessions: in a file on one machine, or in a database that several machines
// share.
type Store interface {
	belay.JournalStore
	belay.ManageStore
	belay.TurnStore
	Export(ctx context.Context, to io.Writer, session string) error
	Migrated() (from, to int64)
	Vacuum(ctx context.Context) (before, after int64, err error)
	Close() error
}

var (
	_ Store = (*sqlite.Store)(nil)
	_ Store = (*postgres.Store)(nil)
)

// OpenDatabase opens a store in a PostgreSQL database.
func (a *Assembler) OpenDatabase(ctx context.Context, settings *config.Loaded, opts *postgres.Options) (*postgres.Store, error) {
	if err := MakeHome(settings.Home()); err != nil {
		return nil, err
	}
	var o postgres.Options
	if opts != nil {
		o = *opts
	}
	if o.Logger = a.Logger; o.Logger == nil {
		o.Logger = slog.New(&remarks{from: a})
	}
	store, err := postgres.Open(ctx, settings.Store, &o)
	if err != nil {
		return nil, err
	}
	r := store.Recovery()
	if line := recovered(sqlite.Recovery{Sessions: r.Sessions, Open: r.Open, Runs: r.Runs}); line != "" {
		a.caution(line)
	}
	return store, nil
}

// remarks is a log handler that sends the log of a database store as notices, for example
// about a lost connection. It skips a line that repeats the previous line.
type remarks struct {
	from *Assembler

	mu   sync.Mutex
	last string
}

// Enabled reports whether a level is logged.
func (r *remarks) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle sends a record as a notice, unless the last record had the same text.
func (r *remarks) Handle(_ context.Context, said slog.Record) error {
	line := said.Message
	said.Attrs(func(attr slog.Attr) bool {
		if attr.Key != "store" {
			line += "; " + attr.Key + ": " + visible.OneLine(attr.Value.String())
		}
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if line != r.last {
		r.from.caution(line)
	}
	r.last = line
	return nil
}

// WithAttrs returns the handler itself, because no store adds attributes.
func (r *remarks) WithAttrs([]slog.Attr) slog.Handler { return r }

// WithGroup returns the handler itself, because no store uses groups.
func (r *remarks) WithGroup(string) slog.Handler { return r }
