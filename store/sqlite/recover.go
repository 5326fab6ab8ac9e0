package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Recovery describes what a store cleaned up after dead processes.
type Recovery struct {
	// Holders counts the dead holders. A process with several stores has several holders.
	Holders int `json:"holders"`
	// Sessions are the sessions that the dead processes held. Open are the ones with a
	// running turn: resume or abandon that turn.
	Sessions []string `json:"sessions,omitempty"`
	Open     []string `json:"open,omitempty"`
	// Runs are the ids of runs that had started and are now interrupted.
	Runs []string `json:"runs,omitempty"`
	// Due are jobs that were running and will be retried. Over are jobs that were running
	// and have ended, because they are not idempotent.
	Due  []string `json:"due,omitempty"`
	Over []string `json:"over,omitempty"`
}

// add adds the results of another cleanup.
func (r *Recovery) add(more Recovery) {
	r.Holders += more.Holders
	r.Sessions, r.Open = append(r.Sessions, more.Sessions...), append(r.Open, more.Open...)
	r.Runs, r.Due, r.Over = append(r.Runs, more.Runs...), append(r.Due, more.Due...), append(r.Over, more.Over...)
}

// Recovery returns what this store has cleaned up. A store cleans up when it is opened, and
// when it opens a session of a dead process. It also cleans up regularly while it runs jobs
// or claims turns.
func (s *Store) Recovery() Recovery {
	s.recovering.Lock()
	defer s.recovering.Unlock()
	r := s.recovered
	r.Sessions, r.Open = slices.Clone(r.Sessions), slices.Clone(r.Open)
	r.Runs, r.Due, r.Over = slices.Clone(r.Runs), slices.Clone(r.Due), slices.Clone(r.Over)
	return r
}

// recover cleans up after all dead holders. If the cleanup of one holder fails, recover
// continues with the others.
func (s *Store) recover(ctx context.Context) error {
	// A dead worker's job can be the only trace of the worker.
	gone := func(id string) bool { return s.gone(ctx, s.read, id) }
	did, err := s.recoverJobs(ctx, gone)
	s.note(did)
	problems := []error{err}
	holders, err := s.read.Holders(ctx)
	problems = append(problems, s.explain(err))
	for _, h := range holders {
		if gone(h.ID) {
			if err := s.settle(ctx, h.ID); err != nil {
				problems = append(problems, fmt.Errorf("cannot clean up after %s: %w", describe(h), err))
			}
		}
	}
	return errors.Join(append(problems, s.sweep(ctx))...)
}

// settle cleans up after a dead holder. It removes the holder's entry last, so that an
// interrupted cleanup is repeated. Two processes can call settle for the same holder at
// once.
func (s *Store) settle(ctx context.Context, holder string) error {
	did, err := s.recoverJobs(ctx, func(id string) bool { return id == holder })
	if err != nil { // do not fail: the next call of recover finds the job
		s.opts.Logger.WarnContext(ctx, "cannot clean up a job of a dead process", "store", s.path, "error", err)
	}
	var rest Recovery
	err = s.submit(ctx, func(ctx context.Context, w *writing) (err error) {
		rest, err = s.settled(ctx, w, holder)
		return err
	})
	if err == nil { // the transaction is stored
		did.add(rest)
	}
	s.note(did)
	if err != nil {
		return err
	}
	s.due.broadcast()
	return s.removeLock(holder)
}

// note adds the results of a cleanup to Recovery.
func (s *Store) note(did Recovery) {
	s.recovering.Lock()
	defer s.recovering.Unlock()
	s.recovered.add(did)
}

// settled releases a holder's sessions, ends its runs and removes its entry.
func (s *Store) settled(ctx context.Context, w *writing, holder string) (Recovery, error) {
	did, err := record.Settle(ctx, w.Queries, holder, s.now(), func(n int) ([]int64, error) { return w.number(ctx, n) })
	for i := range did.Runs {
		w.lines.RunFound(&did.Runs[i])
	}
	ids := did.RunIDs()
	for _, id := range ids {
		if err != nil {
			break
		}
		var row table.Run
		if row, err = w.RunByID(ctx, id); err == nil {
			w.lines.Run(&row)
		}
	}
	return Recovery{Holders: did.Holders, Sessions: did.Sessions, Open: did.Open, Runs: ids}, err
}

// leave releases the sessions of this store, ends its runs and removes it from the list of
// holders.
func (s *Store) leave() error {
	return s.submit(context.Background(), func(ctx context.Context, w *writing) error {
		_, err := s.settled(ctx, w, s.id)
		return err
	})
}
