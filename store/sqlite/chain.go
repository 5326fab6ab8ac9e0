package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/store/internal/chain"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// The chain of a file has one lane: SQLite allows one writer at a time. Each transaction that
// writes runs, approvals or grants adds one entry, however many commits share it.

// link adds an entry for what the transaction writes, and returns the new head of the chain.
// It keeps the head of the last transaction, so that it usually executes one statement. If
// another process has added an entry, link reads the head again.
func (c *committer) link(ctx context.Context, w *writing) (audit.Entry, error) {
	if w.lines.Len() == 0 {
		return c.head, nil
	}
	return link(ctx, w.Queries, c.head, w.lines.Body(), record.Nanos(c.store.now()))
}

func link(ctx context.Context, q *table.Queries, head audit.Entry, body string, now int64) (audit.Entry, error) {
	for read := head.Seq == 0; ; read = true {
		if read {
			last, err := q.LastEntry(ctx)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return head, err
			}
			head = audit.Entry(last)
		}
		next := audit.Entry{Seq: head.Seq + 1, Idx: head.Seq + 1, Time: now, Body: body}
		next.Hash = audit.HashOf(head.Hash, &next)
		n, err := q.AddEntry(ctx, table.AddEntryParams(next))
		switch {
		case err != nil:
			return head, err
		case n > 0:
			next.Body = "" // only its place and its hash are needed again
			return next, nil
		case read:
			return head, fmt.Errorf("entry %d exists already", next.Seq) // a writer excludes all others, so this cannot happen
		}
	}
}

// chainApproval adds the hashes of a stored approval to the entry of the transaction.
func (w *writing) chainApproval(ctx context.Context, id string) error {
	row, err := w.Approval(ctx, id)
	if err == nil {
		w.lines.Approval(&row)
	}
	return err
}

// chainOld adds entries for the rows that are older than the chain, once. The caller has
// exclusive access to the file.
func (s *Store) chainOld(ctx context.Context) (err error) {
	var chained int64
	if err := s.writer.QueryRowContext(ctx, "SELECT value FROM counters WHERE name = ?", chain.Counter).Scan(&chained); err != nil || chained > 0 {
		return err //nolint:wrapcheck // the caller adds context
	}
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return err //nolint:wrapcheck // likewise
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	head, now := audit.Entry{}, record.Nanos(s.now())
	q := table.New(tx)
	err = chain.Old(ctx, chain.Database{Database: tx, Untyped: true}, func(body string) (err error) {
		head, err = link(ctx, q, head, body, now)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE counters SET value = 1 WHERE name = ?", chain.Counter); err != nil {
		return err //nolint:wrapcheck // likewise
	}
	return tx.Commit() //nolint:wrapcheck // likewise
}

// VerifyAudit compares the records of hooks, the approvals and the grants with the chain. It
// reads the whole journal.
func (s *Store) VerifyAudit(ctx context.Context, anchors []audit.Anchor) (v *audit.Verification, err error) {
	err = s.snapshot(ctx, func(tx *sql.Tx) error {
		v, err = audit.Verify(ctx, chain.Database{Database: tx, Untyped: true}, &audit.VerifyOptions{Anchors: anchors, OneLane: true})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("verify: %w", s.explain(record.Cause(ctx, err)))
	}
	return v, nil
}

// AnchorAudit returns the last entry of the chain.
func (s *Store) AnchorAudit(ctx context.Context) (audit.Anchor, error) {
	e, err := s.read.LastEntry(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return audit.Anchor{}, fmt.Errorf("anchor: %w", audit.ErrEmpty)
	}
	if err != nil {
		return audit.Anchor{}, fmt.Errorf("anchor: %w", s.explain(record.Cause(ctx, err)))
	}
	return audit.Anchor{Seq: e.Seq, Hash: e.Hash}, nil
}

// ExportAudit writes a snapshot of the chain and of the rows that it covers as JSON lines. The
// lines do not contain the conversation.
func (s *Store) ExportAudit(ctx context.Context, to io.Writer) error {
	out := bufio.NewWriter(to)
	err := s.snapshot(ctx, func(tx *sql.Tx) error {
		return audit.WriteExport(ctx, chain.Database{Database: tx, Untyped: true}, out)
	})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("export the journal: %w", s.explain(record.Cause(ctx, err)))
	}
	return nil
}

// snapshot runs f on one snapshot of the database.
func (s *Store) snapshot(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := s.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err //nolint:wrapcheck // the caller adds context
	}
	defer func() { _ = tx.Rollback() }() // ends the read
	return f(tx)
}

var _ audit.Store = (*Store)(nil)
