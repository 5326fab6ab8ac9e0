package postgres

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/store/internal/chain"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// checkpointEvery is how often the stores of a database add a checkpoint together, if they
// write.
const checkpointEvery = time.Minute

// nextPlace returns the place of the next entry of the main chain. The counter has one more
// than the number of entries, so that the last one is missed if it is removed. The counter is
// also the lock: only one transaction extends the main chain.
func nextPlace(ctx context.Context, db table.DBTX) (idx int64, err error) {
	err = db.QueryRowContext(ctx, "UPDATE counters SET value = value + 1 WHERE name = ? RETURNING value - 1", chain.Counter).Scan(&idx)
	return idx, err //nolint:wrapcheck // the caller adds context
}

// extend adds an entry to the main chain.
func extend(ctx context.Context, db table.DBTX, idx int64, now time.Time, body string) (audit.Entry, error) {
	next, before := audit.Entry{Idx: idx, Time: record.Nanos(now), Body: body}, ""
	err := db.QueryRowContext(ctx, "SELECT nextval('belay_chain'), coalesce((SELECT hash FROM audit_chain WHERE lane = '' AND idx = ?), '')", idx-1).Scan(&next.Seq, &before)
	if err != nil {
		return next, err //nolint:wrapcheck // the caller adds context
	}
	next.Hash = audit.HashOf(before, &next)
	_, err = db.ExecContext(ctx, "INSERT INTO audit_chain (seq, lane, idx, time, body, hash) VALUES (?, ?, ?, ?, ?, ?)", next.Seq, next.Lane, next.Idx, next.Time, next.Body, next.Hash)
	return next, err
}

// errNothingNew rolls a checkpoint back that would have no lines.
var errNothingNew = errors.New("nothing new")

// checkpoint adds an entry to the main chain that has the last entries of all lanes that were
// extended since the last checkpoints. It returns nil if there is nothing new.
//
// A transaction may get the number of its entry before a checkpoint and end after it. So a
// checkpoint also looks at the entries since a checkpoint that is older than any transaction.
func (s *Store) checkpoint(ctx context.Context) (*audit.Entry, error) {
	var entry audit.Entry
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		idx, err := nextPlace(ctx, w.pipe)
		if err != nil {
			return err
		}
		rows, err := w.tx.Query(ctx, lately, record.Nanos(s.now().Add(-s.opts.Timeout-clocksDiffer)))
		if err != nil {
			return err //nolint:wrapcheck // said below
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[audit.Entry])
		if err != nil {
			return err //nolint:wrapcheck // likewise
		}
		heads := unclaimed(found)
		if len(heads) == 0 {
			return errNothingNew
		}
		var lines chain.Lines
		for i := range heads {
			lines.Head(&heads[i])
		}
		entry, err = extend(ctx, w.pipe, idx, s.now(), lines.Body())
		return err
	})
	if errors.Is(err, errNothingNew) {
		return nil, nil //nolint:nilnil // see above
	}
	return &entry, err
}

// clocksDiffer is how much the clocks and the timeouts of the machines may differ.
const clocksDiffer = time.Minute

// lately reads the last entries of the lanes, and all checkpoints, since a checkpoint that is
// older than the parameter. The other entries of the main chain are those of chainOld: the server
// reads the first letter of their long bodies at most.
const lately = `WITH since AS (SELECT coalesce((SELECT seq FROM audit_chain WHERE lane = '' AND time < $1::bigint ORDER BY idx DESC LIMIT 1), 0) AS after),
heads AS (SELECT DISTINCT ON (lane) seq, lane, idx, time, '' AS body, hash FROM audit_chain WHERE lane <> '' AND seq > (SELECT after FROM since) ORDER BY lane, idx DESC)
SELECT seq, lane, idx, time, body, hash FROM heads
UNION ALL SELECT seq, lane, idx, time, body, hash FROM audit_chain WHERE lane = '' AND seq > (SELECT after FROM since) AND substr(body, 1, 1) = 'c'
ORDER BY lane, idx`

// unclaimed returns the last entries of lanes that no checkpoint has.
func unclaimed(found []audit.Entry) (heads []audit.Entry) {
	claimed := make(map[string]bool)
	for i := range found {
		if found[i].Lane == "" {
			for line := range strings.FieldsSeq(found[i].Body) {
				claimed[line] = true
			}
		}
	}
	for i := range found {
		var line chain.Lines
		if line.Head(&found[i]); found[i].Lane != "" && !claimed[line.Body()] {
			heads = append(heads, found[i])
		}
	}
	return heads
}

