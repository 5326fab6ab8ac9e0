package toolbox_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/toolbox"
)

// What a session has read is in its transcript, so another process that resumes the session knows
// it: an edit of a file that was read runs, and one of a file that has changed since does not.
//
// SPEC T-03
func TestWhatWasReadIsKnownAfterARestart(t *testing.T) {
	t.Parallel()
	const edit = `{"path": "a.txt", "old_string": "one", "new_string": "two"}`
	for name, c := range map[string]struct {
		before  []scripted.Call // in the first process, each in its own step
		between string          // the content that somebody else writes, or ""
		want    string          // the start of the result of the edit
	}{
		"it was read":                {before: []scripted.Call{{Tool: "read", Input: `{"path": "a.txt"}`}}, want: "a.txt was edited"},
		"it was written":             {before: []scripted.Call{{Tool: "read", Input: `{"path": "a.txt"}`}, {Tool: "write", Input: `{"path": "a.txt", "content": "one more"}`}}, want: "a.txt was edited"},
		"it was not read":            {before: []scripted.Call{{Tool: "read", Input: `{"path": "b.txt"}`}}, want: `denied: "a.txt" was not read in this session`},
		"it has changed since":       {before: []scripted.Call{{Tool: "read", Input: `{"path": "a.txt"}`}}, between: "one and more", want: `denied: "a.txt" has changed since it was read`},
		"it was read in a subfolder": {before: []scripted.Call{{Tool: "read", Input: `{"path": "sub/a.txt"}`}}, want: `denied: "a.txt" was not read in this session`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, store := t.TempDir(), memstore.New(nil)
			for _, file := range []string{"a.txt", "b.txt", "sub/a.txt"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte("one"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			process := func(steps ...scripted.Step) *belay.Session {
				ask := belay.ToolPre.On("ask", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Ask("look first"), nil },
					&hook.Options{Match: hook.Match{Tools: []string{"edit"}}})
				agent, err := belay.New(scripted.New(append(steps, scripted.Step{Text: "Done."}), nil), &belay.Options{
					Store: store, Hooks: []hook.Subscription{ask}, OnAsk: belay.AskPark, Authorizer: permit.Off(), Extensions: []belay.Extension{toolbox.New(openRoot(t, dir), nil)},
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = agent.Close(context.Background()) })
				return agent.Session("s")
			}
			var steps []scripted.Step
			for _, call := range c.before {
				steps = append(steps, scripted.Step{Calls: []scripted.Call{call}})
			}
			first := process(append(steps, scripted.Step{Calls: []scripted.Call{{Tool: "edit", Input: edit}}})...)
			ends(t, belay.EndParked)(first.Turn(t.Context(), "change a.txt"))
			if err := first.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.between != "" {
				if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(c.between), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for asked, err := range store.Approvals(t.Context(), belay.ApprovalFilter{Session: "s"}) {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := store.Decide(t.Context(), belay.Decision{Approval: asked.ID, Hash: asked.Hash, Allow: true, By: "ann", Time: time.Now()}); err != nil {
					t.Fatal(err)
				}
			}
			second := process()
			ends(t, belay.EndTurn)(belay.Await(second.Resume(t.Context())))
			results := told(t, second)
			if got := results[len(results)-1]; !strings.HasPrefix(got, c.want) {
				t.Errorf("the edit: %s", cmp.Diff(c.want, got))
			}
		})
	}
}
