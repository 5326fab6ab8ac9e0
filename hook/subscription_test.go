package hook_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/hook"
)

// SPEC H-02
func TestSubscriptionDefaults(t *testing.T) {
	t.Parallel()
	sub := gatePhase.On("a", says(verdict{}), nil)
	equal(t, "id", sub.ID(), "a")
	equal(t, "phase", sub.Phase().Name(), "test.gate")
	want := hook.Options{Name: "a", Kind: hook.HandlerGo, Failure: hook.Closed}
	if got := sub.Options(); !reflect.DeepEqual(got, want) {
		t.Errorf("options: got %+v, want %+v", got, want)
	}
	equal(t, "default visibility", sub.Options().Visibility.String(), "user_audit")
	equal(t, "default execution", sub.Options().Execution.String(), "blocking")
	equal(t, "default origin", sub.Options().Origin.String(), "host")
	for _, test := range []struct {
		execution hook.Execution
		want      time.Duration
	}{{hook.FireAndRecord, time.Minute}, {hook.Background, 10 * time.Minute}, {hook.Blocking, 0}} {
		got := observePhase.On("a", says(remark{}), &hook.Options{Execution: test.execution}).Options().Timeout
		equal(t, "default timeout of "+test.execution.String(), got, test.want)
	}
}

// SPEC H-02
func TestSubscriptionKeepsEveryOption(t *testing.T) {
	t.Parallel()
	opts := hook.Options{
		Name: "A", Description: "does things", Kind: hook.HandlerCommand, Version: "3", Priority: -7,
		After: []string{"x"}, Before: []string{"y"}, Execution: hook.Background, Concurrent: true,
		Timeout: time.Second, Failure: hook.Open, Match: hook.Match{Tools: []string{"w*"}, Labels: map[string][]string{"lang": {"go"}}},
		Visibility: hook.VisibleToUser, Origin: hook.Origin{Kind: hook.OriginSpace, Name: "demo", File: "h.yaml", Line: 3},
		Capabilities: hook.CanAudit, Idempotent: true, Retry: hook.Retry{Attempts: 3}, Effects: true, Shadow: true, NoInherit: true, Disabled: true,
	}
	// The test must set every field, so that a new field of Options is not forgotten here.
	for i, v := 0, reflect.ValueOf(opts); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("the test leaves out %s", v.Type().Field(i).Name)
		}
	}
	if got := observePhase.On("a", says(remark{}), &opts).Options(); !reflect.DeepEqual(got, opts) {
		t.Errorf("options: got %+v, want %+v", got, opts)
	}
}

// A subscription is immutable: it shares no memory with the options that it was made from,
// or with the options that it returns.
//
// SPEC H-02
func TestSubscriptionIsImmutable(t *testing.T) {
	t.Parallel()
	opts := &hook.Options{
		After: []string{"first"}, Before: []string{"last"},
		Match: hook.Match{Tools: []string{"write"}, Agents: []string{"main"}, Labels: map[string][]string{"lang": {"go"}}},
	}
	sub := gatePhase.On("a", says(verdict{}), opts)
	spoil := func(o *hook.Options) {
		o.After[0], o.Before[0], o.Match.Tools[0], o.Match.Agents[0] = "bad", "bad", "bad", "bad"
		o.Match.Labels["lang"][0] = "bad"
		o.Match.Labels["tool"] = []string{"bad"}
		o.Priority, o.Disabled = 9, true
	}
	spoil(opts)
	got := sub.Options()
	spoil(&got)
	want := hook.Options{
		Name: "a", Kind: hook.HandlerGo, Failure: hook.Closed, After: []string{"first"}, Before: []string{"last"},
		Match: hook.Match{Tools: []string{"write"}, Agents: []string{"main"}, Labels: map[string][]string{"lang": {"go"}}},
	}
	if got := sub.Options(); !reflect.DeepEqual(got, want) {
		t.Errorf("options: got %+v, want %+v", got, want)
	}
}

// SPEC H-02, H-03
func TestEmptySubscriptionIsRefused(t *testing.T) {
	t.Parallel()
	var empty hook.Subscription
	equal(t, "id", empty.ID(), "")
	equal(t, "phase", empty.Phase(), nil)
	equal(t, "options", empty.Options().Name, "")
	_, err := newRuntime(t, nil).Install(empty)
	problem, ok := errors.AsType[*hook.OptionError](err)
	if !ok || problem.Field != "phase" {
		t.Errorf("install: got %v, want an *OptionError about the phase", err)
	}
}

