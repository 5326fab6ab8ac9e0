package serve_test

import (
	"testing"
	"time"

	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
)

// Usage is added up by day, agent, model and label, from the responses themselves. A token that is
// limited to labels gets only its own.
//
// SPEC V-02, V-05
func TestUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{
		".belay/agents/reviewer.yaml": "name: reviewer\ndescription: reviews changes\nprompt: You review changes.\ntools: [read]\n",
	}, nil)
	w.token("a", map[string]string{"tenant": "a"}, serve.RoleAdmin)
	mine, other := w.labelled(), w.newSession()
	w.turn("admin", mine, "call list {}")
	w.turn("admin", other, "hello")
	w.call("admin", "POST", "/v1/sessions/"+other+"/turns", map[string]any{"text": "look", "agent": "reviewer", "wait": "end"}, nil)
	today := time.Now().UTC().Format(time.DateOnly)
	for _, test := range []struct {
		as, query     string
		tokens, turns int
		rows          map[string]int // tokens by key
	}{
		{"admin", "", 40, 3, map[string]int{}},
		{"admin", "?by=agent", 40, 3, map[string]int{"main": 30, "reviewer": 10}},
		{"admin", "?by=model", 40, 3, map[string]int{"test/model": 40}},
		{"admin", "?by=day", 40, 3, map[string]int{today: 40}},
		{"admin", "?by=label:tenant", 40, 3, map[string]int{"a": 20, "": 20}},
		{"admin", "?until=2020-01-01T00:00:00Z&by=day", 0, 0, map[string]int{}},
		{"admin", "?since=2020-01-01T00:00:00Z&label=tenant=a", 20, 1, map[string]int{}},
		{"a", "?by=label:tenant", 20, 1, map[string]int{"a": 20}},
		{"a", "?label=tenant=b", 0, 0, map[string]int{}},
	} {
		var got api.Usage
		w.call(test.as, "GET", "/v1/usage"+test.query, nil, &got)
		if got.Usage.In != test.tokens || got.Turns != test.turns || len(got.Rows) != len(test.rows) {
			t.Errorf("%s %s: %+v", test.as, test.query, got)
		}
		for _, row := range got.Rows {
			if test.rows[row.Key] != row.Usage.In || row.Sessions == 0 {
				t.Errorf("%s %s: %+v, want %v", test.as, test.query, row, test.rows)
			}
		}
	}
	if p := w.send("admin", "GET", "/v1/usage?by=moon", nil, nil).problem(t); p.Status != 422 || p.Field != "/by" {
		t.Errorf("a key that does not exist: %+v", p)
	}
}
