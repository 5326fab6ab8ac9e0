package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/belay-run/belay/store/internal/table"
)

// create makes the tables of a new file, in one transaction. The result is the same as that
// of goose, which needs two transactions for each migration.
func (s *Store) create(ctx context.Context, migrations []*goose.Source) error {
	versions, err := database.NewStore(goose.DialectSQLite3, versionTable)
	if err != nil {
		return err //nolint:wrapcheck // the caller adds context
	}
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return err //nolint:wrapcheck // likewise
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := versions.CreateVersionTable(ctx, tx); err != nil {
		return err //nolint:wrapcheck // likewise
	}
	if err := versions.Insert(ctx, tx, database.InsertRequest{}); err != nil { // goose begins with version 0
		return err //nolint:wrapcheck // likewise
	}
	for _, m := range migrations {
		up, err := upOf(m.Path)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, up); err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
		if err := versions.Insert(ctx, tx, database.InsertRequest{Version: m.Version}); err != nil {
			return err //nolint:wrapcheck // likewise
		}
	}
	return tx.Commit() //nolint:wrapcheck // likewise
}

// upOf returns the statements of a migration, without those that take it back.
func upOf(name string) (string, error) {
	text, err := table.Migrations.ReadFile("migrations/" + name)
	if err != nil {
		return "", fmt.Errorf("migrations: %w", err)
	}
	up, _, _ := strings.Cut(string(text), "-- +goose Down")
	return up, nil
}
