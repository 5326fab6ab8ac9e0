package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Health is the result of Check.
type Health struct {
	Path string `json:"path"`
	// Version is the version of the tables: the number of the last migration.
	Version int64 `json:"version"`
	// Problems describes the damage. It is empty if the file is valid.
	Problems []string `json:"problems,omitempty"`
	// Bytes is the size of the file. Free is the size of its unused pages. Log is the size
	// of the write-ahead log.
	Bytes int64 `json:"bytes"`
	Free  int64 `json:"free"`
	Log   int64 `json:"log"`
	// Sessions and Runs are the numbers of sessions and hook runs. Pending is the number of
	// undecided approvals.
	Sessions int64 `json:"sessions"`
	Runs     int64 `json:"runs"`
	Pending  int64 `json:"pending"`
	// Holders are the stores that have the file open. A process may have several.
	Holders []HolderInfo `json:"holders,omitempty"`
	// Jobs are the numbers of the job queue.
	Jobs hook.QueueStats `json:"jobs"`
}

// HolderInfo describes a store that has the file open.
type HolderInfo struct {
	PID   int64     `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
	// Self means that the holder is this store.
	Self bool `json:"self,omitempty"`
	// Gone means that the store's process has ended. The next process that opens the file
	// cleans up after it.
	Gone bool `json:"gone,omitempty"`
}

// Check reads the whole file, looks for damage, and counts the content. It reports damage
// in Problems. An error means that the file could not be read.
func (s *Store) Check(ctx context.Context) (Health, error) {
	h := Health{Path: s.path}
	if lost, ok := errors.AsType[*FileError](s.lost); ok {
		h.Problems = append(h.Problems, lost.Err.Error())
	}
	for _, pragma := range []string{"integrity_check(20)", "foreign_key_check"} {
		problems, err := s.pragma(ctx, pragma)
		switch {
		case isDamage(s.explain(err)):
			problems = append(problems, err.Error())
		case err != nil:
			return h, fmt.Errorf("check: %w", s.explain(record.Cause(ctx, err)))
		}
		h.Problems = append(h.Problems, problems...)
	}
	if len(h.Problems) > 0 {
		return h, nil // counting would fail because of the damage
	}
	if err := s.checkFolded(ctx, &h); err != nil {
		return h, fmt.Errorf("check: %w", s.explain(record.Cause(ctx, err)))
	}
	if err := s.count(ctx, &h); err != nil {
		return h, fmt.Errorf("check: %w", s.explain(record.Cause(ctx, err)))
	}
	var err error
	if h.Jobs, err = s.queue.Stats(ctx); err != nil {
		return h, fmt.Errorf("check: %w", s.explain(record.Cause(ctx, err)))
	}
	err = s.checkHolders(ctx, &h)
	return h, err
}

func isDamage(err error) bool { return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNotStore) }

// pragma runs a check of SQLite and returns the problems that it found.
func (s *Store) pragma(ctx context.Context, pragma string) ([]string, error) {
	lines, err := record.Collect(ctx, s.reader, "PRAGMA "+pragma, nil, func(rows *sql.Rows, line *string) error {
		columns, err := rows.Columns()
		if err != nil {
			return err //nolint:wrapcheck // the caller adds context
		}
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			return err //nolint:wrapcheck // the caller adds context
		}
		for _, v := range values {
			*line += fmt.Sprint(*v.(*any), " ")
		}
		return nil
	})
	if len(lines) == 1 && lines[0] == "ok " {
		lines = nil
	}
	return lines, err
}

// maxProblems is how many problems stop the check of folded rows.
const maxProblems = 20

// checkFolded looks for damage in the rows that hold several runs.
func (s *Store) checkFolded(ctx context.Context, h *Health) error {
	for after := int64(0); len(h.Problems) < maxProblems; {
		rows, err := s.read.FoldedAfter(ctx, table.FoldedAfterParams{After: after, Count: record.RunPage})
		if err != nil || len(rows) == 0 {
			return err
		}
		problems, err := record.DamagedFolds(ctx, s.read, rows)
		if err != nil {
			return err
		}
		h.Problems, after = append(h.Problems, problems...), rows[len(rows)-1].Seq
	}
	return nil
}

// count sets the counts of h: stored sessions, runs, and approvals that nobody has
// decided. It also sets the version of the tables and the sizes of the file and of the
// write-ahead log.
func (s *Store) count(ctx context.Context, h *Health) error {
	var pages, free, size int64
	err := s.reader.QueryRowContext(ctx, `SELECT page_count, freelist_count, page_size,
		(SELECT max(version_id) FROM `+versionTable+`), (SELECT count(*) FROM sessions), (SELECT COALESCE(sum(1 + more), 0) FROM runs),
		(SELECT count(*) FROM approvals WHERE decision = '')
		FROM pragma_page_count, pragma_freelist_count, pragma_page_size`).
		Scan(&pages, &free, &size, &h.Version, &h.Sessions, &h.Runs, &h.Pending)
	if err != nil {
		return err //nolint:wrapcheck // the caller adds context
	}
	h.Bytes, h.Free = pages*size, free*size
	if log, err := os.Stat(s.path + "-wal"); err == nil {
		h.Log = log.Size()
	}
	return nil
}

func (s *Store) checkHolders(ctx context.Context, h *Health) error {
	holders, err := s.read.Holders(ctx)
	if err != nil {
		return fmt.Errorf("check: %w", s.explain(record.Cause(ctx, err)))
	}
	for _, row := range holders {
		h.Holders = append(h.Holders, HolderInfo{PID: row.Pid, Host: row.Host, Since: record.Moment(row.Since), Self: row.ID == s.id, Gone: s.gone(ctx, s.read, row.ID)})
	}
	return nil
}
