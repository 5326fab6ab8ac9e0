package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay/store/internal/record"
)

// Recovery describes what a store cleaned up after dead holders.
type Recovery struct {
	// Holders counts the dead holders. A process with several stores has several holders.
	Holders int `json:"holders"`
	// Sessions are the sessions that the dead holders held. Open are the ones with a
	// running turn: resume or abandon that turn.
	Sessions []string `json:"sessions,omitempty"`
	Open     []string `json:"open,omitempty"`
	// Runs are the ids of runs that had started and are now interrupted.
	Runs []string `json:"runs,omitempty"`
	// Due are jobs that were running and will be retried. Over are jobs that were running
	// and have ended, because they are not idempotent.
	Due  []string `json:"due,omitempty"`
	Over []string `json:"over,omitempty"`

	turns int // number of turns that the holder had claimed
}

// add adds the results of another cleanup, except turns.
func (r *Recovery) add(more Recovery) {
	r.Holders += more.Holders
	r.Sessions, r.Open = append(r.Sessions, more.Sessions...), append(r.Open, more.Open...)
	r.Runs, r.Due, r.Over = append(r.Runs, more.Runs...), append(r.Due, more.Due...), append(r.Over, more.Over...)
}

// Recovery returns what this store has cleaned up. A store cleans up when it is opened, and
// when it opens a session of a dead holder. It also cleans up regularly while it runs jobs
// or claims turns.
func (s *Store) Recovery() Recovery {
	s.recovering.Lock()
	defer s.recovering.Unlock()
	r := s.recovered
	r.Sessions, r.Open = slices.Clone(r.Sessions), slices.Clone(r.Open)
	r.Runs, r.Due, r.Over = slices.Clone(r.Runs), slices.Clone(r.Due), slices.Clone(r.Over)
	return r
}

// note adds the results of a cleanup to Recovery.
func (s *Store) note(did Recovery) {
	s.recovering.Lock()
	defer s.recovering.Unlock()
	s.recovered.add(did)
}

// recover cleans up after all dead holders. If the cleanup of one holder fails, recover
// continues with the others.
func (s *Store) recover(ctx context.Context) error {
	// A dead worker's job can be the only trace of the worker.
	var unknown error
	did, err := s.recoverJobs(ctx, func(id string) bool {
		gone, _, err := s.gone(ctx, s.pool, id)
		unknown = errors.Join(unknown, err)
		return err == nil && gone
	})
	s.note(did)
	problems := []error{err, unknown}
	holders, err := s.holders(ctx)
	problems = append(problems, err)
	for _, h := range holders {
		if h.gone && h.id != s.id {
			if err := s.settle(ctx, h.id); err != nil {
				problems = append(problems, fmt.Errorf("cannot clean up after %s: %w", describe(h), err))
			}
		}
	}
	return s.explain(errors.Join(problems...))
}

// settle cleans up after a dead holder. It removes the holder's entry last, so that an
// interrupted cleanup is repeated. Two processes can call settle for the same holder at
// once. If the holder sends a heartbeat in the meantime, it loses its jobs, but keeps its
// sessions.
func (s *Store) settle(ctx context.Context, holder string) error {
	did, err := s.recoverJobs(ctx, func(id string) bool { return id == holder })
	if err != nil { // do not fail: the next call of recover finds the job
		s.opts.Logger.WarnContext(ctx, "cannot clean up a job of a dead process", "store", s.name, "error", err)
	}
	var rest Recovery
	err = s.submit(ctx, func(ctx context.Context, w *writing) (err error) {
		rest, err = s.settled(ctx, w, holder)
		return err
	})
	if err == nil { // the transaction is stored
		did.add(rest)
		s.tellTurns(ctx, rest)
	}
	s.note(did)
	return err
}

// settled releases a holder's sessions, ends its runs and removes its entry. If the holder
// is another store that is alive, settled does nothing.
func (s *Store) settled(ctx context.Context, w *writing, holder string) (Recovery, error) {
	var lives bool
	// Until the transaction ends, the holder cannot send a heartbeat or take a session.
	err := w.tx.QueryRow(ctx, "SELECT seen + lease > clock_timestamp() FROM holders WHERE id = $1 FOR UPDATE", holder).Scan(&lives)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // another store has cleaned up already, or only a job is left
	case err != nil:
		return Recovery{}, err //nolint:wrapcheck // the caller adds context
	case lives && holder != s.id:
		return Recovery{}, nil
	}
	// Lock sessions before turns and runs. Other transactions use the same order, which
	// prevents deadlocks.
	if _, err := w.tx.Exec(ctx, "SELECT 1 FROM sessions WHERE holder = $1 AND holder <> '' ORDER BY id FOR UPDATE", holder); err != nil {
		return Recovery{}, err //nolint:wrapcheck // likewise
	}
	// A process that counts as dead can still end a run. Until the transaction ends, it cannot.
	if _, err := w.tx.Exec(ctx, "SELECT 1 FROM runs WHERE holder = $1 AND state = 'started' ORDER BY seq FOR UPDATE", holder); err != nil {
		return Recovery{}, err //nolint:wrapcheck // likewise
	}
	did, err := record.Settle(ctx, w.Queries, holder, s.now(), func(n int) ([]int64, error) { return w.number(ctx, n) })
	for i := range did.Runs {
		w.touched.lines.RunFound(&did.Runs[i])
	}
	ids := did.RunIDs()
	w.touched.runs = append(w.touched.runs, ids...)
	return Recovery{Holders: did.Holders, Sessions: did.Sessions, Open: did.Open, Runs: ids, turns: did.Turns}, err
}

// leave releases the sessions of this store, ends its runs and removes it from the list of
// holders.
func (s *Store) leave() error {
	var did Recovery
	err := s.submit(context.Background(), func(ctx context.Context, w *writing) (err error) {
		did, err = s.settled(ctx, w, s.id)
		return err
	})
	if err == nil {
		s.tellTurns(context.Background(), did)
	}
	return err
}

// tellTurns wakes workers if turns are due again.
func (s *Store) tellTurns(ctx context.Context, did Recovery) {
	if did.turns > 0 {
		s.ring(ctx, turnChannel, "")
	}
}
