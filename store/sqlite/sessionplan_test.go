package sqlite_test

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
	for want, filter := range map[string]belay.SessionFilter{
		"SCAN sessions USING INDEX sessions_changed": {Limit: 50},
		"SCAN sessions USING INDEX sessions_open":    {Open: true, Limit: 50},
	} {
		plan, err := s.SessionsPlan(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(plan[0], want) {
			t.Errorf("the listing %+v is read by %q, want %s", filter, plan, want)
		}
	}
}
