// Package table contains the tables (as migrations) and the queries (as Go code that sqlc
// generates) of all SQL stores. The SQL is valid for both SQLite and PostgreSQL.
//
// Change the files in migrations and queries, then run make generate. Never
// change a released migration: add a new one. If older programs must not use the tables
// after a migration, the migration raises the counter oldest. Then it fails while such a
// program runs, and such a program cannot open the store any more.
package table

import (
	"context"
	"database/sql"
	"embed"
)

// Migrations are the migration files for goose.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// PlaceRun is PutRun for a database that returns the position of the row. A row that replaces
// another one keeps its position.
const PlaceRun = putRun + " RETURNING seq"

// Place runs the statement PlaceRun. It returns sql.ErrNoRows if the stored run has ended.
func (arg *PutRunParams) Place(ctx context.Context, stmt *sql.Stmt) (seq int64, err error) {
	err = stmt.QueryRowContext(ctx,
		arg.Seq, arg.ID, arg.Holder, arg.Subscription, arg.JobHandler, arg.Version, arg.Phase, arg.Dispatch,
		arg.OriginKind, arg.OriginName, arg.OriginFile, arg.OriginLine, arg.Session, arg.Turn, arg.Step, arg.Agent,
		arg.Execution, arg.State, arg.Shadow, arg.Visibility, arg.Job, arg.Attempt, arg.IdempotencyKey,
		arg.Started, arg.Ended, arg.Latency, arg.ErrorClass, arg.Severity, arg.Contributed, arg.Audit, arg.Diagnostics,
	).Scan(&seq)
	return seq, err //nolint:wrapcheck // the caller adds context
}
