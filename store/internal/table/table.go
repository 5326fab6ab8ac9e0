// Package table is what the stores on SQL databases share: the tables, as
// migrations, and the queries, as Go made from SQL by sqlc. The SQL is written so
// that SQLite and PostgreSQL both read it.
//
// Change the files in migrations and queries, then run make generate. A migration
// that was released is never changed: add one.
package table

import "embed"

// Migrations holds the migrations, for goose.
//
//go:embed migrations/*.sql
var Migrations embed.FS
