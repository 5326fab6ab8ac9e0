package storetest

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/belay-run/belay"
)

// ErrInjected is the error of a failed commit if its plan has no other error.
var ErrInjected = errors.New("storetest: injected commit failure")

// Plan defines which commits of a faulty store fail. With the zero value none
// fails; it only counts them. It must not be copied, nor its fields changed
// while the store is in use.
type Plan struct {
	// Commit is the number of the commit that fails, counted from 1. Defaults to
	// none.
	Commit int
	// Stored makes it fail after it was stored, like a connection that breaks
	// before the answer arrives. By default it fails with nothing stored.
	Stored bool
	// Rest makes all later commits fail too, with nothing stored, as if the store
	// had disappeared. By default only one commit fails.
	Rest bool
	// Err is the error that it returns. Defaults to ErrInjected.
	Err error

	commits atomic.Int64
}

// Commits returns the number of attempted commits, including failed ones.
func (p *Plan) Commits() int { return int(p.commits.Load()) }

// Failed reports whether the planned failure has happened.
func (p *Plan) Failed() bool { return p.Commit > 0 && p.Commits() >= p.Commit }

// Faulty wraps a store so that a commit fails as planned. Everything else is
// passed on. The result is a [belay.JournalStore] and a [belay.ListStore] if the
// store is one.
func Faulty(store belay.Store, plan *Plan) belay.Store {
	journal, journals := store.(belay.JournalStore)
	list, lists := store.(belay.ListStore)
	switch {
	case journals && lists:
		return &faultyBoth{faultyJournal{journal, plan}, list}
	case journals:
		return &faultyJournal{journal, plan}
	case lists:
		return &faultyList{list, plan}
	default:
		return &faulty{store, plan}
	}
}

type faulty struct {
	belay.Store

	plan *Plan
}

func (f *faulty) Commit(ctx context.Context, c *belay.Commit) error {
	return f.plan.commit(ctx, f.Store, c)
}

type faultyJournal struct {
	belay.JournalStore

	plan *Plan
}

func (f *faultyJournal) Commit(ctx context.Context, c *belay.Commit) error {
	return f.plan.commit(ctx, f.JournalStore, c)
}

type faultyList struct {
	belay.ListStore

	plan *Plan
}

func (f *faultyList) Commit(ctx context.Context, c *belay.Commit) error {
	return f.plan.commit(ctx, f.ListStore, c)
}

type faultyBoth struct {
	faultyJournal

	list belay.ListStore
}

func (f *faultyBoth) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	return f.list.Sessions(ctx, filter)
}

func (f *faultyBoth) Approvals(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
	return f.list.Approvals(ctx, filter)
}

// commit commits to the store, or fails as planned. Errors of the store itself
// are passed on.
func (p *Plan) commit(ctx context.Context, store belay.Store, c *belay.Commit) error {
	n := int(p.commits.Add(1))
	fails := p.Commit > 0 && (n == p.Commit || p.Rest && n > p.Commit)
	if fails && (!p.Stored || n > p.Commit) {
		return p.failure()
	}
	err := store.Commit(ctx, c)
	if err == nil && fails {
		return p.failure()
	}
	return err
}

func (p *Plan) failure() error {
	if p.Err != nil {
		return p.Err
	}
	return ErrInjected
}
