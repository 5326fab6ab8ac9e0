package storetest

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/belay-run/belay"
)

// ErrInjected is the error of a commit that fails as planned, unless Plan.Err is set.
var ErrInjected = errors.New("storetest: injected commit failure")

// Plan says which commits of a faulty store fail. With the zero value, no commit fails, and
// the plan only counts commits. Do not copy a Plan. Do not change its fields while the
// store is in use.
type Plan struct {
	// Commit is the number of the commit that fails, from 1. Defaults to no commit.
	Commit int
	// Stored makes the commit fail after it was stored, as when the connection breaks
	// before the answer arrives. By default nothing of the commit is stored.
	Stored bool
	// Rest makes all later commits fail, too, and nothing of them is stored. By default
	// only one commit fails.
	Rest bool
	// Err is the error that the failed commit returns. Defaults to ErrInjected.
	Err error

	commits atomic.Int64
}

// Commits returns the number of commits so far, including failed ones.
func (p *Plan) Commits() int { return int(p.commits.Load()) }

// Failed reports whether the planned failure has happened.
func (p *Plan) Failed() bool { return p.Commit > 0 && p.Commits() >= p.Commit }

// Faulty wraps a store so that commits fail as planned. All other calls go to the store.
// The result is a [belay.JournalStore] or a [belay.ListStore] if the store is one.
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

// commit commits to the store or fails as planned. It returns errors of the store
// unchanged.
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
