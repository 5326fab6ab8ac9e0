//go:build !soak

package crash_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay/internal/crashtest"
	"github.com/belay-run/belay/store/postgres"
)

// open opens the store of a directory. It also ends the leases of processes that have
// ended, because waiting for the leases would take too long. The soak tests and the store's
// own tests wait instead.
func open(ctx context.Context, dir string) (crashtest.Store, error) {
	dsn, err := crashDatabase(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := endLeases(ctx, dsn); err != nil {
		return nil, err
	}
	s, err := postgres.Open(ctx, dsn, &postgres.Options{JobPoll: 10 * time.Millisecond, MaxConns: 4})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func endLeases(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, "SELECT pid FROM holders")
	if err != nil {
		return err
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	for _, pid := range pids {
		process, found := os.FindProcess(pid)
		if found == nil {
			found = process.Signal(syscall.Signal(0))
		}
		if found != nil {
			_, ended := conn.Exec(ctx, "UPDATE holders SET seen = '-infinity' WHERE pid = $1", pid)
			err = errors.Join(err, ended)
		}
	}
	return err
}
