package postgres

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// ExportVersion is the version of Export's format, which is the same as in store/sqlite. It
// changes only if a reader of the previous version would misread the new format. New keys
// and new types of lines do not change it.
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
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	alive, err := s.alive(ctx)
	if err == nil {
		err = s.look(ctx, func(q *table.Queries) error { return export(ctx, q, lines, session, alive) })
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("export session %q: %w", session, s.explain(record.Cause(ctx, err)))
	}
	return nil
}

func export(ctx context.Context, q *table.Queries, to *json.Encoder, session string, alive map[string]bool) error {
	row, err := q.SessionRow(ctx, session)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return belay.ErrNotFound
	case err != nil:
		return err
	}
	info, err := record.InfoOf(row, alive[row.Holder])
	if err != nil {
		return err
	}
	if err := to.Encode(ExportLine{Type: "session", Version: ExportVersion, Session: &info}); err != nil {
		return err //nolint:wrapcheck // the writer's own error
	}
	return record.Export(ctx, q, record.Exporter{
		Message:  func(m *belay.Message) error { return to.Encode(ExportLine{Type: "message", Message: m}) },
		Call:     func(c *belay.CallRecord) error { return to.Encode(ExportLine{Type: "call", Call: c}) },
		Approval: func(a *belay.Approval) error { return to.Encode(ExportLine{Type: "approval", Approval: a}) },
		Run:      func(r *hook.Run) error { return to.Encode(ExportLine{Type: "run", Run: r}) },
	}, row)
}
