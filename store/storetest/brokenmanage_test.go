package storetest_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// manageFaults are stores with wrong titles, labels, pages or deletions.
var manageFaults = []fault{
	{"keeps no titles", onInfo(func(i *belay.SessionInfo) { i.Title = "" }), []string{
		"a session is listed with its title and its labels", "an update changes only the title and the labels that it names", "describing a missing session creates it",
	}},
	{"keeps no labels", onInfo(func(i *belay.SessionInfo) { i.Labels = nil }), []string{
		"a session is listed with its title and its labels", "an update changes only the title and the labels that it names", "describing a missing session creates it",
	}},
	{"forgets labels with a commit", func(f *flawed) {
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			for _, label := range []string{"user", "plan"} {
				if err := f.inner.Describe(ctx, c.Session, belay.SessionUpdate{Labels: map[string]string{label: ""}}); err != nil {
					return err
				}
			}
			return f.inner.Commit(ctx, c)
		}
	}, []string{"a session is listed with its title and its labels"}},
	{"replaces all labels", func(f *flawed) {
		f.describe = func(ctx context.Context, session string, update belay.SessionUpdate) error {
			labels := map[string]string{"user": "", "plan": "", "team": ""}
			maps.Copy(labels, update.Labels)
			update.Labels = labels
			return f.inner.Describe(ctx, session, update)
		}
	}, []string{"an update changes only the title and the labels that it names"}},
	{"describes only what is there", func(f *flawed) {
		f.describe = func(ctx context.Context, session string, update belay.SessionUpdate) error {
			if _, ok := f.known()[session]; !ok {
				return belay.ErrNotFound
			}
			return f.inner.Describe(ctx, session, update)
		}
	}, []string{"describing a missing session creates it"}},
	{"takes a description for a change", func(f *flawed) {
		f.describe = func(ctx context.Context, session string, update belay.SessionUpdate) error {
			if err := f.inner.Describe(ctx, session, update); err != nil {
				return err
			}
			return f.inner.Commit(ctx, &belay.Commit{Session: session, Epoch: f.known()[session]})
		}
	}, []string{"describing a session does not change its time"}},
	{"takes what fits of a description", func(f *flawed) {
		f.describe = func(ctx context.Context, session string, update belay.SessionUpdate) error {
			for name, value := range update.Labels {
				_ = f.inner.Describe(ctx, session, belay.SessionUpdate{Labels: map[string]string{name: value}})
			}
			return f.inner.Describe(ctx, session, update)
		}
	}, []string{"an update that exceeds the limits of titles or labels is refused as a whole"}},
	{"has no bounds", func(f *flawed) {
		f.describe = func(ctx context.Context, session string, update belay.SessionUpdate) error {
			if f.inner.Describe(ctx, session, update) != nil {
				return nil
			}
			return nil
		}
	}, []string{"an update that exceeds the limits of titles or labels is refused as a whole"}},
	{"does not look at labels", onSessionFilter(func(filter *belay.SessionFilter) { filter.Labels = nil }), []string{
		"a session is listed if it has all labels of the filter",
	}},
	{"takes any label of a filter", bySessionFilter(func(filter belay.SessionFilter, info belay.SessionInfo) bool {
		for name, value := range filter.Labels {
			if info.Labels[name] == value {
				return strings.HasPrefix(info.ID, filter.Prefix)
			}
		}
		return len(filter.Labels) == 0
	}), []string{"a session is listed if it has all labels of the filter"}},
	{"does not look at cursors", onSessionFilter(func(filter *belay.SessionFilter) { filter.After = "" }), []string{
		"a listing continues after a cursor", "a cursor can be combined with other conditions of a filter", "an invalid cursor is refused",
		"sessions that are added or changed do not shift the pages",
	}},
	{"lists by number", func(f *flawed) {
		skip := make(map[string]int)
		f.list = func(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
			after, limit := skip[filter.After], filter.Limit
			filter.After, filter.Limit = "", 0
			return changed(f.inner.Sessions(ctx, filter), func(all []belay.SessionInfo) []belay.SessionInfo {
				all = all[min(after, len(all)):]
				if limit > 0 {
					all = all[:min(limit, len(all))]
				}
				if len(all) > 0 {
					skip[all[len(all)-1].Cursor()] = after + len(all)
				}
				return all
			})
		}
	}, []string{"sessions that are added or changed do not shift the pages"}},
	{"continues with the one at the cursor", func(f *flawed) {
		f.list = func(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
			after, limit := filter.After, filter.Limit
			filter.After, filter.Limit = "", 0
			return changed(f.inner.Sessions(ctx, filter), func(all []belay.SessionInfo) []belay.SessionInfo {
				if at := slices.IndexFunc(all, func(i belay.SessionInfo) bool { return i.Cursor() == after }); at > 0 {
					all = all[at:]
				}
				return all[:min(max(limit, 1), len(all))]
			})
		}
	}, []string{"a listing continues after a cursor"}},
	{"deletes nothing", onDelete(func(*flawed, string) {}), []string{
		"a deleted session is gone", "deleting a session deletes the sessions of its subagents", "a session whose holder has ended can be deleted",
		"deleting a session deletes its records and waiting jobs",
	}},
	{"deletes by prefix", onDelete(func(f *flawed, session string) {
		for id := range f.known() {
			if strings.HasPrefix(id, session) {
				_ = f.inner.Delete(context.Background(), id)
			}
		}
	}), []string{"deleting a session does not delete other sessions", "deleting a session deletes the sessions of its subagents"}},
	{"leaves the sessions of subagents", onDelete(func(f *flawed, session string) { _ = f.inner.Forget(session) }), []string{
		"deleting a session deletes the sessions of its subagents", "deleting a session deletes its records and waiting jobs",
	}},
	{"deletes what is held", onDelete(func(f *flawed, session string) {
		f.inner.Expire(session)
		f.inner.Expire(session + "/one")
		_ = f.inner.Delete(context.Background(), session)
	}), []string{"a session is not deleted while it or the session of a subagent is held"}},
	{"deletes what is not there", onDelete(func(f *flawed, session string) { _ = f.inner.Delete(context.Background(), session) }), []string{
		"deleting a missing session is ErrNotFound",
	}},
	{"leaves waiting jobs", func(f *flawed) {
		f.delete = func(ctx context.Context, session string) error {
			queue := f.inner.Queue()
			var jobs []hook.Job
			f.inner.Queue().(*hook.MemoryQueue).Remove(func(job hook.Job) bool {
				if job.Scope.Session == session {
					jobs = append(jobs, job)
				}
				return job.Scope.Session == session
			})
			if err := f.inner.Delete(ctx, session); err != nil {
				return err
			}
			return queue.Enqueue(ctx, hook.Run{ID: "left", State: hook.Completed, Scope: hook.Scope{Session: "b"}}, jobs)
		}
	}, []string{"deleting a session deletes its records and waiting jobs"}},
}

// onDelete makes a store whose Delete calls remove.
func onDelete(remove func(f *flawed, session string)) func(f *flawed) {
	return func(f *flawed) {
		f.delete = func(_ context.Context, session string) error {
			remove(f, session)
			return nil
		}
	}
}
