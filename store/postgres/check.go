package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
)

// Health is the result of Check.
type Health struct {
	// Database is the name of the database. Server is the version of the server.
	Database string `json:"database"`
	Server   string `json:"server"`
	// Version is the version of the tables: the number of the last migration.
	Version int64 `json:"version"`
	// Problems describes settings of the server that can lose stored data. It is empty if
	// there are none.
	Problems []string `json:"problems,omitempty"`
	// Bytes is the size of the database, in bytes.
	Bytes int64 `json:"bytes"`
	// Sessions and Runs are the numbers of sessions and hook runs. Pending is the number of
	// undecided approvals.
	Sessions int64 `json:"sessions"`
	Runs     int64 `json:"runs"`
	Pending  int64 `json:"pending"`
	// Holders are the stores that have the database open.
	Holders []HolderInfo `json:"holders,omitempty"`
	// Jobs are the numbers of the job queue.
	Jobs hook.QueueStats `json:"jobs"`
}

// HolderInfo describes a store that has the database open.
type HolderInfo struct {
	PID   int64     `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
	// Sessions is the number of sessions that the store holds.
	Sessions int64 `json:"sessions"`
	// Self means that the holder is this store.
	Self bool `json:"self,omitempty"`
	// Gone means that the store's lease has expired, and that no other store has cleaned up
	// yet.
	Gone bool `json:"gone,omitempty"`
}

// Check counts the content of the database, and checks whether the server's settings can
// lose stored data. It cannot check the server's files: use the server's own tools, such
// as pg_amcheck.
func (s *Store) Check(ctx context.Context) (Health, error) {
	h := Health{Database: s.name}
	if err := s.check(ctx, &h); err != nil {
		return h, fmt.Errorf("check: %w", s.explain(record.Cause(ctx, err)))
	}
	return h, nil
}

func (s *Store) check(ctx context.Context, h *Health) error {
	conn, done, err := s.apart(ctx) // a connection without a timeout, because counting can take long
	if err != nil {
		return err
	}
	defer done()
	var fsync, pages string
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('fsync'), current_setting('full_page_writes'),
		pg_database_size(current_database()), (SELECT max(version_id) FROM `+versionTable+`),
		(SELECT count(*) FROM sessions), (SELECT CAST(COALESCE(sum(1 + more), 0) AS BIGINT) FROM runs), (SELECT count(*) FROM approvals WHERE decision = '')`).
		Scan(&h.Server, &fsync, &pages, &h.Bytes, &h.Version, &h.Sessions, &h.Runs, &h.Pending)
	if err != nil {
		return err //nolint:wrapcheck // Check adds context
	}
	if fsync != "on" {
		h.Problems = append(h.Problems, "the server does not wait for its disk (fsync is off): a power failure loses stored data")
	}
	if pages != "on" {
		h.Problems = append(h.Problems, "the server does not write whole pages (full_page_writes is off): a power failure can damage stored data")
	}
	if h.Jobs, err = s.queue.Stats(ctx); err != nil {
		return err
	}
	return s.checkHolders(ctx, h)
}

func (s *Store) checkHolders(ctx context.Context, h *Health) error {
	holders, err := s.holders(ctx)
	if err != nil {
		return err
	}
	for _, one := range holders {
		info := HolderInfo{PID: one.pid, Host: one.host, Since: one.since, Self: one.id == s.id, Gone: one.gone && one.id != s.id}
		if err := s.pool.QueryRow(ctx, "SELECT count(*) FROM sessions WHERE holder = $1 AND holder <> ''", one.id).Scan(&info.Sessions); err != nil {
			return err //nolint:wrapcheck // Check adds context
		}
		h.Holders = append(h.Holders, info)
	}
	return nil
}
