package declare_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
)

// SPEC H-02
func TestSetPrefixesIDs(t *testing.T) {
	t.Parallel()
	declared, err := declare.Parse("a.yaml", []byte(`hooks:
  - { id: a, phase: tool.pre, action: log }
  - { id: b, phase: tool.pre, action: log, after: [a, host-audit], before: [c] }
  - { id: c, phase: tool.post, action: log }
`))
	if err != nil {
		t.Fatal(err)
	}
	set, err := declare.New(declared, hook.Origin{Kind: hook.OriginSpace, Name: "demo"}, &declare.Options{Prefix: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range set.Subscriptions() {
		ids = append(ids, s.ID())
	}
	if diff := cmp.Diff([]string{"demo/a", "demo/b", "demo/c"}, ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	b := set.Subscriptions()[1].Options()
	if diff := cmp.Diff([][]string{{"demo/a", "host-audit"}, {"c"}}, [][]string{b.After, b.Before}); diff != "" {
		t.Errorf("after and before: those of the set on the phase have its prefix (-want +got):\n%s", diff)
	}
}

// SPEC H-21
func TestShadowChangesNothing(t *testing.T) {
	t.Parallel()
	trial := try(t, newPlace(t).set(gate("run: exit 2", "shadow: true"), nil), write)
	run, ok := trial.Run()
	if trial.Output.Decision != belay.ToolPass || !ok || !run.Shadow || run.Severity != hook.SeverityDeny {
		t.Errorf("%v, %+v: want a denial on record, and no effect", trial, run)
	}
}

// SPEC H-10
func TestFailureModes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]belay.ToolDecision{
		"failure: closed": belay.ToolDeny, "failure: open": belay.ToolPass, "priority: 1": belay.ToolDeny,
		"failure: { fallback: { decision: ask, reason: the check is broken } }": belay.ToolAsk,
	} {
		if trial := try(t, newPlace(t).set(gate("run: exit 3", line), nil), write); trial.Output.Decision != want {
			t.Errorf("%s: %v, want %q", line, trial, want)
		}
	}
}

// SPEC H-15
func TestCapabilitiesBoundAnswers(t *testing.T) {
	t.Parallel()
	const rewrites = `run: 'echo "{\"input\": {\"path\": \"b\"}}"'`
	if trial := try(t, newPlace(t).set(gate(rewrites), nil), write); trial.Output.Decision != belay.ToolDeny || code(trial) != codes.CapabilityMissing {
		t.Errorf("%v, want a rewriting that was not declared to fail the run", trial)
	}
	trial := try(t, newPlace(t).set(gate(rewrites, "capabilities: [rewrite_input]"), nil), write)
	if got := string(trial.Input.Input()); len(trial.Diagnostics) > 0 || got != `{"path":"b"}` {
		t.Errorf("%v, input %s: want it rewritten", trial, got)
	}
	if trial := try(t, newPlace(t).set(gate("run: echo hello", "capabilities: []"), nil), write); code(trial) != codes.CapabilityMissing {
		t.Errorf("%v, want an empty list to allow nothing", trial)
	}
	p := newPlace(t)
	set, err := declare.New(p.load(gate(rewrites, "capabilities: [rewrite_input]")), hook.Origin{Kind: hook.OriginProject}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := hook.NewRuntime(belay.Phases(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Install(set.Subscriptions()...); err == nil || !strings.Contains(err.Error(), "hooks.yaml:2: ") || !strings.Contains(err.Error(), "no grant for rewrite_input") {
		t.Errorf("err = %v, want a project's rewriting refused, with its place", err)
	}
}

func TestTrustIsAskedBeforeACommandRuns(t *testing.T) {
	t.Parallel()
	asked := 0
	opts := &declare.Options{Trust: func(_ context.Context, d *declare.Declaration) error {
		asked++
		if d.ID != "gate" {
			t.Errorf("asked about %q", d.ID)
		}
		return errUntrusted
	}}
	for _, line := range []string{"run: touch ran", "command: [touch, ran]", "worker: [touch, ran]"} {
		for _, mode := range []string{"closed", "open", "{ fallback: { decision: ask } }"} {
			p := newPlace(t)
			trial := try(t, p.set(gate(line, "failure: "+mode), opts), write)
			if trial.Output.Decision != belay.ToolDeny || !strings.Contains(trial.Output.Reason, errUntrusted.Error()) {
				t.Errorf("%s, failure %s: %v, want a closed gate, with the reason", line, mode, trial)
			}
			if p.has("ran") {
				t.Errorf("%s ran all the same", line)
			}
		}
	}
	if asked != 9 {
		t.Errorf("asked %d times, want each time", asked)
	}
	p := newPlace(t)
	set := p.set("hooks:\n  - { id: gate, phase: tool.post, run: touch ran }\n", opts)
	trial := hooktest.Try(t, belay.ToolPost, only(t, set), hooktest.Input(t, belay.ToolPost, `{"id": "1", "tool": "a", "input": {}, "text": ""}`), nil)
	if trial.Err != nil || p.has("ran") || len(trial.Diagnostics) != 1 {
		t.Errorf("%v, want a diagnostic about a hook that must not run, and nothing else", trial)
	}
	p = newPlace(t)
	set = p.set("hooks:\n  - { id: gate, phase: turn.stop, run: exit 2 }\n", opts)
	stop := hooktest.Try(t, belay.TurnStop, only(t, set), hooktest.Input(t, belay.TurnStop, `{"text": "", "continuations": 0}`), nil)
	if stop.Output.Decision != "" || len(stop.Diagnostics) != 1 {
		t.Errorf("%v, want the turn to end: to go on and on does harm", stop)
	}
	opts.Trust = func(context.Context, *declare.Declaration) error { return errors.New("asked") }
	if trial := try(t, newPlace(t).set(gate("action: approve"), opts), write); trial.Output.Decision != belay.ToolAsk {
		t.Errorf("%v, want an action to need no trust", trial)
	}
}

func TestConfineChangesWhatRuns(t *testing.T) {
	t.Parallel()
	opts := &declare.Options{Confine: func(_ context.Context, d *declare.Declaration, run *declare.Execution) error {
		run.Argv = append([]string{"/usr/bin/env", "CONFINED=" + d.ID}, run.Argv...)
		run.Env = append(run.Env, "ADDED=1")
		return nil
	}}
	if trial := try(t, newPlace(t).set(gate(`run: 'echo "$CONFINED $ADDED" >&2; exit 2'`), opts), write); trial.Output.Reason != "gate 1" {
		t.Errorf("%v, want what Confine made of it", trial)
	}
	opts.Confine = func(context.Context, *declare.Declaration, *declare.Execution) error { return errors.New("no sandbox") }
	p := newPlace(t)
	if trial := try(t, p.set(gate("run: touch ran"), opts), write); trial.Output.Decision != belay.ToolDeny || p.has("ran") || !strings.Contains(trial.Output.Reason, "no sandbox") {
		t.Errorf("%v, want it not to run", trial)
	}
}

// If no one waits for a hook, its answer cannot block anything.
//
// SPEC C-04, H-02
func TestBlockThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	set := newPlace(t).set("hooks:\n  - { id: late, phase: tool.post, run: exit 2, execution: fire_and_record }\n", nil)
	trial := hooktest.Try(t, belay.ToolPost, only(t, set), hooktest.Input(t, belay.ToolPost, `{"id": "1", "tool": "a", "input": {}, "text": "done"}`), nil)
	if run, _ := trial.Run(); run.State != hook.Completed || len(run.Audit) != 1 || len(trial.Output.Context) != 0 {
		t.Errorf("%v, %+v: want it recorded, and nothing else", trial, run)
	}
}

// A denial at a phase that cannot block is recorded and shown to users and the model. It
// has no other effect.
//
// SPEC C-04, C-12, C-13, R-02
func TestBlockWhereNothingCanBeBlocked(t *testing.T) {
	t.Parallel()
	set := newPlace(t).set("hooks:\n  - { id: late, phase: tool.post, run: 'echo too late >&2; exit 2' }\n", nil)
	trial := hooktest.Try(t, belay.ToolPost, only(t, set), hooktest.Input(t, belay.ToolPost, `{"id": "1", "tool": "a", "input": {}, "text": "done"}`), nil)
	run, _ := trial.Run()
	if trial.Err != nil || trial.Output.Result != nil || trial.Input.Text() != "done" || len(trial.Output.Shown()) != 1 || trial.Output.Shown()[0].Text != `Hook "late" answered deny at tool.post, a phase that cannot block: too late` || len(run.Audit) != 1 || run.Audit[0].Code != "block_ignored" {
		t.Errorf("%v, %+v: want it recorded and told, and the result as it was", trial, run)
	}
	set = newPlace(t).set("hooks:\n  - { id: more, phase: turn.stop, run: 'echo tests fail >&2; exit 2' }\n", nil)
	stop := hooktest.Try(t, belay.TurnStop, only(t, set), hooktest.Input(t, belay.TurnStop, `{"text": "", "continuations": 0}`), nil)
	if stop.Output.Decision != "continue" || stop.Output.Reason != "tests fail" {
		t.Errorf("%v, want the turn to go on", stop)
	}
}

func TestClosedSetFails(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	set := p.set(gate("run: touch ran"), nil)
	if err := errors.Join(set.Close(), set.Close()); err != nil {
		t.Fatal(err)
	}
	if trial := try(t, set, write); trial.Output.Decision != belay.ToolDeny || !errors.Is(trial.Diagnostics[0].Err, declare.ErrClosed) || p.has("ran") {
		t.Errorf("%v, want hooks that were unloaded to fail", trial)
	}
}

// SPEC C-06
func TestHooksThatGoDeclaresHaveTheDefaultTimeout(t *testing.T) {
	t.Parallel()
	for rule, d := range map[string]*declare.Declaration{
		"a command": {Kind: hook.HandlerCommand, Argv: []string{"true"}},
		"a worker":  {Kind: hook.HandlerWorker, Argv: []string{"true"}},
		"a webhook": {Kind: hook.HandlerWebhook, Webhook: &declare.Endpoint{URL: "https://example.com/"}},
		"an action": {Kind: hook.HandlerAction, Action: &declare.Action{Name: "log"}},
	} {
		for given, want := range map[time.Duration]time.Duration{0: 5 * time.Second, time.Minute: time.Minute} {
			d.ID, d.Phase, d.Options.Timeout = "gate", "tool.pre", given
			set, err := declare.New([]*declare.Declaration{d}, hook.Origin{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := only(t, set).Options().Timeout; got != want {
				t.Errorf("%s with the timeout %s has %s, want %s", rule, given, got, want)
			}
		}
	}
}

// SPEC C-12, H-10
func TestFallbackTakesContextAsATextToo(t *testing.T) {
	t.Parallel()
	for _, context := range []string{"careful", "[careful]", "[{ text: careful }]"} {
		set := newPlace(t).set(gate("run: exit 1", "timeout: 1m", "failure: { fallback: { decision: ask, context: "+context+" } }"), nil)
		if got := try(t, set, write).Output; got.Decision != belay.ToolAsk || len(got.Context) != 1 || got.Context[0].Text != "careful" {
			t.Errorf("%s: %+v, want the fallback", context, got)
		}
	}
}
