//go:build unix

package declare_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
)

// workerGate returns a hook file with a gate whose worker is this program.
func workerGate(t testing.TB, task string, lines ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) == 0 {
		lines = []string{"timeout: 30s"} // a long timeout, because the machine may be busy
	}
	return gate(append([]string{"worker: ['" + self + "']", "env: [" + workerTask + "=" + task + ", " + noPause + "]"}, lines...)...)
}

// call returns a tool call whose input tells the worker what to do.
func call(do, with string) string {
	return fmt.Sprintf(`{"id": "1", "tool": "write", "input": {"do": %q, "with": %q}}`, do, with)
}

// SPEC C-01, C-08
func TestWorkerAnswers(t *testing.T) {
	t.Parallel()
	set := newPlace(t).set(workerGate(t, "good"), nil)
	for _, test := range []struct {
		do     string
		want   belay.ToolDecision
		code   codes.Code
		reason string
	}{
		{"deny", belay.ToolDeny, "", "because"},
		{"nothing", belay.ToolPass, "", ""},
		{"fail", belay.ToolDeny, codes.Error, "the database is gone"},
		{"panic", belay.ToolDeny, codes.Error, "the handler panicked: oops"},
		{"nothing", belay.ToolPass, "", ""},
	} {
		trial := try(t, set, call(test.do, "because"))
		if trial.Output.Decision != test.want || code(trial) != test.code || !strings.Contains(trial.Output.Reason, test.reason) {
			t.Errorf("%s: %v, reason %q", test.do, trial, trial.Output.Reason)
		}
	}
	first, second := try(t, set, call("pid", "")).Output.Reason, try(t, set, call("pid", "")).Output.Reason
	if first == "" || first != second {
		t.Errorf("calls went to processes %s and %s, want one", first, second)
	}
}

// SPEC C-08
func TestWorkerCallsOverlap(t *testing.T) {
	t.Parallel()
	set := newPlace(t).set(workerGate(t, "good"), nil)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if trial := try(t, set, call("meet", "first")); trial.Output.Reason != "met" {
			t.Errorf("first: %v, want its own answer", trial)
		}
	})
	if trial := try(t, set, call("meet", "second")); trial.Output.Reason != "met" {
		t.Errorf("second: %v", trial)
	}
	waiting.Wait()
	var many sync.WaitGroup
	for i := range 50 {
		many.Go(func() {
			want := strings.Repeat("x", i*1000)
			if trial := try(t, set, call("deny", want)); trial.Output.Reason != want {
				t.Errorf("call %d got the answer of another, or none: %v", i, trial.Diagnostics)
			}
		})
	}
	many.Wait()
}

// SPEC C-08
func TestWorkerCallsHaveTheirOwnDeadlines(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	set := p.set(workerGate(t, "good", "timeout: 3s"), nil)
	if err := set.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := try(t, set, call("pid", "")).Output.Reason
	if trial := try(t, set, call("wait", filepath.Join(p.dir, "cancelled"))); trial.Output.Decision != belay.ToolDeny || code(trial) != codes.Timeout {
		t.Errorf("%v, want a denial with hook.timeout", trial)
	}
	if now := try(t, set, call("pid", "")).Output.Reason; now != pid {
		t.Errorf("the worker was ended for a call that took too long: %s, then %s", pid, now)
	}
	for deadline := time.Now().Add(10 * time.Second); !p.has("cancelled"); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the worker was not told that nobody waits any more")
		}
	}
}

// SPEC C-08
func TestWorkerThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ do, want string }{{"die", "the worker ended with exit code 7"}, {"kill", "the worker was killed (signal 9)"}} {
		set := newPlace(t).set(workerGate(t, "good"), &declare.Options{Backoff: 200 * time.Millisecond})
		before := try(t, set, call("pid", "")).Output.Reason
		if trial := try(t, set, call(test.do, "")); trial.Output.Decision != belay.ToolDeny || !strings.Contains(trial.Output.Reason, test.want) {
			t.Errorf("%v, want the call in flight to fail: %s", trial, test.want)
		}
		begun := time.Now()
		after := try(t, set, call("pid", ""))
		if after.Output.Decision != belay.ToolAsk || after.Output.Reason == before {
			t.Errorf("%v, want another process than %s", after, before)
		}
		if took := time.Since(begun); took < 100*time.Millisecond {
			t.Errorf("it was started again after %s, want a pause", took)
		}
	}
}

// The pause before a restart of a worker doubles with each death. A successful call
// resets it.
//
// SPEC C-08
func TestWorkerPausesGrowAndShrink(t *testing.T) {
	t.Parallel()
	var log records
	const first = 20 * time.Millisecond
	set := newPlace(t).set(workerGate(t, "good"), &declare.Options{Backoff: first, Logger: slog.New(&log)})
	for _, do := range []string{"die", "die", "die", "pid", "die", "die", "fail", "die"} {
		try(t, set, call(do, ""))
	}
	got := log.durations("worker ended", "restart_in")
	if want := []time.Duration{first, 2 * first, 4 * first, first, 2 * first, 4 * first}; !slices.Equal(got, want) {
		t.Errorf("pauses = %v, want %v", got, want)
	}
}

