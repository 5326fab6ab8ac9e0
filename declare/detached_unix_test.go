//go:build unix

package declare_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
)

// refusing is a protocol whose answer is always a denial.
type refusing struct{}

func (refusing) Ask(context.Context, *worker.Envelope) (*declare.Question, error) {
	return &declare.Question{Stdin: []byte("asked\n")}, nil
}

func (refusing) Read(context.Context, *worker.Envelope, *declare.Reply) (json.RawMessage, error) {
	return json.RawMessage(`{"decision":"deny","reason":"too late"}`), nil
}

// panicking is a protocol that panics when it reads the answer.
type panicking struct{ refusing }

func (panicking) Read(context.Context, *worker.Envelope, *declare.Reply) (json.RawMessage, error) {
	panic("a mistake in the protocol")
}

// A panic while the answer of a detached command is read is logged, and the process goes on.
func TestADetachedCommandThatPanics(t *testing.T) { // SPEC B-01
	t.Parallel()
	var log bytes.Buffer
	d := &declare.Declaration{
		ID: "later", Phase: "tool.pre", File: "x", Line: 1, Dir: t.TempDir(), Kind: hook.HandlerCommand, Argv: []string{"true"}, Protocol: panicking{}, Detached: true,
		Options: hook.Options{Failure: hook.Open, Capabilities: hook.CanAudit, Timeout: time.Minute},
	}
	set, err := declare.New([]*declare.Declaration{d}, hook.Origin{Kind: hook.OriginOperator}, &declare.Options{Project: d.Dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := hook.NewRuntime(belay.Phases(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.Install(set.Subscriptions()...); err != nil {
		t.Fatal(err)
	}
	call, err := belay.ToolPre.DecodeInput(hook.Scope{}, []byte(`{"id":"c","tool":"shell","input":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	snapshot := runtime.Snapshot()
	if outcome, err := belay.ToolPre.Dispatch(t.Context(), snapshot, call); err != nil || outcome.Output.Decision != belay.ToolPass {
		t.Errorf("the gate answered %+v, %v", outcome.Output, err)
	}
	if err := snapshot.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := set.Close(); err != nil { // waits for the command
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text, "a mistake in the protocol") || !strings.Contains(text, "subscription=later") {
		t.Errorf("the log is %q", text)
	}
}

// A gate does not wait for a detached command, and its answer does not count. Close waits
// for the command.
func TestADetachedCommand(t *testing.T) { // SPEC B-01
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "gate"), 0o700); err != nil {
		t.Fatal(err)
	}
	// The command waits until the gate has answered.
	script := `while [ -e gate ]; do sleep 0.01; done; cat > done.txt`
	d := &declare.Declaration{
		ID: "later", Phase: "tool.pre", File: "x", Line: 1, Dir: dir, Kind: hook.HandlerCommand, Argv: []string{"sh", "-c", script}, Protocol: refusing{}, Detached: true,
		Options: hook.Options{Failure: hook.Open, Capabilities: hook.CanAudit, Timeout: time.Minute},
	}
	set, err := declare.New([]*declare.Declaration{d}, hook.Origin{Kind: hook.OriginOperator}, &declare.Options{Project: dir})
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := hook.NewRuntime(belay.Phases(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.Install(set.Subscriptions()...); err != nil {
		t.Fatal(err)
	}
	call, err := belay.ToolPre.DecodeInput(hook.Scope{}, []byte(`{"id":"c","tool":"shell","input":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	snapshot := runtime.Snapshot()
	outcome, err := belay.ToolPre.Dispatch(t.Context(), snapshot, call)
	if err != nil || outcome.Output.Decision != belay.ToolPass {
		t.Errorf("the gate answered %+v, %v", outcome.Output, err)
	}
	if err := snapshot.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "done.txt")); err == nil {
		t.Error("the gate waited for the command")
	}
	if err := os.Remove(filepath.Join(dir, "gate")); err != nil {
		t.Fatal(err)
	}
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "done.txt")); err != nil || string(text) != "asked\n" {
		t.Errorf("after Close the command has written %q, %v", text, err)
	}
	if err := set.Close(); err != nil { // again
		t.Fatal(err)
	}
}
