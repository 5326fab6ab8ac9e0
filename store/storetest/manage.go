package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// describeRules are the rules about titles and labels.
var describeRules = []rule{
	{"a session is listed with its title and its labels", func(t testing.TB, s *subject) {
		h := s.managed(t).hold(t, "a")
		s.hold(t, "b")
		s.wantDescribed(t, "a", "", nil)
		s.describe(t, "a", "The refund", map[string]string{"user": "ann", "plan": "it's “free”"})
		s.wantDescribed(t, "a", "The refund", map[string]string{"user": "ann", "plan": "it's “free”"})
		s.wantDescribed(t, "b", "", nil)
		h.say(t, "one") // a commit does not change the title and the labels
		h.reread(t)
		s.wantDescribed(t, "a", "The refund", map[string]string{"user": "ann", "plan": "it's “free”"})
	}},
	{"an update changes only the title and the labels that it names", func(t testing.TB, s *subject) {
		s.managed(t).hold(t, "a")
		s.describe(t, "a", "one", map[string]string{"user": "ann", "plan": "free"})
		s.try(t, "a", belay.SessionUpdate{Labels: map[string]string{"plan": "paid", "team": "red"}})
		s.wantDescribed(t, "a", "one", map[string]string{"user": "ann", "plan": "paid", "team": "red"})
		s.describe(t, "a", "two", map[string]string{"plan": ""})
		s.wantDescribed(t, "a", "two", map[string]string{"user": "ann", "team": "red"})
		s.wantSessions(t, belay.SessionFilter{Labels: map[string]string{"plan": "paid"}})
		s.describe(t, "a", "", map[string]string{"user": "", "team": ""})
		s.wantDescribed(t, "a", "", nil)
	}},
	{"describing a missing session creates it", func(t testing.TB, s *subject) {
		s.managed(t).describe(t, "a", "one", map[string]string{"user": "ann"})
		s.wantDescribed(t, "a", "one", map[string]string{"user": "ann"})
		if info := s.info(t, "a"); info.Held || info.Created.IsZero() || info.Changed.IsZero() {
			t.Errorf("the session is listed as %+v, want a session that is not held and has times", info)
		}
		s.hold(t, "a").say(t, "one")
	}},
	{"describing a session does not change its time", func(t testing.TB, s *subject) {
		s.managed(t).changed(t, "a", "b")
		before := s.info(t, "a")
		s.describe(t, "a", "one", map[string]string{"user": "ann"})
		if after := s.info(t, "a"); !after.Changed.Equal(before.Changed) {
			t.Errorf("it was changed at %v, want %v as before", after.Changed, before.Changed)
		}
		s.wantSessions(t, belay.SessionFilter{}, "b", "a")
	}},
	{"an update that exceeds the limits of titles or labels is refused as a whole", func(t testing.TB, s *subject) {
		s.managed(t).describe(t, "a", "one", map[string]string{"user": "ann"})
		many := map[string]string{}
		for i := range 32 {
			many[fmt.Sprint("label-", i)] = "x"
		}
		long := strings.Repeat("é", 201)
		for _, update := range []belay.SessionUpdate{
			{Labels: many},
			{Title: &long},
			{Labels: map[string]string{"team": "red", "": "x"}},
			{Labels: map[string]string{"team": "red", "a=b": "x"}},
			{Labels: map[string]string{"team": "red", strings.Repeat("n", 65): "x"}},
			{Labels: map[string]string{"team": "red", "v": strings.Repeat("v", 257)}},
			{Labels: map[string]string{"team": "red", "v": "a\x00b"}},
			{Labels: map[string]string{"team": "red", "v": "\xff"}},
		} {
			if err := s.manageable(t).Describe(context.Background(), "a", update); err == nil {
				t.Errorf("the update %.100v was accepted", update)
			}
		}
		s.wantDescribed(t, "a", "one", map[string]string{"user": "ann"})
		delete(many, "label-0")
		s.describe(t, "a", strings.Repeat("é", 200), many)
	}},
	{"a session is listed if it has all labels of the filter", func(t testing.TB, s *subject) {
		s.managed(t).changed(t, "a", "b", "c", "d")
		s.describe(t, "a", "", map[string]string{"user": "ann", "plan": "free"})
		s.describe(t, "b", "", map[string]string{"user": "bob", "plan": "free"})
		s.describe(t, "c", "", map[string]string{"plan": "ann", "user": "Ann"})
		for _, test := range []struct {
			filter belay.SessionFilter
			want   []string
		}{
			{belay.SessionFilter{Labels: map[string]string{"user": "ann"}}, []string{"a"}},
			{belay.SessionFilter{Labels: map[string]string{"plan": "free"}}, []string{"b", "a"}},
			{belay.SessionFilter{Labels: map[string]string{"plan": "free"}, Limit: 1}, []string{"b"}},
			{belay.SessionFilter{Labels: map[string]string{"plan": "free", "user": "ann"}}, []string{"a"}},
			{belay.SessionFilter{Labels: map[string]string{"plan": "free", "user": "eve"}}, nil},
			{belay.SessionFilter{Labels: map[string]string{"plan": "free"}, Prefix: "a"}, []string{"a"}},
			{belay.SessionFilter{Labels: map[string]string{"user": ""}}, nil},
			{belay.SessionFilter{Labels: map[string]string{}}, []string{"d", "c", "b", "a"}},
		} {
			s.wantSessions(t, test.filter, test.want...)
		}
	}},
}

