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

// A process may end at any point, the one that resumes too, and the next waits until
// the lease ends.
//
// SPEC L-01, L-02, J-03, J-04, J-05
func TestSoakCrash(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, open, true)
}

// patient is a store whose sessions are waited for, as whoever takes turns waits: the
// lease of a process that was killed ends a little later.
type patient struct{ *postgres.Store }

// Open opens a session as soon as it can.
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

// open opens the store of a directory, and leaves all leases as they are.
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
