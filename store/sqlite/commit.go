package sqlite

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
)

// Commit writes all of c or nothing. It returns when the data is on the disk.
func (s *Store) Commit(ctx context.Context, c *belay.Commit) error {
	rows, err := record.NewCommit(c, s.id, s.now())
	if err == nil {
		at := continues
		if len(c.Messages) > 0 && c.Messages[0].Kind == belay.KindUser {
			at = begins
		}
		err = s.submitStage(ctx, at, func(ctx context.Context, w *writing) error { return s.put(ctx, w, rows) })
	}
	if err != nil {
		return fmt.Errorf("commit to session %q with epoch %d: %w", c.Session, c.Epoch, err)
	}
	s.granted.Stored(c.Session, rows)
	s.committer.commits.Add(1)
	s.watches.wake(c.Session)
	return nil
}

// put writes a commit. After an error the caller rolls back.
func (s *Store) put(ctx context.Context, w *writing, rows *record.Commit) error {
	if hash, changed := s.granted.Changed(rows); changed {
		if err := w.lines.GrantsFound(ctx, w.Queries, rows.Session()); err != nil {
			return err
		}
		w.lines.Grants(rows.Session(), hash)
	}
	if err := rows.Put(ctx, w.Queries); err != nil {
		return err
	}
	for _, id := range rows.Approvals {
		if err := w.chainApproval(ctx, id); err != nil {
			return err
		}
	}
	if err := w.appendRuns(ctx, rows.Runs); err != nil {
		return err
	}
	return s.insertJobs(ctx, w, rows.Jobs)
}