// Processes that a worker has started end with the worker, both when it dies and when its
// hooks are unloaded.
//
// SPEC C-08, W-01
func TestChildrenOfAWorkerEndWithIt(t *testing.T) {
	t.Parallel()
	for _, do := range []string{"orphan", "child"} {
		p := newPlace(t)
		set := p.set(workerGate(t, "good"), &declare.Options{Grace: 100 * time.Millisecond})
		file := filepath.Join(p.dir, "pid")
		try(t, set, call(do, file))
		if do == "child" {
			if err := set.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if pid := p.read("pid"); !ended(t, pid) {
			t.Errorf("%s: process %s is still running", do, pid)
			endNow(t, pid)
		}
	}
}

// SPEC C-08
func TestWorkerThatKeepsDyingIsLeftAlone(t *testing.T) {
	t.Parallel()
	set := newPlace(t).set(workerGate(t, "broken"), &declare.Options{Backoff: time.Hour})
	for _, want := range []string{"cannot open the database", "does not start it again before"} {
		begun := time.Now()
		trial := try(t, set, call("deny", ""))
		if trial.Output.Decision != belay.ToolDeny || !strings.Contains(trial.Output.Reason, want) || time.Since(begun) > 20*time.Second {
			t.Errorf("%v, want a denial at once: %s", trial, want)
		}
	}
	if err := set.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "hooks.yaml:2: ") {
		t.Errorf("Start = %v, want the place and the reason", err)
	}
}

// SPEC C-08
func TestWorkerThatAnswersGarbageIsStopped(t *testing.T) {
	t.Parallel()
	for task, want := range map[string]string{
		"chatty": `"checking the call", which is not a JSON-RPC 2.0 response`, "stranger": "a response with an unknown call id", "older": "protocol version",
		"endless": "a line of more than 1024 KiB",
	} {
		t.Run(task, func(t *testing.T) {
			t.Parallel()
			var log records
			set := newPlace(t).set(workerGate(t, task), &declare.Options{Grace: 100 * time.Millisecond, Logger: slog.New(&log)})
			trial := try(t, set, call("deny", ""))
			if trial.Output.Decision != belay.ToolDeny || code(trial) != codes.OutputInvalid || !strings.Contains(trial.Output.Reason, want) {
				t.Errorf("%v, reason %q: want a denial with hook.output_invalid: %s", trial, trial.Output.Reason, want)
			}
			if !log.has("worker ended", "gate") {
				t.Error("the log does not name the worker")
			}
		})
	}
	trial := try(t, newPlace(t).set(workerGate(t, "text"), nil), call("deny", ""))
	if trial.Output.Decision != belay.ToolDeny || code(trial) != codes.OutputInvalid {
		t.Errorf("%v, want a result that is a text to fail", trial)
	}
}

// SPEC C-08
func TestWorkerAnswersThatComeLateAreNotUsed(t *testing.T) {
	t.Parallel()
	set := newPlace(t).set(workerGate(t, "late"), nil)
	for range 3 {
		if trial := try(t, set, call("nothing", "")); trial.Output.Decision != belay.ToolPass || len(trial.Diagnostics) > 0 {
			t.Errorf("%v, want its own answer", trial)
		}
	}
}

// SPEC C-08, C-06
func TestWorkerThatNeitherReadsNorEnds(t *testing.T) {
	t.Parallel()
	var log records
	set := newPlace(t).set(workerGate(t, "mute", "timeout: 5s"), &declare.Options{Grace: 100 * time.Millisecond, Logger: slog.New(&log)})
	trial := try(t, set, `{"id": "1", "tool": "write", "input": {"content": "`+strings.Repeat("x", 1<<20)+`"}}`)
	if trial.Output.Decision != belay.ToolDeny || code(trial) != codes.Timeout {
		t.Errorf("%v, want a denial with hook.timeout", trial)
	}
	child := log.line("child ")
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	if !ended(t, child) {
		t.Error("its child is still running")
		endNow(t, child)
	}
}

// A worker that stops reading is ended after the first call that it does not read. The
// next call gets a new worker.
//
// SPEC C-08, C-06
func TestWorkerThatStopsReadingIsEnded(t *testing.T) {
	t.Parallel()
	var log records
	set := newPlace(t).set(workerGate(t, "deaf", "timeout: 2s"), &declare.Options{Grace: 100 * time.Millisecond, Logger: slog.New(&log)})
	if err := set.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	trial := try(t, set, `{"id": "1", "tool": "write", "input": {"content": "`+strings.Repeat("x", 1<<20)+`"}}`)
	if trial.Output.Decision != belay.ToolDeny || code(trial) != codes.Timeout {
		t.Errorf("%v, want a denial with hook.timeout", trial)
	}
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		if _, ok := log.attr("worker ended", "error", "Belay stopped the worker because it does not read its standard input"); ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it was not ended")
		}
	}
}

