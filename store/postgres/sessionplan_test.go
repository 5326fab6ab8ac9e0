package postgres_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// A listing of sessions does not read all of them. The sessions with an open turn are few:
// they are read by their own index, which most commits need not change, and sorted.
func TestSessionListingsUseIndexes(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	for _, statement := range []string{
		`INSERT INTO sessions (id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state)
			SELECT 'session-' || n, 0, '', 1, n, 0, 0, 0, 0, CASE WHEN n % 1000 = 0 THEN 'parked' ELSE '' END, '' FROM generate_series(1, 20000) n`,
		"ANALYZE sessions",
	} {
		if err := s.Execute(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for want, filter := range map[string]belay.SessionFilter{
		"sessions_changed": {Limit: 50},
		"sessions_open":    {Open: true, Limit: 50},
	} {
		plan, err := s.SessionsPlan(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan, want) || strings.Contains(plan, "Seq Scan") {
			t.Errorf("the listing %+v is read by\n%s\nwant the index %s", filter, plan, want)
		}
	}
}