// These are the exact names in files, records and listings.
//
// SPEC H-02, H-09, H-10, J-01
func TestWireNames(t *testing.T) {
	t.Parallel()
	type word interface{ MarshalText() ([]byte, error) }
	for want, value := range map[string]word{
		"gate": hook.Gate, "collect": hook.Collect, "observe": hook.Observe,
		"blocking": hook.Blocking, "deadline": hook.Deadline, "fire_and_record": hook.FireAndRecord, "background": hook.Background,
		"internal": hook.VisibleInternally, "debug": hook.VisibleInDebug, "user_audit": hook.VisibleInAudit, "user_visible": hook.VisibleToUser,
		"host": hook.OriginHost, "operator": hook.OriginOperator, "project": hook.OriginProject, "space": hook.OriginSpace,
		"closed": hook.Closed, "open": hook.Open, "fallback": gatePhase.Fallback(verdict{}), "default": hook.Failure{},
		"started": hook.Started, "completed": hook.Completed, "skipped": hook.Skipped, "failed": hook.Failed,
		"timed_out": hook.TimedOut, "backgrounded": hook.Backgrounded, "interrupted": hook.Interrupted,
		"pass": hook.SeverityPass, "ask": hook.SeverityAsk, "deny": hook.SeverityDeny, "halt": hook.SeverityHalt,
	} {
		text, err := value.MarshalText()
		if err != nil || string(text) != want {
			t.Errorf("got %q, %v; want %q", text, err, want)
		}
	}
	roundTrip(t, hook.Collect, new(hook.Kind))
	roundTrip(t, hook.FireAndRecord, new(hook.Execution))
	roundTrip(t, hook.VisibleInDebug, new(hook.Visibility))
	roundTrip(t, hook.OriginSpace, new(hook.OriginKind))
	roundTrip(t, hook.TimedOut, new(hook.State))
	roundTrip(t, hook.SeverityHalt, new(hook.Severity))
	roundTrip(t, hook.CanAsk|hook.CanApprove, new(hook.Capability))
	var kind hook.Kind
	if err := json.Unmarshal([]byte(`"gates"`), &kind); err == nil {
		t.Error("an unknown word was accepted")
	}
}

func roundTrip[T comparable](t *testing.T, value T, into *T) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil || *into != value {
		t.Errorf("%s: came back as %v, %v", data, *into, err)
	}
}

// A descriptor is stable: it depends only on the handler's contract.
//
// SPEC H-19
func TestDescribe(t *testing.T) {
	t.Parallel()
	subs := []hook.Subscription{
		gatePhase.On("guard", says(verdict{}), &hook.Options{Version: "2", Kind: hook.HandlerCommand, Priority: 5, Disabled: true}),
		observePhase.On("guard", says(remark{}), &hook.Options{Version: "2", Kind: hook.HandlerCommand, Execution: hook.FireAndRecord}),
		collectPhase.On("helper", says(findings{}), &hook.Options{Capabilities: hook.CanAddContext}),
		collectPhase.On("silent", says(findings{}), &hook.Options{Capabilities: hook.NoCapability}),
		rewritePhase.On("editor", says(edit{}), rewriter(hook.Options{Version: "1"})),
		rewritePhase.On("guard", says(edit{}), &hook.Options{Version: "3", Kind: hook.HandlerCommand}),
		withholdPhase.On("guard", says(findings{}), &hook.Options{Version: "3", Kind: hook.HandlerAction, Capabilities: hook.CanAudit}),
	}
	const want = `[
	{"id":"editor","kind":"go","version":"1","phases":["test.rewrite"],"capabilities":["rewrite_input"]},
	{"id":"guard","kind":"command","version":"2","phases":["test.gate","test.observe"],"capabilities":["block","ask","context","audit","jobs"]},
	{"id":"guard","kind":"action","version":"3","phases":["test.withhold"],"capabilities":["audit"]},
	{"id":"guard","kind":"command","version":"3","phases":["test.rewrite"],"capabilities":["block","audit"]},
	{"id":"helper","kind":"go","phases":["test.collect"],"capabilities":["context"]},
	{"id":"silent","kind":"go","phases":["test.collect"],"capabilities":[]}
]`
	var expected []hook.Descriptor
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		got := hook.Describe(rapid.Permutation(subs).Draw(rt, "subscriptions")...)
		if !reflect.DeepEqual(got, expected) {
			rt.Fatalf("got %+v, want %+v", got, expected)
		}
	})
	data, err := json.Marshal(hook.Describe(subs...)[0])
	if err != nil || string(data) != `{"id":"editor","kind":"go","version":"1","phases":["test.rewrite"],"capabilities":["rewrite_input"]}` {
		t.Errorf("JSON: got %s, %v", data, err)
	}
}

// SPEC H-19
func TestDescribeOfNothing(t *testing.T) {
	t.Parallel()
	equal(t, "descriptors of no subscription", len(hook.Describe()), 0)
	var empty hook.Subscription
	if got := hook.Describe(empty, empty); len(got) != 1 || got[0].ID != "" {
		t.Errorf("two empty subscriptions: got %+v, want one empty descriptor", got)
	}
}
