package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/serve"
)

// A client that loses its connection to /v1/runs/events after each record, and connects to
// another server, gets each record once. This also holds for the records of one dispatch, which
// the store keeps in one row, and for a connection that is lost before the first record.
//
// SPEC V-03
func TestRunEventsContinue(t *testing.T) {
	t.Parallel()
	files := make(map[string]string)
	for i := range 4 {
		files[fmt.Sprintf(".belay/hooks/h%d.yaml", i)] = fmt.Sprintf("hooks:\n  - {id: h%d, phase: user.prompt.submit, action: {log: fine}}\n", i)
	}
	w := newWorld(t, files, nil)
	other, err := serve.New(w.host, &serve.Options{Tokens: w.tokens})
	if err != nil {
		t.Fatal(err)
	}
	servers := []*world{w, w.again(other)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	read := func(from *world, last string, most int) (ids []string, at string) {
		at = last
		err := from.follow(ctx, "admin", "/v1/runs/events?all=true", last, func(e event) error {
			at = e.id
			if e.kind == "position" {
				if most == 0 {
					return errStop
				}
				return nil
			}
			var run hook.Run
			if err := json.Unmarshal([]byte(e.data), &run); err != nil {
				return err
			}
			if ids = append(ids, fmt.Sprint(run.ID, " ", run.State)); len(ids) == most {
				return errStop
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids, at
	}
	_, begin := read(w, "", 0)
	session := w.newSession()
	w.turn("admin", session, "hello")
	w.turn("admin", session, "again")
	var list struct{ Runs []hook.Run }
	w.call("admin", "GET", "/v1/runs?all=true&limit=1000&session="+session, nil, &list)
	if len(list.Runs) < 8 {
		t.Fatalf("there are %d records, want those of 4 hooks in 2 turns", len(list.Runs))
	}
	whole, _ := read(w, begin, len(list.Runs))
	var parts []string
	for at := begin; len(parts) < len(whole); {
		one, next := read(servers[len(parts)%2], at, 1)
		parts, at = append(parts, one...), next
	}
	if !slices.Equal(whole, parts) {
		t.Errorf("in one connection:\n%q\nin many:\n%q", whole, parts)
	}
	if p := w.send("admin", "GET", "/v1/runs/events", nil, map[string]string{"Last-Event-ID": "x"}).problem(t); p.Code != "request.cursor" {
		t.Errorf("a wrong id gives %+v", p)
	}
}
