package chain

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

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
	return "octet_length(convert_to(" + expression + ", 'UTF8'))::text || ':' || " + expression
}

// ServerRunLines is a query of PostgreSQL for the lines of runs. Its parameter is a list of ids.
func ServerRunLines(ids string) string {
	return "SELECT CASE x.state WHEN 'started' THEN 'r' ELSE 'R' END || x.seq::text || '=' || " + serverHash("x", audit.Runs.Columns) + " AS line FROM runs x WHERE x.id = ANY (" + ids + ")"
}

// ServerApprovalLines is a query of PostgreSQL for the lines of approvals and their words. Its
// parameter is a list of ids.
func ServerApprovalLines(ids string) string {
	key := fmt.Sprintf("encode(substr(sha256(convert_to(x.id, 'UTF8')), 1, %d), 'base64')", audit.KeyLength)
	return "SELECT CASE x.decision WHEN '' THEN 'a' ELSE 'A' END || " + key + " || '=' || " + serverHash("x", audit.Approvals.Columns) + " FROM approvals x WHERE x.id = ANY (" + ids + ")" +
		" UNION ALL SELECT CASE y.decision WHEN '' THEN 'w' ELSE 'W' END || " + key + " || '=' || " + serverHash("x", audit.Words.Columns) + " FROM approval_words x JOIN approvals y ON y.id = x.id WHERE x.id = ANY (" + ids + ")"
}

// ServerEntryHash is audit.HashOf in the SQL of PostgreSQL.
func ServerEntryHash(before, seq, lane, idx, time, body string) string {
	return "encode(sha256(convert_to(" + strings.Join([]string{
		serverField(before), serverField(seq + "::text"), serverField(lane), serverField(idx + "::text"), serverField(time + "::text"), serverField(body),
	}, " || ") + ", 'UTF8')), 'hex')"
}

// Database is a snapshot of a database. audit.Verify and audit.WriteExport read it.
type Database struct {
	record.Database

	// Untyped says that a column can have values of any type, as in SQLite. A value of
	// another type has the same text, but a query does not find it: so it counts as changed.
	Untyped bool
}

var _ audit.Source = Database{}

// Table returns the table: a database has every one.
func (d Database) Table(t *audit.Table) *audit.Table { return t }

// The columns that are no texts.
var (
	numbers = words("seq", "changed", "origin_line", "step", "attempt", "started", "ended", "latency", "more", "response", "asked", "expires", "idx", "time")
	truths  = words("shadow", "floor")
)

func words(all ...string) map[string]bool {
	set := make(map[string]bool, len(all))
	for _, word := range all {
		set[word] = true
	}
	return set
}

// selected returns the expressions for columns. A value of the wrong type becomes a text that
// no store writes into the column.
func (d Database) selected(columns ...string) string {
	if !d.Untyped {
		return strings.Join(columns, ", ")
	}
	all := make([]string, len(columns))
	for i, c := range columns {
		other := "typeof(" + c + ") || ' ' || quote(" + c + ")"
		switch {
		case numbers[c]:
			all[i] = "CASE typeof(" + c + ") WHEN 'integer' THEN " + c + " ELSE " + other + " END"
		case truths[c]:
			all[i] = "CASE WHEN typeof(" + c + ") <> 'integer' THEN " + other + " WHEN " + c + " = 0 THEN 'false' WHEN " + c + " = 1 THEN 'true' ELSE " + other + " END"
		default:
			all[i] = "CASE typeof(" + c + ") WHEN 'text' THEN " + c + " ELSE " + other + " END"
		}
	}
	return strings.Join(all, ", ")
}

func (d Database) query(ctx context.Context, query string, scan func(*sql.Rows) error) error {
	rows, err := d.QueryContext(ctx, query)
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

// Entries reads the chain. A value of the wrong type must not end it: Verify says where it is.
func (d Database) Entries(ctx context.Context, each func(e *audit.Entry, wrong string) error) error {
	return d.query(ctx, "SELECT "+d.selected("seq", "lane", "idx", "time", "body", "hash")+" FROM audit_chain ORDER BY seq", func(rows *sql.Rows) error {
		var e audit.Entry
		var idx, at string
		if err := rows.Scan(&e.Seq, &e.Lane, &idx, &at, &e.Body, &e.Hash); err != nil {
			return err //nolint:wrapcheck // the caller adds context
		}
		var wrong []string
		for _, column := range []struct {
			name, text string
			to         *int64
		}{{"idx", idx, &e.Idx}, {"time", at, &e.Time}} {
			n, err := strconv.ParseInt(column.text, 10, 64)
			if err != nil {
				wrong = append(wrong, column.name)
			}
			*column.to = n
		}
		return each(&e, strings.Join(wrong, " and "))
	})
}

// Rows reads a table.
func (d Database) Rows(ctx context.Context, t *audit.Table, each func([]string) error) error {
	query := "SELECT " + d.selected(t.Columns...) + " FROM " + t.Name + " ORDER BY " + t.Order
	into := make([]any, len(t.Columns))
	return d.query(ctx, query, func(rows *sql.Rows) error {
		values := make([]string, len(t.Columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err //nolint:wrapcheck // the caller adds context
		}
		return each(values)
	})
}

// Grants reads the grants of all sessions.
func (d Database) Grants(ctx context.Context, each func(session, hash string) error) error {
	return d.query(ctx, "SELECT "+d.selected("id", "state")+" FROM sessions WHERE state <> ''", func(rows *sql.Rows) error {
		var id, text string
		if err := rows.Scan(&id, &text); err != nil {
			return err //nolint:wrapcheck // the caller adds context
		}
		if hash := storedGrants(text); hash != "" {
			return each(id, hash)
		}
		return nil
	})
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