// checkpointApart adds a checkpoint if this store has written since its last one, and no other
// store has added one in the meantime. It does so in a goroutine, because heartbeats must not
// wait. Only beat calls it.
func (s *Store) checkpointApart(ctx context.Context) {
	now := time.Now()
	if now.Sub(s.checkpointed) < checkpointEvery || !s.lanes.mark(false) {
		return
	}
	s.checkpointed = now
	if !s.begin() {
		s.lanes.mark(true) // Close adds the checkpoint
		return
	}
	go func() { // ends when the checkpoint is stored; Close waits for it
		defer s.working.Done()
		var last int64
		err := s.ask(ctx, &last, "SELECT coalesce((SELECT time FROM audit_chain WHERE lane = '' ORDER BY idx DESC LIMIT 1), 0)")
		if err == nil && s.now().Sub(record.Moment(last)) >= checkpointEvery {
			_, err = s.checkpoint(ctx)
		} else { // what this store has written may be newer than the last checkpoint
			s.lanes.mark(true)
		}
		if err == nil {
			return
		}
		s.lanes.mark(true)
		if ctx.Err() == nil {
			s.opts.Logger.WarnContext(ctx, "cannot add a checkpoint to the audit chain: trying again later", "store", s.name, "error", s.explain(err))
		}
	}()
}

// VerifyAudit compares the records of hooks, the approvals and the grants with the chain. It
// reads the whole journal.
func (s *Store) VerifyAudit(ctx context.Context, anchors []audit.Anchor) (v *audit.Verification, err error) {
	err = s.snapshot(ctx, func(tx *sql.Tx) error {
		opts := &audit.VerifyOptions{Anchors: anchors}
		if err := tx.QueryRowContext(ctx, "SELECT value FROM counters WHERE name = $1", chain.Counter).Scan(&opts.Main); err != nil {
			return err //nolint:wrapcheck // said below
		}
		v, err = audit.Verify(ctx, chain.Database{Database: s.bind(tx)}, opts)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("verify: %w", s.explain(record.Cause(ctx, err)))
	}
	return v, nil
}

// AnchorAudit adds a checkpoint and returns it. It covers everything that was stored before
// the call.
func (s *Store) AnchorAudit(ctx context.Context) (anchor audit.Anchor, err error) {
	entry, err := s.checkpoint(ctx)
	switch {
	case err != nil:
		return anchor, fmt.Errorf("anchor: %w", err)
	case entry != nil:
		return audit.Anchor{Seq: entry.Seq, Hash: entry.Hash}, nil
	}
	err = s.persist(ctx, func() error {
		return s.pool.QueryRow(ctx, "SELECT seq, hash FROM audit_chain WHERE lane = '' ORDER BY idx DESC LIMIT 1").Scan(&anchor.Seq, &anchor.Hash)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = audit.ErrEmpty
	}
	if err != nil {
		return anchor, fmt.Errorf("anchor: %w", s.explain(record.Cause(ctx, err)))
	}
	return anchor, nil
}

// ExportAudit adds a checkpoint, and writes a snapshot of the chain and of the rows that it
// covers as JSON lines. The lines do not contain the conversation.
func (s *Store) ExportAudit(ctx context.Context, to io.Writer) error {
	if _, err := s.checkpoint(ctx); err != nil {
		return fmt.Errorf("export the journal: %w", err)
	}
	out := bufio.NewWriter(to)
	err := s.snapshot(ctx, func(tx *sql.Tx) error { return audit.WriteExport(ctx, chain.Database{Database: s.bind(tx)}, out) })
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("export the journal: %w", s.explain(record.Cause(ctx, err)))
	}
	return nil
}

// chained reports whether the rows that are older than the chain have entries.
func (s *Store) chained(ctx context.Context) (bool, error) {
	var value int64
	err := s.pool.QueryRow(ctx, "SELECT value FROM counters WHERE name = $1", chain.Counter).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return true, nil // the tables are of another version, which does not need it
	}
	return value > 0, err //nolint:wrapcheck // Open adds context
}

// chainOld adds entries for the rows that are older than the chain, once. Other processes
// cannot write meanwhile.
func (s *Store) chainOld(ctx context.Context, db *sql.DB) error {
	if done, err := s.chained(ctx); err != nil || done {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err //nolint:wrapcheck // the caller adds context
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	on := s.bind(tx)
	for _, statement := range []string{
		"LOCK TABLE runs, approvals, approval_words, sessions IN SHARE ROW EXCLUSIVE MODE",
		"UPDATE counters SET value = 1 WHERE name = '" + chain.Counter + "'",
	} {
		if _, err := on.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	err = chain.Old(ctx, chain.Database{Database: on}, func(body string) error {
		idx, err := nextPlace(ctx, on)
		if err == nil {
			_, err = extend(ctx, on, idx, s.now(), body)
		}
		return err
	})
	if err != nil {
		return err
	}
	return tx.Commit() //nolint:wrapcheck // likewise
}

// snapshot runs f on one snapshot of the database.
func (s *Store) snapshot(ctx context.Context, f func(tx *sql.Tx) error) error {
	var tx *sql.Tx
	err := s.persist(ctx, func() (err error) {
		tx, err = s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		return err //nolint:wrapcheck // the caller adds context
	})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // ends the read
	return f(tx)
}
