package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay/store/internal/record"
)

// These constants limit the check when a file is opened. SQLite checks about 600 MB per
// second: a file of 32 MB takes about 60 ms.
const (
	// checkedWhole is the maximum size of a file that is checked completely, in bytes.
	checkedWhole = 32 << 20
	// checkedFor is the time limit for the check of a larger file.
	checkedFor = 100 * time.Millisecond
)

// checkPages looks for damaged pages when a file is opened, because later nobody may notice
// the damage. A file larger than checkedWhole is checked only for checkedFor, small tables
// first. Store.Check reads the whole file.
func (s *Store) checkPages(ctx context.Context) error {
	size, err := s.size(ctx)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if size <= checkedWhole {
		return s.quickCheck(ctx, "1")
	}
	tables, err := record.Collect(ctx, s.reader, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name IN ('calls', 'messages', 'runs'), name", nil,
		func(rows *sql.Rows, name *string) error { return rows.Scan(name) })
	if err != nil {
		return fmt.Errorf("open store: %w", s.explain(record.Cause(ctx, err)))
	}
	bound, cancel := context.WithTimeout(ctx, checkedFor)
	defer cancel()
	for _, table := range append([]string{"sqlite_schema"}, tables...) {
		err := s.quickCheck(bound, `"`+table+`"`)
		switch {
		case bound.Err() != nil && ctx.Err() == nil:
			return nil // the time limit is reached
		case err != nil:
			return err
		}
	}
	return nil
}

// quickCheck runs SQLite's quick_check. The argument is the name of a table, or a number:
// then quickCheck checks all tables and reports at most that many problems.
func (s *Store) quickCheck(ctx context.Context, what string) error {
	problems, err := s.pragma(ctx, "quick_check("+what+")")
	if err != nil {
		return fmt.Errorf("open store: %w", s.explain(record.Cause(ctx, err)))
	}
	if len(problems) > 0 {
		return fmt.Errorf("open store: %w", s.damaged(errors.New(strings.Join(strings.Fields(problems[0]), " "))))
	}
	return nil
}

func (s *Store) damaged(err error) *FileError {
	return &FileError{
		Path: s.path, Kind: ErrCorrupt, Err: err,
		Remedy: "keep a copy of the file; run belay store check for details, and belay store export to save readable sessions; then restore a backup, or save the readable data with: sqlite3 FILE .recover",
	}
}