// SPEC C-08
func TestWorkersAreClosedWithTheirSet(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	text := workerGate(t, "good") + strings.ReplaceAll(strings.TrimPrefix(workerGate(t, "good"), "hooks:\n"), "id: gate\n    phase: tool.pre", "id: stop\n    phase: turn.stop")
	for range 5 {
		set := p.set(text, nil)
		if err := set.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		trial := hooktest.Try(t, belay.ToolPre, set.Subscriptions()[0], hooktest.Input(t, belay.ToolPre, call("pid", "")), nil)
		stop := hooktest.Try(t, belay.TurnStop, set.Subscriptions()[1], hooktest.Input(t, belay.TurnStop, `{"text": "", "continuations": 0}`), nil)
		pid := trial.Output.Reason
		if pid == "" || stop.Output.Reason != pid {
			t.Errorf("hooks of one program run in %q and %q, want one process", pid, stop.Output.Reason)
		}
		if err := set.Close(); err != nil {
			t.Fatal(err)
		}
		if !ended(t, pid) {
			t.Errorf("process %s is still running", pid)
		}
		again := hooktest.Try(t, belay.ToolPre, set.Subscriptions()[0], hooktest.Input(t, belay.ToolPre, call("pid", "")), nil)
		if again.Output.Decision != belay.ToolDeny || !errors.Is(again.Diagnostics[0].Err, declare.ErrClosed) {
			t.Errorf("%v, want it to fail", again)
		}
	}
}

// SPEC C-08, C-06
func TestWorkerThatDoesNotEndIsMadeTo(t *testing.T) {
	t.Parallel()
	var log records
	set := newPlace(t).set(workerGate(t, "stubborn"), &declare.Options{Grace: 100 * time.Millisecond, Logger: slog.New(&log)})
	if err := set.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	if pid := log.line("pid "); !ended(t, pid) {
		t.Error("it is still running")
		endNow(t, pid)
	}
}

// SPEC C-05
func TestWorkerEnvironment(t *testing.T) {
	t.Parallel()
	set := newPlace(t).set(workerGate(t, "good"), &declare.Options{Environ: []string{"PATH=/bin", "TOKEN=planted"}, Project: "/srv/work"})
	got := strings.Split(try(t, set, call("env", "")).Output.Reason, "\n")
	slices.Sort(got)
	if want := []string{"BELAY_PROJECT_DIR=/srv/work", workerTask + "=good", noPause, "PATH=/bin"}; !slices.Equal(got, want) {
		t.Errorf("environment = %q, want %q", got, want)
	}
}

func TestWorkerIsNotStartedWithoutTrust(t *testing.T) {
	t.Parallel()
	set := newPlace(t).set(workerGate(t, "good"), &declare.Options{
		Trust: func(context.Context, *declare.Declaration) error { return errUntrusted },
		Confine: func(context.Context, *declare.Declaration, *declare.Execution) error {
			t.Error("it was about to run")
			return nil
		},
	})
	if err := set.Start(t.Context()); err != nil {
		t.Errorf("Start = %v, want the others to start", err)
	}
}

// records is a log handler whose records tests can search.
type records struct {
	mu  sync.Mutex
	all []slog.Record
}

func (*records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithAttrs([]slog.Attr) slog.Handler     { return r }
func (r *records) WithGroup(string) slog.Handler          { return r }
func (r *records) Handle(_ context.Context, rec slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, rec)
	return nil
}

// attr returns the first value of an attribute that begins with prefix.
func (r *records) attr(message, key, prefix string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := "", false
	for _, rec := range r.all {
		rec.Attrs(func(a slog.Attr) bool {
			if value := a.Value.String(); rec.Message == message && a.Key == key && strings.HasPrefix(value, prefix) && !ok {
				found, ok = value, true
			}
			return true
		})
	}
	return found, ok
}

// durations returns all values of an attribute, in order.
func (r *records) durations(message, key string) []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []time.Duration
	for _, rec := range r.all {
		rec.Attrs(func(a slog.Attr) bool {
			if rec.Message == message && a.Key == key {
				all = append(all, a.Value.Duration())
			}
			return true
		})
	}
	return all
}

func (r *records) has(message, subscription string) bool {
	_, ok := r.attr(message, "subscription", subscription)
	return ok
}

// line returns the text after prefix in a line that the worker has logged.
func (r *records) line(prefix string) string {
	text, _ := r.attr("worker", "line", prefix)
	return strings.TrimPrefix(text, prefix)
}
