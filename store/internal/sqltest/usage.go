package sqltest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// executer is a store whose tests can change its tables.
type executer interface {
	Execute(ctx context.Context, query string, args ...any) error
}

// respond commits a response that has used the given number of tokens.
func respond(t testing.TB, s Store, c *belay.Commit, agent string, seq int64, turn, model, at string, tokens int) {
	t.Helper()
	when, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		t.Fatal(err)
	}
	one := *c
	one.Messages = []*belay.Message{{
		Seq: seq, Turn: turn, Role: belay.RoleAssistant, Kind: belay.KindAssistant, Parts: []belay.Part{belay.Text("an answer with \x00")}, Time: when, Model: model,
		Usage: &belay.Usage{In: tokens, Out: 1, Cost: 0.5},
	}}
	if one.State == nil {
		one.State = &belay.SessionState{Agent: agent}
	}
	Commit(t, s, &one)
}

// Usage checks that usage is added up by the day, the agent and the model of each response, and
// that usage of messages that are older than its table is counted.
func (b *Backend) Usage(t *testing.T) {
	t.Helper()
	s := b.Open(t, nil)
	for id, labels := range map[string]map[string]string{"a": {"team": "red"}, "b": {"team": "blue"}, "fork": nil} {
		if err := s.(belay.ManageStore).Describe(t.Context(), id, belay.SessionUpdate{Labels: labels}); err != nil {
			t.Fatal(err)
		}
	}
	at := func(session string) *belay.Commit {
		return &belay.Commit{Session: session, Epoch: Hold(t, s, session).Epoch}
	}
	a := at("a")
	respond(t, s, a, "main", 1, "t1", "m/one", "2026-03-01T23:59:59.5Z", 1)
	respond(t, s, a, "main", 2, "t1", "m/one", "2026-03-01T23:59:59.6Z", 2)
	respond(t, s, a, "main", 3, "t1", "m/two", "2026-03-02T00:00:00Z", 4)           // the turn continues after midnight, with another model
	respond(t, s, a, "main", 4, "t2", "m/one", "2026-03-03T01:30:00+02:00", 8)      // a day earlier in UTC
	respond(t, s, at("a/x"), "child", 1, "t1", "m/two", "2026-03-02T10:00:00Z", 16) // a subagent
	respond(t, s, at("b"), "main", 1, "t1", "m/one", "2026-03-05T10:00:00Z", 32)
	fork := at("fork")
	fork.State = &belay.SessionState{Agent: "main", ForkedFrom: &belay.ForkPoint{Session: "a", Seq: 1}}
	respond(t, s, fork, "main", 1, "t1", "m/one", "2026-03-01T23:59:59.5Z", 1000) // a copy
	respond(t, s, fork, "main", 2, "t9", "m/one", "2026-03-05T11:00:00Z", 64)

	day := func(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }
	check := func(s Store) {
		t.Helper()
		for _, test := range []struct {
			rule   string
			filter belay.UsageFilter
			want   []belay.UsageSum
		}{
			{"all usage", belay.UsageFilter{}, []belay.UsageSum{sum("", 127, 7, 4, 3)}},
			{"by day", belay.UsageFilter{By: belay.ByDay}, []belay.UsageSum{sum("2026-03-01", 3, 2, 1, 1), sum("2026-03-02", 28, 3, 2, 1), sum("2026-03-05", 96, 2, 2, 2)}},
			{"by model", belay.UsageFilter{By: belay.ByModel}, []belay.UsageSum{sum("m/one", 107, 5, 4, 3), sum("m/two", 20, 2, 1, 1)}},
			{"by agent", belay.UsageFilter{By: belay.ByAgent}, []belay.UsageSum{sum("child", 16, 1, 0, 1), sum("main", 111, 6, 4, 3)}},
			{"by label", belay.UsageFilter{By: belay.ByLabel, Label: "team"}, []belay.UsageSum{sum("", 64, 1, 1, 1), sum("blue", 32, 1, 1, 1), sum("red", 31, 5, 2, 1)}},
			{"with a label, which subagents share", belay.UsageFilter{Labels: map[string]string{"team": "red"}}, []belay.UsageSum{sum("", 31, 5, 2, 1)}},
			{"since a day", belay.UsageFilter{Since: day(2).Add(time.Hour)}, []belay.UsageSum{sum("", 124, 5, 4, 3)}},
			{"until the beginning of a day", belay.UsageFilter{Until: day(2)}, []belay.UsageSum{sum("", 3, 2, 1, 1)}},
			{"until a time of a day", belay.UsageFilter{Until: day(2).Add(1)}, []belay.UsageSum{sum("", 31, 5, 2, 1)}},
			{"no session", belay.UsageFilter{Labels: map[string]string{"team": "green"}, By: belay.ByDay}, nil},
		} {
			got, err := s.(belay.UsageStore).Usage(t.Context(), test.filter)
			if err != nil {
				t.Fatalf("%s: %v", test.rule, err)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: %+v, want %+v", test.rule, got, test.want)
			}
		}
	}
	check(s)
	for _, statement := range []string{"DELETE FROM turn_usage", "UPDATE counters SET value = 0 WHERE name = 'usage'"} { // as it is after the migration of an old database
		if err := s.(executer).Execute(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = b.Reopen(t, s, nil)
	check(s)
	if err := s.(belay.ManageStore).Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.(belay.UsageStore).Usage(t.Context(), belay.UsageFilter{}); err != nil || len(got) != 1 || got[0].Usage.In != 96 {
		t.Errorf("after a session was deleted: %+v, %v", got, err)
	}
}

// sum returns a sum of responses, each of which has one token out.
func sum(key string, in, responses, turns, sessions int) belay.UsageSum {
	return belay.UsageSum{Key: key, Usage: belay.Usage{In: in, Out: responses, Cost: float64(responses) / 2}, Turns: turns, Sessions: sessions}
}
