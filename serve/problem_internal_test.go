package serve

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// The words around a known error can have a path of the machine. A token that is limited to
// labels gets only the known error.
//
// SPEC V-05, V-08
func TestProblemsForTenants(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("open /srv/agents/belay.db: process 4711: %w", belay.ErrHeld)
	for _, c := range []struct {
		token *Token
		want  bool // whether the words around the error are shown
	}{{&Token{}, true}, {&Token{Labels: map[string]string{"tenant": "a"}}, false}} {
		p := (&Server{}).problemFor(t.Context(), c.token, err)
		if got := strings.Contains(p.Detail, "/srv/agents"); got != c.want || !strings.Contains(p.Detail, "the session is in use") {
			t.Errorf("the problem for the labels %v is %q", c.token.Labels, p.Detail)
		}
	}
}
