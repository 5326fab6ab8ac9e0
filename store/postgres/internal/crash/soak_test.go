//go:build soak

package crash_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/crashtest"
	"github.com/belay-run/belay/store/postgres"
)

// A process can end at any point, even while it resumes a turn. The next process waits
// until the lease has expired.
//
// SPEC L-01, L-02, J-03, J-04, J-05
func TestSoakCrash(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, open, true)
}

// patient is a store that waits for held sessions until the lease of the killed process has
// expired.
type patient struct{ *postgres.Store }

// Open waits until the session is no longer held, and opens it.
func (p patient) Open(ctx context.Context, session string) (*belay.Stored, error) {
	often := time.NewTicker(10 * time.Millisecond)
	defer often.Stop()
	for {
		stored, err := p.Store.Open(ctx, session)
		if !errors.Is(err, belay.ErrHeld) {
			return stored, err
		}
		select {
		case <-often.C:
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}

// open opens the store of a directory without changing leases.
func open(ctx context.Context, dir string) (crashtest.Store, error) {
	dsn, err := crashDatabase(ctx, dir)
	if err != nil {
		return nil, err
	}
	s, err := postgres.Open(ctx, dsn, &postgres.Options{Takeover: 2 * time.Second, JobPoll: 10 * time.Millisecond, MaxConns: 4})
	if err != nil {
		return nil, err
	}
	return patient{s}, nil
}
