package chain

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// serverHash returns an expression of PostgreSQL for audit.RowHash of a row.
func serverHash(alias string, columns []string) string {
	fields := make([]string, len(columns))
	for i, column := range columns {
		fields[i] = serverField(alias + "." + column + "::text")
	}
	return "encode(sha256(convert_to(" + strings.Join(fields, " || ") + ", 'UTF8')), 'base64')"
}

// serverField is how audit appends a field, in the SQL of PostgreSQL.
func serverField(expression string) string {
	return "octet_length(convert_to(" + expression + ", 'UTF8')) || ':' || " + expression
}

// ServerLines is a query of PostgreSQL for the lines of rows. Its parameters are the ids of
// runs and of approvals.
func ServerLines(runIDs, approvalIDs string) string {
	key := fmt.Sprintf("encode(substr(sha256(convert_to(x.id, 'UTF8')), 1, %d), 'base64')", audit.KeyLength)
	return "SELECT 'r' || x.seq || '=' || " + serverHash("x", audit.Runs.Columns) + " AS line FROM runs x WHERE x.id = ANY (" + runIDs + ")" +
		" UNION ALL SELECT 'a' || " + key + " || '=' || " + serverHash("x", audit.Approvals.Columns) + " FROM approvals x WHERE x.id = ANY (" + approvalIDs + ")" +
		" UNION ALL SELECT 'w' || " + key + " || '=' || " + serverHash("x", audit.Words.Columns) + " FROM approval_words x WHERE x.id = ANY (" + approvalIDs + ")"
}

// ServerEntryHash is audit.HashOf in the SQL of PostgreSQL.
func ServerEntryHash(before, seq, lane, idx, time, body string) string {
	return "encode(sha256(convert_to(" + strings.Join([]string{
		serverField(before), serverField(seq + "::text"), serverField(lane), serverField(idx + "::text"), serverField(time + "::text"), serverField(body),
	}, " || ") + ", 'UTF8')), 'hex')"
}

// database is a snapshot of a database.
type database struct{ db record.Database }

// Has reports that a database has every table.
func (d database) Has(*audit.Table) bool { return true }

func (d database) query(ctx context.Context, query string, scan func(*sql.Rows) error) error {
	rows, err := d.db.QueryContext(ctx, query)
	if err != nil {
		return record.Cause(ctx, err)
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the error
	for rows.Next() {
		if err := scan(rows); err != nil {
			return record.Cause(ctx, err)
		}
	}
	return record.Cause(ctx, rows.Err())
}

// Entries reads the chain.
func (d database) Entries(ctx context.Context, each func(*audit.Entry) error) error {
	return d.query(ctx, "SELECT seq, lane, idx, time, body, hash FROM audit_chain ORDER BY seq", func(rows *sql.Rows) error {
		var e audit.Entry
		if err := rows.Scan(&e.Seq, &e.Lane, &e.Idx, &e.Time, &e.Body, &e.Hash); err != nil {
			return err //nolint:wrapcheck // the caller adds context
		}
		return each(&e)
	})
}

// Rows reads a table.
func (d database) Rows(ctx context.Context, t *audit.Table, each func([]string) error) error {
	query := "SELECT " + strings.Join(t.Columns, ", ") + " FROM " + t.Name + " ORDER BY " + t.Order
	into := make([]any, len(t.Columns))
	return d.query(ctx, query, func(rows *sql.Rows) error {
		values := make([]string, len(t.Columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err //nolint:wrapcheck // the caller adds context
		}
		for i, column := range t.Columns {
			if column == "shadow" || column == "floor" { // SQLite has numbers for them
				switch values[i] {
				case "0":
					values[i] = "false"
				case "1":
					values[i] = "true"
				}
			}
		}
		return each(values)
	})
}

// Grants reads the grants of all sessions.
func (d database) Grants(ctx context.Context, each func(session, hash string) error) error {
	return d.query(ctx, "SELECT id, state FROM sessions WHERE state <> ''", func(rows *sql.Rows) error {
		var id, text string
		if err := rows.Scan(&id, &text); err != nil {
			return err //nolint:wrapcheck // the caller adds context
		}
		var state struct {
			Grants []belay.Grant `json:"grants"`
		}
		if err := record.Decode(text, &state); err != nil {
			return each(id, "unreadable") // no grants have this hash, so Verify reports them
		}
		if hash := GrantsHash(state.Grants); hash != "" {
			return each(id, hash)
		}
		return nil
	})
}

// Verify compares the rows of a snapshot with the chain.
func Verify(ctx context.Context, db record.Database, opts *audit.VerifyOptions) (*audit.Verification, error) {
	return audit.Verify(ctx, database{db}, opts)
}

// Export writes the chain and the rows of a snapshot.
func Export(ctx context.Context, db record.Database, to io.Writer) error {
	return audit.WriteExport(ctx, database{db}, to)
}

// RowOf returns the row that a write of a run makes. seq is the position of the stored row: a
// write that replaces a row keeps its position.
func RowOf(p *table.PutRunParams, seq int64) table.Run {
	r := table.Run{
		Seq: seq, ID: p.ID, Holder: p.Holder, Subscription: p.Subscription, JobHandler: p.JobHandler, Version: p.Version, Phase: p.Phase, Dispatch: p.Dispatch,
		OriginKind: p.OriginKind, OriginName: p.OriginName, OriginFile: p.OriginFile, OriginLine: p.OriginLine,
		Session: p.Session, Turn: p.Turn, Step: p.Step, Agent: p.Agent, Execution: p.Execution, State: p.State, Shadow: p.Shadow, Visibility: p.Visibility,
		Job: p.Job, Attempt: p.Attempt, IdempotencyKey: p.IdempotencyKey, Started: p.Started, Ended: p.Ended, Latency: p.Latency,
		ErrorClass: p.ErrorClass, Severity: p.Severity, Contributed: p.Contributed, Audit: p.Audit, Diagnostics: p.Diagnostics,
	}
	if seq != p.Seq {
		r.Changed = p.Seq
	}
	return r
}