// pageRules are the rules about listing page by page.
var pageRules = []rule{
	{"a listing continues after a cursor", func(t testing.TB, s *subject) {
		s.changed(t, "a", "b", "c", "d", "e")
		s.wantPages(t, belay.SessionFilter{Limit: 2}, func() {}, "e", "d", "c", "b", "a")
	}},
	{"sessions that are added or changed do not shift the pages", func(t testing.TB, s *subject) {
		holds := s.changed(t, "a", "b", "c", "d", "e")
		added := 0
		s.wantPages(t, belay.SessionFilter{Limit: 2}, func() {
			added++
			s.changed(t, fmt.Sprint("new-", added))
			holds["e"].say(t, "one more") // this session was on an earlier page
			tick()
		}, "e", "d", "c", "b", "a")
	}},
	{"a cursor can be combined with other conditions of a filter", func(t testing.TB, s *subject) {
		s.changed(t, "a1", "b1", "a2", "b2", "a3")
		s.wantPages(t, belay.SessionFilter{Prefix: "a", Limit: 1}, func() {}, "a3", "a2", "a1")
	}},
	{"an invalid cursor is refused", func(t testing.TB, s *subject) {
		s.changed(t, "a")
		for _, cursor := range []string{"2", "bm90aGluZw", "%%%", belay.SessionInfo{}.Cursor()} {
			var last error
			for _, err := range s.listed(t).Sessions(context.Background(), belay.SessionFilter{After: cursor}) {
				last = err
			}
			if !errors.Is(last, belay.ErrCursor) {
				t.Errorf("the cursor %q gives %v, want %v", cursor, last, belay.ErrCursor)
			}
		}
	}},
}

var deleteRules = []rule{
	{"a deleted session is gone", func(t testing.TB, s *subject) {
		s.managed(t)
		h, asked := s.asked(t)
		s.describe(t, "a", "one", map[string]string{"user": "ann"})
		h.release(t)
		s.delete(t, "a")
		s.wantSessions(t, belay.SessionFilter{})
		s.wantSessions(t, belay.SessionFilter{Labels: map[string]string{"user": "ann"}})
		s.wantInbox(t, belay.ApprovalFilter{})
		for _, err := range s.Read(context.Background(), "a", 0) {
			if !errors.Is(err, belay.ErrNotFound) {
				t.Errorf("reading it gives %v, want %v", err, belay.ErrNotFound)
			}
		}
		if _, err := s.Decide(context.Background(), decision(asked, "ann")); !errors.Is(err, belay.ErrNotFound) {
			t.Errorf("deciding its approval gives %v, want %v", err, belay.ErrNotFound)
		}
		if stored := s.look(t, "a"); stored.Last != 0 || len(stored.Messages) > 0 || len(stored.Calls) > 0 || len(stored.Approvals) > 0 {
			t.Errorf("opened again it has %+v, want nothing", stored)
		}
		s.wantDescribed(t, "a", "", nil)
	}},
	{"deleting a session does not delete other sessions", func(t testing.TB, s *subject) {
		for _, h := range s.managed(t).changed(t, "a", "ab", "a:b", "A", "b/a") {
			h.say(t, "one")
			h.release(t)
		}
		s.delete(t, "a")
		s.wantSet(t, "A", "a:b", "ab", "b/a")
		wantNumbers(t, "the messages", s.read(t, "ab", 0), 1)
	}},
	{"deleting a session deletes the sessions of its subagents", func(t testing.TB, s *subject) {
		for _, h := range s.managed(t).changed(t, "a", "a/one", "a/one/two", "a_", "b") {
			h.release(t)
		}
		s.delete(t, "a/one")
		s.wantSet(t, "a", "a_", "b")
		s.delete(t, "a")
		s.wantSet(t, "a_", "b")
	}},
	{"a session is not deleted while it or the session of a subagent is held", func(t testing.TB, s *subject) {
		s.managed(t)
		h, _ := s.asked(t)
		child := s.hold(t, "a/one")
		for range 2 {
			if err := s.manageable(t).Delete(context.Background(), "a"); !errors.Is(err, belay.ErrHeld) {
				t.Errorf("Delete gives %v, want %v", err, belay.ErrHeld)
			}
			h.release(t)
		}
		s.wantSet(t, "a", "a/one")
		if len(s.read(t, "a", 0)) == 0 || len(s.allApprovals(t)) == 0 {
			t.Error("a Delete that failed has removed something")
		}
		child.release(t)
		s.delete(t, "a")
	}},
	{"a session whose holder has ended can be deleted", func(t testing.TB, s *subject) {
		s.managed(t).hold(t, "a").say(t, "one")
		s.expire(t, "a")
		s.delete(t, "a")
		s.wantSessions(t, belay.SessionFilter{})
	}},
	{"deleting a missing session is ErrNotFound", func(t testing.TB, s *subject) {
		if err := s.managed(t).manageable(t).Delete(context.Background(), "a"); !errors.Is(err, belay.ErrNotFound) {
			t.Errorf("Delete gives %v, want %v", err, belay.ErrNotFound)
		}
	}},
	{"deleting a session deletes its records and waiting jobs", func(t testing.TB, s *subject) {
		s.managed(t).journaled(t)
		before := s.stats(t).Waiting
		for _, session := range []string{"a", "a/one", "b"} {
			run := hook.Run{ID: "run-" + session, Subscription: "s", Phase: "tool.pre", Scope: hook.Scope{Session: session}, State: hook.Completed, Started: time.Now(), Ended: time.Now()}
			job := hook.Job{ID: "job-" + session, Key: "key-" + strings.ReplaceAll(session, "/", "-"), Handler: "h", Scope: hook.Scope{Session: session}, At: time.Now().Add(time.Hour)}
			h := s.hold(t, session)
			h.commit(t, belay.Commit{Runs: []hook.Run{run}, Jobs: []hook.Job{job}})
			h.release(t)
		}
		s.delete(t, "a")
		var left []string
		for _, run := range s.runs(t) {
			left = append(left, run.Scope.Session)
		}
		if !slices.Equal(left, []string{"b"}) {
			t.Errorf("the records are of the sessions %q, want b alone", left)
		}
		if got := s.stats(t).Waiting - before; got != 1 {
			t.Errorf("%d jobs wait, want that of b", got)
		}
		// The key of the removed job must be free again.
		h := s.hold(t, "c")
		h.commit(t, belay.Commit{Jobs: []hook.Job{{ID: "again", Key: "key-a", Handler: "h", Scope: hook.Scope{Session: "c"}, At: time.Now().Add(time.Hour)}}})
		if got := s.stats(t).Waiting - before; got != 2 {
			t.Errorf("%d jobs wait, want those of b and c", got)
		}
	}},
}

