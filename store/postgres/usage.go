package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// usageCounted reports whether the usage of old messages is in its table.
func (s *Store) usageCounted(ctx context.Context) (bool, error) {
	var counted int64
	err := s.pool.QueryRow(ctx, "SELECT value FROM counters WHERE name = $1", record.CounterUsage).Scan(&counted)
	if errors.Is(err, pgx.ErrNoRows) {
		return true, nil // the tables are of another version, which does not need it
	}
	return counted > 0, err //nolint:wrapcheck // Open adds context
}

// oldPage is how many old messages one query reads.
const oldPage = 500

// countUsage fills the table of usage from the messages that are older than the table, once. It
// decodes them here: PostgreSQL refuses to take apart JSON with some escapes that models write.
func (s *Store) countUsage(ctx context.Context, pool *pgxpool.Pool) error {
	if done, err := s.usageCounted(ctx); err != nil || done {
		return err
	}
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err //nolint:wrapcheck // likewise
	}
	defer func() { _ = tx.Rollback(ctx) }() // does nothing after Commit
	for session, seq := "", int64(0); ; {
		rows, err := tx.Query(ctx, `SELECT m.session, m.seq, m.body, s.state FROM messages m JOIN sessions s ON s.id = m.session
			WHERE (m.session, m.seq) > ($1, $2) AND strpos(m.body, '"usage":') > 0 ORDER BY m.session, m.seq LIMIT $3`, session, seq, oldPage)
		if err != nil {
			return err //nolint:wrapcheck // likewise
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[record.OldMessage])
		if err != nil {
			return err //nolint:wrapcheck // likewise
		}
		pipe := &pipe{bound: bound{store: s}, tx: tx}
		queries := table.New(pipe)
		for i := range found {
			session, seq = found[i].Session, found[i].Seq
			if err := found[i].Count(ctx, queries); err != nil {
				return err
			}
		}
		if _, err := pipe.flush(ctx); err != nil {
			return err
		}
		if len(found) < oldPage {
			break
		}
	}
	if _, err := tx.Exec(ctx, "UPDATE counters SET value = 1 WHERE name = $1", record.CounterUsage); err != nil {
		return err //nolint:wrapcheck // likewise
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
