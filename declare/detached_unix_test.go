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

// aside is a runtime with one detached command at tool.pre, and a call for it.
type aside struct {
	set     *declare.Set
	runtime *hook.Runtime
	call    belay.ToolCall
}

// newAside makes such a runtime. The command runs in dir.
func newAside(t *testing.T, dir, script string, p declare.Protocol, timeout time.Duration, opts *hook.RuntimeOptions) *aside {
	t.Helper()
	d := &declare.Declaration{
		ID: "later", Phase: "tool.pre", File: "x", Line: 1, Dir: dir, Kind: hook.HandlerCommand, Argv: []string{"sh", "-c", script}, Protocol: p, Detached: true,
		Options: hook.Options{Failure: hook.Open, Capabilities: hook.CanAudit, Timeout: timeout, Concurrent: true},
	}
	set, err := declare.New([]*declare.Declaration{d}, hook.Origin{Kind: hook.OriginOperator}, &declare.Options{Project: dir})
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := hook.NewRuntime(belay.Phases(), opts)
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
	return &aside{set, runtime, call}
}

// pass dispatches the call, which the command cannot stop.
func (g *aside) pass(t *testing.T) {
	t.Helper()
	snapshot := g.runtime.Snapshot()
	if outcome, err := belay.ToolPre.Dispatch(t.Context(), snapshot, g.call); err != nil || outcome.Output.Decision != belay.ToolPass {
		t.Errorf("the gate answered %+v, %v", outcome.Output, err)
	}
	if err := snapshot.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// close waits for the command.
func (g *aside) close(t *testing.T) {
	t.Helper()
	if err := g.set.Close(); err != nil {
		t.Fatal(err)
	}
}

// A panic while the answer of a detached command is read is logged, and the process goes on.
func TestADetachedCommandThatPanics(t *testing.T) { // SPEC B-01
	t.Parallel()
	var log bytes.Buffer
	g := newAside(t, t.TempDir(), "true", panicking{}, time.Minute, &hook.RuntimeOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	g.pass(t)
	g.close(t)
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
	g := newAside(t, dir, `while [ -e gate ]; do sleep 0.01; done; cat > done.txt`, refusing{}, time.Minute, nil)
	g.pass(t)
	if _, err := os.Stat(filepath.Join(dir, "done.txt")); err == nil {
		t.Error("the gate waited for the command")
	}
	if err := os.Remove(filepath.Join(dir, "gate")); err != nil {
		t.Fatal(err)
	}
	g.close(t)
	if text, err := os.ReadFile(filepath.Join(dir, "done.txt")); err != nil || string(text) != "asked\n" {
		t.Errorf("after Close the command has written %q, %v", text, err)
	}
	g.close(t) // again
}

// An explanation starts nothing in the background.
func TestAnExplanationStartsNoDetachedCommand(t *testing.T) { // SPEC B-01
	t.Parallel()
	dir := t.TempDir()
	g := newAside(t, dir, `touch started.txt`, refusing{}, time.Minute, nil)
	snapshot := g.runtime.Snapshot()
	explained, err := belay.ToolPre.Explain(t.Context(), snapshot, g.call)
	if err != nil || len(explained.Entries) != 1 {
		t.Fatalf("the explanation is %+v, %v", explained, err)
	}
	if e := explained.Entries[0]; e.Why != "it would start, and the turn would not wait for it" || e.State != 0 || e.Code != "" {
		t.Errorf("the explanation says %+v", e)
	}
	if err := snapshot.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.close(t)
	if _, err := os.Stat(filepath.Join(dir, "started.txt")); err == nil {
		t.Error("the explanation started the command")
	}
}

// A command for which there is no room is not started, and its run says so.
func TestTooManyDetachedCommands(t *testing.T) { // SPEC B-01
	t.Parallel()
	dir := t.TempDir()
	journal := hook.NewMemoryJournal(100)
	g := newAside(t, dir, `while [ ! -e go ]; do sleep 0.05; done`, endings{}, time.Minute, &hook.RuntimeOptions{Journal: journal})
	const most = 32
	for range most + 1 {
		g.pass(t)
	}
	states := map[hook.State]int{}
	for run, err := range journal.List(t.Context(), hook.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		states[run.State]++
		if run.State == hook.Failed && run.Class != codes.Overloaded {
			t.Errorf("a run failed with %s", run.Class)
		}
	}
	if states[hook.Started] != most || states[hook.Failed] != 1 {
		t.Errorf("the runs are %v", states)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g.close(t)
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
			journal := hook.NewMemoryJournal(10)
			reported := 0
			g := newAside(t, dir, `while [ ! -e go ]; do sleep 0.01; done; `+c.does, endings{}, c.timeout,
				&hook.RuntimeOptions{Journal: journal, Failed: func(hook.Scope, hook.Problem) { reported++ }})
			g.pass(t)
			run := onlyRun(t, journal)
			if c.timeout == time.Minute && run.State != hook.Started {
				t.Errorf("while the command runs, its run is %s", run.State)
			}
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			g.close(t)
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