// manageable returns the store as a belay.ManageStore, or skips the rule.
func (s *subject) manageable(t testing.TB) belay.ManageStore {
	t.Helper()
	ms, ok := s.Store.(belay.ManageStore)
	if !ok {
		t.Skip("storetest: the store is not a belay.ManageStore")
	}
	return ms
}

// managed skips the rule if the store is not a belay.ManageStore.
func (s *subject) managed(t testing.TB) *subject {
	t.Helper()
	s.manageable(t)
	return s
}

// describe sets the title and the labels of a session. It fails the test on an error.
func (s *subject) describe(t testing.TB, session, title string, labels map[string]string) {
	t.Helper()
	s.try(t, session, belay.SessionUpdate{Title: &title, Labels: labels})
}

// try updates a session. It fails the test on an error.
func (s *subject) try(t testing.TB, session string, update belay.SessionUpdate) {
	t.Helper()
	if err := s.manageable(t).Describe(context.Background(), session, update); err != nil {
		t.Fatalf("Describe(%q): %v", session, err)
	}
}

// wantDescribed asserts the title and the labels of a session.
func (s *subject) wantDescribed(t testing.TB, session, title string, labels map[string]string) {
	t.Helper()
	if info := s.info(t, session); info.Title != title || !maps.Equal(info.Labels, labels) {
		t.Errorf("session %q is listed with the title %q and the labels %q, want %q and %q", session, info.Title, info.Labels, title, labels)
	}
}

// delete deletes a session. It fails the test on an error.
func (s *subject) delete(t testing.TB, session string) {
	t.Helper()
	if err := s.manageable(t).Delete(context.Background(), session); err != nil {
		t.Fatalf("Delete(%q): %v", session, err)
	}
}

// wantSet asserts the ids of all sessions, in any order.
func (s *subject) wantSet(t testing.TB, want ...string) {
	t.Helper()
	var got []string
	for _, info := range pull(t, s.listed(t).Sessions(context.Background(), belay.SessionFilter{}), 0) {
		got = append(got, info.ID)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the sessions are %q, want %q", got, want)
	}
}

func (s *subject) allApprovals(t testing.TB) []belay.Approval {
	t.Helper()
	return pull(t, s.listed(t).Approvals(context.Background(), belay.ApprovalFilter{}), 0)
}

// wantPages lists sessions page by page and asserts all ids in order. It calls between
// after each page.
func (s *subject) wantPages(t testing.TB, filter belay.SessionFilter, between func(), want ...string) {
	t.Helper()
	var got []string
	for range len(want) + 1 {
		page := pull(t, s.listed(t).Sessions(context.Background(), filter), 0)
		if len(page) == 0 {
			break
		}
		if len(page) > filter.Limit {
			t.Fatalf("a page has %d sessions, want at most %d", len(page), filter.Limit)
		}
		for _, info := range page {
			got = append(got, info.ID)
		}
		filter.After = page[len(page)-1].Cursor()
		between()
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages list %q, want %q", got, want)
	}
}
