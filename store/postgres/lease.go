package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/belay-run/belay/store/internal/record"
)

// A holder is an open store, in this process or another. It is registered in a table and
// sends heartbeats. If no heartbeat arrives during its lease, by the server's clock, the
// holder counts as dead. If the holder is still alive, it registers again with the same id.
// If others took over its sessions, the new epochs make its commits fail.

// lease returns how long this holder counts as alive without a heartbeat. Other holders
// need the rest of Options.Takeover to notice that the holder is dead.
func (s *Store) lease() time.Duration { return s.opts.Takeover * 2 / 3 }

// recoverPoll returns how often a store that runs jobs or claims turns checks for dead
// holders.
func (s *Store) recoverPoll() time.Duration { return max(s.opts.Takeover/6, time.Millisecond) }

// querier is a connection, a pool or a transaction.
type querier interface {
	Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// enter registers this holder, or sends a heartbeat.
func (s *Store) enter(ctx context.Context, db querier) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	knows, err := newestOf(s.migrations())
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, `INSERT INTO holders (id, pid, host, since, process, path, seen, lease, knows, worker) VALUES ($1, $2, $3, $4, '', '', clock_timestamp(), $5, $6, $7)
		ON CONFLICT (id) DO UPDATE SET seen = clock_timestamp()`, s.id, int64(os.Getpid()), host, record.Nanos(s.now()), s.lease(), knows, s.works.Load())
	return err
}

// register adds this store to the list of holders.
func (s *Store) register(ctx context.Context) error { return s.enter(ctx, s.pool) }

// beatWithin returns the timeout of one heartbeat. After it, live tries another connection.
func (s *Store) beatWithin() time.Duration {
	return max(s.lease()/4, min(s.lease()/2, 500*time.Millisecond))
}

// beat is the goroutine that sends heartbeats until Close. Open starts it. It uses its own
// connection, so that other work cannot block it.
func (s *Store) beat() {
	defer close(s.beaten)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends when the store is closed
		<-s.closed
		cancel()
	}()
	often := time.NewTicker(max(s.opts.Takeover/10, time.Millisecond))
	defer often.Stop()
	var lost time.Time // since when the server is unreachable, zero if it is reachable
	for {
		select {
		case <-often.C:
		case <-s.closed:
			return
		}
		began := time.Now()
		err := s.live(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil && lost.IsZero():
			lost = began
			s.opts.Logger.WarnContext(ctx, "the server cannot be reached: other processes may take over the sessions of this process", "store", s.name, "error", s.explain(err))
		case err == nil && !lost.IsZero():
			s.opts.Logger.InfoContext(ctx, "the server can be reached again", "store", s.name, "away", time.Since(lost).Round(time.Millisecond))
			lost = time.Time{}
		}
		if err == nil {
			s.payBackApart(ctx)
			s.checkpointApart(ctx)
		}
	}
}

// live sends one heartbeat. If the connection fails, it tries another one.
func (s *Store) live(ctx context.Context) error {
	err := s.liveOnce(ctx)
	if isDropped(err) || errors.Is(err, context.DeadlineExceeded) {
		err = s.liveOnce(ctx)
	}
	return err
}

func (s *Store) liveOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.beatWithin())
	defer cancel()
	conn, err := s.pulse.Acquire(ctx) // after a timeout, the pool keeps the new connection for the next heartbeat
	if err != nil {
		return err //nolint:wrapcheck // it is logged
	}
	defer conn.Release()
	tag, err := conn.Exec(ctx, "UPDATE holders SET seen = clock_timestamp() WHERE id = $1", s.id)
	if err == nil && tag.RowsAffected() == 0 {
		s.opts.Logger.WarnContext(ctx, "other processes considered this process dead, because it sent no heartbeats in time: they may have taken over its sessions and jobs", "store", s.name)
		err = s.enter(ctx, conn)
	}
	if err != nil {
		_ = conn.Conn().PgConn().Conn().Close() // Close of the pgx connection would wait for the server
	}
	return err
}

type holder struct {
	id    string
	pid   int64
	host  string
	since time.Time
	gone  bool
	// worker means that the holder claims turns.
	worker bool
}

const holderColumns = "id, pid, host, since, seen + lease <= clock_timestamp(), worker"

func scanHolder(row pgx.Row) (h holder, err error) {
	var since int64
	err = row.Scan(&h.id, &h.pid, &h.host, &since, &h.gone, &h.worker)
	h.since = record.Moment(since)
	return h, err //nolint:wrapcheck // the caller adds context
}

// gone reports whether a holder is dead. A holder is dead if its lease has expired or if it
// is not registered.
func (s *Store) gone(ctx context.Context, db querier, id string) (bool, holder, error) {
	if id == s.id {
		return false, holder{id: id}, nil
	}
	h, err := scanHolder(db.QueryRow(ctx, "SELECT "+holderColumns+" FROM holders WHERE id = $1", id))
	if errors.Is(err, pgx.ErrNoRows) {
		return true, holder{id: id}, nil
	}
	return h.gone, h, err
}

func (s *Store) holders(ctx context.Context) ([]holder, error) {
	var list []holder
	err := s.persist(ctx, func() error {
		rows, err := s.pool.Query(ctx, "SELECT "+holderColumns+" FROM holders ORDER BY since, id")
		if err == nil {
			list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (holder, error) { return scanHolder(row) })
		}
		return err //nolint:wrapcheck // the caller adds context
	})
	return list, err
}

func describe(h holder) string {
	return fmt.Sprintf("process %d on %s, since %s", h.pid, h.host, h.since.UTC().Format(time.RFC3339))
}
