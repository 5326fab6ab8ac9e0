package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// ExportVersion is the version of Export's format. It changes only if a reader of the
// previous version would misread the new format. New keys and new types of lines do not
// change it.
const ExportVersion = 1

// ExportLine is a line of an export. Type says which other field is set. The first line has
// the type "session". The next lines have the types "message", "call", "approval" and
// "run".
type ExportLine struct {
	Type string `json:"type"`
	// Version is ExportVersion. Only the first line has it.
	Version  int                `json:"version,omitempty"`
	Session  *belay.SessionInfo `json:"session,omitempty"`
	Message  *belay.Message     `json:"message,omitempty"`
	Call     *belay.CallRecord  `json:"call,omitempty"`
	Approval *belay.Approval    `json:"approval,omitempty"`
	Run      *hook.Run          `json:"run,omitempty"`
}

// Export writes a snapshot of a session as JSON lines, see [ExportLine]. It returns
// belay.ErrNotFound if the session does not exist. Lines of the types "approval" and "run"
// do not contain the conversation.
func (s *Store) Export(ctx context.Context, to io.Writer, session string) error {
	out := bufio.NewWriter(to)
	e := &exporter{to: json.NewEncoder(out)}
	e.to.SetEscapeHTML(false)
	err := s.look(ctx, func(q *table.Queries) error { return s.export(ctx, q, e, session) })
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("export session %q: %w", session, s.explain(record.Cause(ctx, err)))
	}
	return nil
}

type exporter struct{ to *json.Encoder }

func (e *exporter) write(line ExportLine) error {
	return e.to.Encode(line) //nolint:wrapcheck // the writer's own error
}

func (s *Store) export(ctx context.Context, q *table.Queries, e *exporter, session string) error {
	row, err := q.SessionRow(ctx, session)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return belay.ErrNotFound
	case err != nil:
		return err
	}
	info, err := s.info(ctx, q, row, map[string]bool{"": false})
	if err != nil {
		return err
	}
	if err := e.write(ExportLine{Type: "session", Version: ExportVersion, Session: &info}); err != nil {
		return err
	}
	return record.Export(ctx, q, record.Exporter{
		Message:  func(m *belay.Message) error { return e.write(ExportLine{Type: "message", Message: m}) },
		Call:     func(c *belay.CallRecord) error { return e.write(ExportLine{Type: "call", Call: c}) },
		Approval: func(a *belay.Approval) error { return e.write(ExportLine{Type: "approval", Approval: a}) },
		Run:      func(r *hook.Run) error { return e.write(ExportLine{Type: "run", Run: r}) },
	}, row)
}

// Backup writes a copy of the store to a new file while the store is in use. The copy is a
// snapshot and a complete store. Only the owner can read the file.
func (s *Store) Backup(ctx context.Context, path string) error {
	path, err := named(path)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	// SQLite can write into an empty file. The file is created here so that only the owner
	// can read it.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	err = file.Close()
	if err == nil {
		err = s.copyTo(ctx, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("backup to %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// copyTo fills an empty file with a copy of the database.
func (s *Store) copyTo(ctx context.Context, path string) error {
	// A new connection is needed. The readers' connections cannot write, not even to
	// another file. The writer's connection would block other writes during the copy.
	db := s.pool(url.Values{}, false)
	defer func() { _ = db.Close() }() // the connection writes nothing to the store
	_, err := db.ExecContext(ctx, "VACUUM INTO ?", path)
	err = s.explain(record.Cause(ctx, err))
	if full, ok := errors.AsType[*FileError](err); ok && errors.Is(full.Kind, ErrFull) {
		full.Path = path // the full disk is the disk of the copy
	}
	return err
}
