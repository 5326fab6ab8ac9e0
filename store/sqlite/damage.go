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

// How much is checked when a file is opened. SQLite checked about 600 MB per second
// when this was measured: a file of 32 MB takes about 60 ms.
const (
	// checkedWhole is the size in bytes up to which the whole file is checked.
	checkedWhole = 32 << 20
	// checkedFor is how long a larger file is checked, table by table.
	checkedFor = 100 * time.Millisecond
)

// checkPages searches for damaged pages, which would otherwise be found late or never.
// A file larger than checkedWhole is checked for a short time, small tables first;
// Check reads all of it.
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
			return nil // the time is over
		case err != nil:
			return err
		}
	}
	return nil
}

// quickCheck runs SQLite's quick_check on a table. If the argument is a number, it
// checks all tables and reports up to that many problems.
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

// damaged returns the error for a damaged file.
func (s *Store) damaged(err error) *FileError {
	return &FileError{
		Path: s.path, Kind: ErrCorrupt, Err: err,
		Remedy: "run belay store check for details, and belay store export to save readable sessions; keep a copy, then restore a backup or save what is left: sqlite3 FILE .recover",
	}
}
