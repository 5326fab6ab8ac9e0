//go:build unix

package declare_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
)

// A hook that the sandbox refused something says so, and what to do. Other failures do not.
//
// SPEC B-02
func TestAFailureBecauseOfTheSandboxSaysSo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, does, note string
		protocol         declare.Protocol
		want             bool
	}{
		{"a file, in a hook of Belay", `echo "sh: /etc/x: Permission denied" >&2; exit 1`, "the note", nil, true},
		{"a file, in a hook of another agent", `echo "Error: EROFS: x" >&2; exit 1`, "the note", endings{}, true},
		{"the network", `echo "curl: (6) Could not resolve host: example.com"; exit 6`, "the note", endings{}, true},
		{"another failure", `echo "no such thing" >&2; exit 1`, "the note", endings{}, false},
		{"no sandbox", `echo "Permission denied" >&2; exit 1`, "", endings{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := &declare.Declaration{
				ID: "a", Phase: "tool.pre", File: "x", Line: 1, Dir: t.TempDir(), Kind: hook.HandlerCommand, Argv: []string{"sh", "-c", c.does}, Protocol: c.protocol,
				Options: hook.Options{Failure: hook.Open, Timeout: time.Minute},
			}
			confine := func(_ context.Context, _ *declare.Declaration, e *declare.Execution) error {
				e.Note = c.note
				return nil
			}
			set, err := declare.New([]*declare.Declaration{d}, hook.Origin{Kind: hook.OriginOperator}, &declare.Options{Project: d.Dir, Confine: confine})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = set.Close() }) // Close returns no error
			runtime, err := hook.NewRuntime(belay.Phases(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := runtime.Install(set.Subscriptions()...); err != nil {
				t.Fatal(err)
			}
			call, err := belay.ToolPre.DecodeInput(hook.Scope{}, json.RawMessage(`{"id":"c","tool":"shell","input":{}}`))
			if err != nil {
				t.Fatal(err)
			}
			snapshot := runtime.Snapshot()
			if _, err := belay.ToolPre.Dispatch(t.Context(), snapshot, call); err != nil {
				t.Fatal(err)
			}
			runs := snapshot.Take()
			if err := snapshot.Release(t.Context()); err != nil || len(runs) != 1 || len(runs[0].Diagnostics) != 1 {
				t.Fatalf("%v, the runs are %+v", err, runs)
			}
			if message := runs[0].Diagnostics[0].Message; strings.HasSuffix(message, ", probably because the note") != c.want {
				t.Errorf("the message is %q", message)
			}
		})
	}
}
