package storetest_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/store/memstore"
)

// approvalFaults are stores with wrong approvals and decisions.
var approvalFaults = []fault{
	{"keeps the first form of an approval", onCommit(func(f *flawed, c *belay.Commit) {
		c.Approvals = slices.DeleteFunc(c.Approvals, func(a belay.Approval) bool { return f.asked(a.ID).ID != "" })
	}), []string{"a commit replaces a pending approval"}},
	{"lets a commit overwrite any approval", onOpen(func(f *flawed, _ string, stored *belay.Stored) {
		for i := range stored.Approvals {
			stored.Approvals[i] = f.asked(stored.Approvals[i].ID)
		}
	}), []string{"a commit does not change a decided approval, and is stored"}},
	{"lets a commit overwrite the approvals of other sessions", func(f *flawed) {
		all := make(map[string]belay.Approval)
		onCommit(func(_ *flawed, c *belay.Commit) {
			for _, a := range c.Approvals {
				all[a.ID] = a
			}
		})(f)
		onOpen(func(_ *flawed, _ string, stored *belay.Stored) {
			for i := range stored.Approvals {
				stored.Approvals[i] = all[stored.Approvals[i].ID]
			}
		})(f)
	}, []string{"a commit does not replace an approval of another session"}},
	{"refuses a commit with an approval that is decided", func(f *flawed) {
		decided := make(map[string]bool)
		f.decide = func(ctx context.Context, d belay.Decision) (belay.Approval, error) {
			decided[d.Approval] = true
			return f.inner.Decide(ctx, d)
		}
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			for _, a := range c.Approvals {
				if decided[a.ID] {
					return belay.ErrDecided
				}
			}
			return f.inner.Commit(ctx, c)
		}
	}, []string{"a commit does not change a decided approval, and is stored"}},
	{"opens approvals by the ids of calls", onOpen(func(f *flawed, session string, stored *belay.Stored) {
		f.mu.Lock()
		defer f.mu.Unlock()
		stored.Approvals = nil
		for _, a := range f.approvals {
			if a.Session == session && slices.ContainsFunc(stored.Calls, func(c belay.CallRecord) bool { return c.ID == a.Call }) {
				stored.Approvals = append(stored.Approvals, a)
			}
		}
	}), []string{"Open returns only the approvals of the last response"}},
	{"returns an approval without its decision", onDecide(func(ctx context.Context, f *flawed, d belay.Decision) (belay.Approval, error) {
		a, err := f.inner.Decide(ctx, d)
		a.Decided = nil
		return a, err
	}), []string{"a decision is stored and returned with every field"}},
	{"forgets who decided", onDecide(func(ctx context.Context, f *flawed, d belay.Decision) (belay.Approval, error) {
		d.By = ""
		return f.inner.Decide(ctx, d)
	}), []string{"a decision is stored and returned with every field", "of many concurrent decisions one is stored, and the others get it returned"}},
	{"does not return the first decision", onDecide(func(ctx context.Context, f *flawed, d belay.Decision) (belay.Approval, error) {
		a, err := f.inner.Decide(ctx, d)
		if err != nil {
			a = belay.Approval{}
		}
		return a, err
	}), []string{
		"a second decision is ErrDecided, and the first one remains", "of many concurrent decisions one is stored, and the others get it returned",
		"a decision with the hash of another input is ErrWrongHash, and the approval stays pending", "an expired approval is ErrExpired and stays pending",
	}},
	{"treats every approval as one for a single call", onDecide(func(ctx context.Context, f *flawed, d belay.Decision) (belay.Approval, error) {
		d.Scope = belay.ApprovalScope{}
		return f.inner.Decide(ctx, d)
	}), []string{
		"a decision is stored and returned with every field", "a scope comes back unchanged", "an impossible scope is ErrScope, and the approval stays pending",
	}},
	{"cuts a pattern short", onDecide(func(ctx context.Context, f *flawed, d belay.Decision) (belay.Approval, error) {
		d.Scope.Pattern = d.Scope.Pattern[:min(len(d.Scope.Pattern), 511)]
		return f.inner.Decide(ctx, d)
	}), []string{"a scope comes back unchanged"}},
	{"looks at the scope before anything else", onDecide(func(ctx context.Context, f *flawed, d belay.Decision) (belay.Approval, error) {
		if d.Scope.Kind == "for ever" {
			return f.asked(d.Approval), belay.ErrScope
		}
		return f.inner.Decide(ctx, d)
	}), []string{"other errors of a decision come before those of its scope"}},
	{"treats every decision as an approval", onDecide(func(ctx context.Context, f *flawed, d belay.Decision) (belay.Approval, error) {
		d.Allow = true
		return f.inner.Decide(ctx, d)
	}), []string{"a denial is a decision"}},
	{"releases a session when an approval is decided", onDecide(func(ctx context.Context, f *flawed, d belay.Decision) (belay.Approval, error) {
		session := f.asked(d.Approval).Session
		return must(f.inner.Decide(ctx, d))(f.inner.Release(ctx, session, f.known()[session]))
	}), []string{"an approval of a held session can be decided, and the session stays held"}},
	{"returns ErrDecided for every error", onDecide(func(ctx context.Context, f *flawed, d belay.Decision) (belay.Approval, error) {
		a, err := f.inner.Decide(ctx, d)
		if err != nil {
			err = belay.ErrDecided
		}
		return a, err
	}), []string{
		"a missing approval is ErrNotFound", "a decision with the hash of another input is ErrWrongHash, and the approval stays pending",
		"an expired approval is ErrExpired and stays pending",
	}},
	{"does not look at the hash", onDecide(func(ctx context.Context, f *flawed, d belay.Decision) (belay.Approval, error) {
		d.Hash = f.asked(d.Approval).Hash
		return f.inner.Decide(ctx, d)
	}), []string{"a decision with the hash of another input is ErrWrongHash, and the approval stays pending"}},
	{"keeps the last decision", func(f *flawed) {
		last := make(map[string]*belay.Decision)
		f.decide = func(ctx context.Context, d belay.Decision) (belay.Approval, error) {
			a, err := f.inner.Decide(ctx, d)
			if errors.Is(err, belay.ErrDecided) {
				f.mu.Lock()
				defer f.mu.Unlock()
				last[d.Approval] = &d
				return a, nil
			}
			return a, err
		}
		onOpen(func(_ *flawed, _ string, stored *belay.Stored) {
			for i := range stored.Approvals {
				if d := last[stored.Approvals[i].ID]; d != nil {
					stored.Approvals[i].Decided = d
				}
			}
		})(f)
	}, []string{
		"a second decision is ErrDecided, and the first one remains", "an approval that was committed with its decision is ErrDecided",
		"of many concurrent decisions one is stored, and the others get it returned", "an approval of an earlier response can still be decided, once",
		"an approval that was pending when the process ended can be decided, once",
	}},
	{"does not look at the time", func(f *flawed) {
		f.inner = memstore.New(&memstore.Options{Clock: hooktest.NewClock(time.Time{}.AddDate(1, 0, 0))})
		f.open, f.commit, f.release, f.decide = f.inner.Open, f.inner.Commit, f.inner.Release, f.inner.Decide
	}, []string{"an expired approval is ErrExpired and stays pending"}},
	{"treats an approval without an expiry as expired", onDecide(func(ctx context.Context, f *flawed, d belay.Decision) (belay.Approval, error) {
		if f.asked(d.Approval).Expires.Before(time.Now()) {
			return belay.Approval{}, belay.ErrExpired
		}
		return f.inner.Decide(ctx, d)
	}), []string{"an approval without Expires does not expire", "a decided approval is ErrDecided even after it has expired"}},
	{"forgets the approvals of earlier responses", func(f *flawed) {
		old := make(map[string]bool)
		onCommit(func(f *flawed, c *belay.Commit) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(c.Messages) > 0 && c.Messages[0].Kind == belay.KindAssistant {
				for id := range f.approvals {
					old[id] = true
				}
			}
		})(f)
		f.decide = func(ctx context.Context, d belay.Decision) (belay.Approval, error) {
			if old[d.Approval] {
				return belay.Approval{}, belay.ErrNotFound
			}
			return f.inner.Decide(ctx, d)
		}
	}, []string{"an approval of an earlier response can still be decided, once"}},
	{"decides about all calls at once", onOpen(func(_ *flawed, _ string, stored *belay.Stored) {
		for i := range stored.Approvals {
			if by := stored.Approvals[i].Decided; by != nil {
				for j := range stored.Approvals {
					stored.Approvals[j].Decided = by
				}
			}
		}
	}), []string{"parallel calls have approvals of their own"}},
}

// must returns a function that adds another error to err.
func must(a belay.Approval, err error) func(error) (belay.Approval, error) {
	return func(other error) (belay.Approval, error) { return a, errors.Join(err, other) }
}
