package storetest_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// inboxFaults are stores with wrong listings of approvals.
var inboxFaults = []fault{
	{"lists an approval that nobody asked", onApprovals(func(_ *flawed, all []belay.Approval) []belay.Approval {
		if len(all) == 0 {
			all = []belay.Approval{{ID: "approval"}}
		}
		return all
	}), []string{"an empty store lists nothing"}},
	{"lists approvals without their reasons", onApprovals(func(_ *flawed, all []belay.Approval) []belay.Approval {
		for i := range all {
			all[i].Reason = ""
		}
		return all
	}), []string{"approvals are listed with every field, decided or not"}},
	{"lists what is pending alone", onApprovals(func(_ *flawed, all []belay.Approval) []belay.Approval {
		return slices.DeleteFunc(all, func(a belay.Approval) bool { return a.Decided != nil })
	}), []string{
		"approvals are listed with every field, decided or not", "a filter selects undecided approvals, including expired ones",
		"an approval can be decided during a listing",
	}},
	{"keeps every form of an approval in its inbox", func(f *flawed) {
		var forms []belay.Approval
		onCommit(func(_ *flawed, c *belay.Commit) { forms = append(forms, c.Approvals...) })(f)
		onApprovals(func(*flawed, []belay.Approval) []belay.Approval { return forms })(f)
	}, []string{"a replaced approval is listed once, in its new state"}},
	{"lists approvals as they were asked first", func(f *flawed) {
		first := make(map[string]belay.Approval)
		onCommit(func(_ *flawed, c *belay.Commit) {
			for _, a := range c.Approvals {
				if _, ok := first[a.ID]; !ok {
					first[a.ID] = a
				}
			}
		})(f)
		onApprovals(func(_ *flawed, all []belay.Approval) []belay.Approval {
			for i := range all {
				all[i] = first[all[i].ID]
			}
			return all
		})(f)
	}, []string{"a replaced approval is listed once, in its new state"}},
	{"lists the newest approval first", onApprovals(func(_ *flawed, all []belay.Approval) []belay.Approval {
		slices.Reverse(all)
		return all
	}), []string{"approvals are listed in the order in which they were asked"}},
	{"lists approvals by their ids", onApprovals(func(_ *flawed, all []belay.Approval) []belay.Approval {
		slices.SortFunc(all, func(a, b belay.Approval) int { return strings.Compare(a.ID, b.ID) })
		return all
	}), []string{"approvals are listed in the order in which they were asked"}},
	{"lists the approvals of all sessions", onApprovalFilter(func(filter *belay.ApprovalFilter) { filter.Session = "" }), []string{
		"approvals are selected by their session", "an approval is listed if all parts of the filter match",
	}},
	{"lists the approvals of sessions that begin so", func(f *flawed) {
		f.inbox = func(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
			session := filter.Session
			filter.Session = ""
			return changed(f.inner.Approvals(ctx, filter), func(all []belay.Approval) []belay.Approval {
				return slices.DeleteFunc(all, func(a belay.Approval) bool { return !strings.HasPrefix(a.Session, session) })
			})
		}
	}, []string{"approvals are selected by their session"}},
	{"does not look at the id of an approval", onApprovalFilter(func(filter *belay.ApprovalFilter) { filter.ID = "" }), []string{
		"one approval is found by its exact id",
	}},
	{"takes a refusal for no decision", func(f *flawed) {
		f.inbox = func(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
			pending := filter.Pending
			filter.Pending = false
			return changed(f.inner.Approvals(ctx, filter), func(all []belay.Approval) []belay.Approval {
				return slices.DeleteFunc(all, func(a belay.Approval) bool { return pending && a.Decided != nil && a.Decided.Allow })
			})
		}
	}, []string{"a filter selects undecided approvals, including expired ones"}},
	{"takes what has expired for decided", func(f *flawed) {
		f.inbox = func(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
			return changed(f.inner.Approvals(ctx, filter), func(all []belay.Approval) []belay.Approval {
				return slices.DeleteFunc(all, func(a belay.Approval) bool { return filter.Pending && a.Expires.Year() < 2020 })
			})
		}
	}, []string{"a filter selects undecided approvals, including expired ones"}},
	{"lists approvals beyond the limit", onApprovalFilter(func(filter *belay.ApprovalFilter) { filter.Limit = 0 }), []string{
		"a listing of approvals stops at its limit", "an approval is listed if all parts of the filter match",
	}},
	{"lists approvals again from the beginning", onApprovalFilter(func(filter *belay.ApprovalFilter) { filter.After = "" }), []string{"a listing of approvals continues after an approval"}},
	{"filters the approvals that the limit left", func(f *flawed) {
		f.inbox = func(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
			return changed(f.inner.Approvals(ctx, belay.ApprovalFilter{Limit: filter.Limit}), func(all []belay.Approval) []belay.Approval {
				return slices.DeleteFunc(all, func(a belay.Approval) bool {
					return filter.Pending && a.Decided != nil || filter.Session != "" && a.Session != filter.Session
				})
			})
		}
	}, []string{"an approval is listed if all parts of the filter match"}},
	{"lists the approvals of the last response", onApprovals(func(f *flawed, all []belay.Approval) []belay.Approval {
		return slices.DeleteFunc(all, func(a belay.Approval) bool { return a.ID == "old" && len(f.said("a")) > 1 })
	}), []string{"approvals of earlier responses are listed"}},
	{"lists the approvals of sessions that are held", onApprovals(func(f *flawed, all []belay.Approval) []belay.Approval {
		return slices.DeleteFunc(all, func(a belay.Approval) bool {
			return f.inner.Commit(context.Background(), &belay.Commit{Session: a.Session, Epoch: f.known()[a.Session]}) != nil
		})
	}), []string{"approvals of earlier responses are listed"}},
	{"lists the same decision to everyone", func(f *flawed) {
		decisions := make(map[string]*belay.Decision)
		onApprovals(func(_ *flawed, all []belay.Approval) []belay.Approval {
			for i := range all {
				if have := decisions[all[i].ID]; have != nil {
					all[i].Decided = have
				}
				decisions[all[i].ID] = all[i].Decided
			}
			return all
		})(f)
	}, []string{"changing a listed approval does not change the store"}},
	{"lists approvals once", func(f *flawed) {
		f.inbox = func(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
			return once(f.inner.Approvals(ctx, filter))
		}
	}, []string{"a listing of approvals can be abandoned and started again"}},
	{"is locked while approvals are listed", func(f *flawed) {
		lock := make(chan struct{}, 1)
		f.inbox = func(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
			return locked(lock, f.inner.Approvals(ctx, filter))
		}
		f.decide = func(ctx context.Context, d belay.Decision) (belay.Approval, error) {
			select {
			case lock <- struct{}{}:
				defer func() { <-lock }()
				return f.inner.Decide(ctx, d)
			default:
				return belay.Approval{}, errors.New("the database is locked")
			}
		}
	}, []string{"an approval can be decided during a listing"}},
	{"ends a cancelled listing of approvals in silence", func(f *flawed) {
		f.inbox = func(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
			return silent(f.inner.Approvals(ctx, filter))
		}
	}, []string{"a cancelled listing of approvals ends with an error"}},
}

// onApprovals makes a store that changes the listed approvals.
func onApprovals(change func(f *flawed, all []belay.Approval) []belay.Approval) func(f *flawed) {
	return func(f *flawed) {
		f.inbox = func(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
			return changed(f.inner.Approvals(ctx, filter), func(all []belay.Approval) []belay.Approval { return change(f, all) })
		}
	}
}

// onApprovalFilter makes a store that changes the filter of approvals.
func onApprovalFilter(change func(filter *belay.ApprovalFilter)) func(f *flawed) {
	return func(f *flawed) {
		f.inbox = func(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
			change(&filter)
			return f.inner.Approvals(ctx, filter)
		}
	}
}
