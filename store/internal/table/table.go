// Package table contains the tables (as migrations) and the queries (as Go code that sqlc
// generates) of all SQL stores. The SQL is valid for both SQLite and PostgreSQL.
//
// Change the files in migrations and queries, then run make generate. Never
// change a released migration: add a new one.
package table

import "embed"

// Migrations are the migration files for goose.
//
//go:embed migrations/*.sql
var Migrations embed.FS
