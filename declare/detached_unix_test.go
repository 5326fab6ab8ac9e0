//go:build unix

package declare_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/belay-run/belay/hook/codes"
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
	set, err := declare.New([]*declare.Declaration{d}, hook.Origin{Kind: hook.OriginOperator}, &declare.Options{Project: d.Dir})
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
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
	explained, err := belay.ToolPre.Explain(t.Context(), snapshot, call)
	if err != nil || len(explained.Entries) != 1 || explained.Entries[0].State != hook.Completed || explained.Entries[0].Code != "" {
		t.Errorf("the explanation is %+v, %v: want a hook that has not failed", explained, err)
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

// endings reads the answers of commands as the exit code says.
type endings struct{ refusing }

func (endings) Read(_ context.Context, _ *worker.Envelope, r *declare.Reply) (json.RawMessage, error) {
	switch {
	case r.Err != nil:
		return nil, r.Err
	case r.Code != 0:
		return nil, &hook.SafeError{Message: fmt.Sprintf("exit code %d", r.Code)}
	case strings.Contains(r.Stdout, "panic"):
		panic("a mistake in the protocol")
	}
	return nil, nil
}

// The journal has the run of a detached command: as started while the command runs, and then
// how it ended. A failure is reported, because no dispatch waits for it.
//
// SPEC B-01, J-01
func TestTheEndOfADetachedCommandIsRecorded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, does string
		timeout    time.Duration
		state      hook.State
		class      codes.Code
		message    string
	}{
		{"it succeeds", `true`, time.Minute, hook.Completed, "", ""},
		{"it fails", `exit 3`, time.Minute, hook.Failed, codes.Error, "exit code 3"},
		{"its answer cannot be read", `echo panic`, time.Minute, hook.Failed, codes.Panic, "the answer of the hook could not be read"},
		{"it takes too long", `sleep 600`, 10 * time.Millisecond, hook.TimedOut, codes.Timeout, "the hook did not answer within its timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d := &declare.Declaration{
				ID: "later", Phase: "tool.pre", File: "x", Line: 1, Dir: dir, Kind: hook.HandlerCommand, Argv: []string{"sh", "-c", `while [ ! -e go ]; do sleep 0.01; done; ` + c.does}, Protocol: endings{}, Detached: true,
				Options: hook.Options{Failure: hook.Open, Capabilities: hook.CanAudit, Timeout: c.timeout, Concurrent: true},
			}
			set, err := declare.New([]*declare.Declaration{d}, hook.Origin{Kind: hook.OriginOperator}, &declare.Options{Project: dir})
			if err != nil {
				t.Fatal(err)
			}
			journal := hook.NewMemoryJournal(10)
			reported := 0
			runtime, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Journal: journal, Failed: func(hook.Scope, hook.Problem) { reported++ }})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := runtime.Install(set.Subscriptions()...); err != nil {
				t.Fatal(err)
			}
			call, err := belay.ToolPre.DecodeInput(hook.Scope{Session: "s"}, []byte(`{"id":"c","tool":"shell","input":{}}`))
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
			run := onlyRun(t, journal)
			if c.timeout == time.Minute && run.State != hook.Started {
				t.Errorf("while the command runs, its run is %s", run.State)
			}
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := set.Close(); err != nil { // waits for the command
				t.Fatal(err)
			}
			end := onlyRun(t, journal)
			message := ""
			if len(end.Diagnostics) > 0 {
				message = end.Diagnostics[0].Message
			}
			if end.ID != run.ID || end.State != c.state || end.Class != c.class || message != c.message || end.Scope.Session != "s" || end.Attempt != 1 || end.Ended.Before(end.Started) {
				t.Errorf("the run ended as %+v", end)
			}
			if (reported == 1) != (c.state != hook.Completed) {
				t.Errorf("%d failures were reported", reported)
			}
		})
	}
}

// onlyRun returns the only run of a journal.
func onlyRun(t *testing.T, journal hook.ListJournal) hook.Run {
	t.Helper()
	var all []hook.Run
	for run, err := range journal.List(t.Context(), hook.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, run)
	}
	if len(all) != 1 {
		t.Fatalf("the journal has %d runs", len(all))
	}
	return all[0]
}
