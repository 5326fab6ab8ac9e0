package hook_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// planned returns a runtime with one subscription of every kind.
func planned(t *testing.T) *hook.Runtime {
	t.Helper()
	return newRuntime(t, &hook.RuntimeOptions{Queue: hook.NewMemoryQueue(hook.NewMemoryJournal(8), nil)},
		rewritePhase.On("redact", says(edit{}), rewriter(hook.Options{Execution: hook.Deadline, Timeout: 2 * time.Second})),
		rewritePhase.On("no-prod", says(edit{}), &hook.Options{
			Name: "No production", Match: hook.Match{Tools: []string{"write", "edit"}, When: hook.When("path is prod", func(call) bool { return true })},
			Origin: hook.Origin{Kind: hook.OriginProject, File: "hooks/prod.yaml", Line: 4},
		}),
		rewritePhase.On("scan", says(edit{}), &hook.Options{Concurrent: true, After: []string{"no-prod"}, Failure: hook.Open, Priority: -1}),
		rewritePhase.On("trial", says(edit{}), &hook.Options{Shadow: true, After: []string{"redact"}, Before: []string{"scan"}, Failure: rewritePhase.Fallback(edit{})}),
		rewritePhase.On("off", says(edit{}), &hook.Options{Disabled: true}),
		rewritePhase.On("also-off", says(edit{}), &hook.Options{Disabled: true}),
		observePhase.On("count", says(remark{}), &hook.Options{Execution: hook.FireAndRecord}),
		observePhase.On("mail", says(remark{}), &hook.Options{Execution: hook.Background, After: []string{"count"}}),
	)
}

// SPEC H-06, H-18
func TestPlanShowsTheOrderAndWhy(t *testing.T) {
	t.Parallel()
	plan, err := planned(t).Plan("test.rewrite")
	if err != nil {
		t.Fatal(err)
	}
	const caps = hook.CanBlock | hook.CanAudit
	want := hook.Plan{
		Phase: "test.rewrite", Kind: hook.Gate, Disabled: []string{"also-off", "off"},
		Entries: []hook.PlanEntry{
			{
				Position: 1, ID: "redact", Name: "redact", Stage: 1, Runs: "overlapping", Execution: hook.Deadline, Timeout: 2 * time.Second,
				Failure: hook.Closed, Capabilities: hook.CanRewriteInput, Rewrites: true, Why: "rewriters come first; priority 0, then id",
			},
			{
				Position: 2, ID: "no-prod", Name: "No production", Stage: 2, Runs: "inline", Failure: hook.Closed,
				Match: "tool in [write edit] and when path is prod", Capabilities: caps, Why: "priority 0, then id",
				Origin: hook.Origin{Kind: hook.OriginProject, File: "hooks/prod.yaml", Line: 4},
			},
			{
				Position: 3, ID: "trial", Name: "trial", After: []string{"redact"}, Level: 1, Stage: 2, Runs: "inline",
				Failure: plan.Entries[2].Failure, Capabilities: caps, Shadow: true, Why: "after redact; priority 0, then id",
			},
			{
				Position: 4, ID: "scan", Name: "scan", Priority: -1, After: []string{"no-prod", "trial"}, Level: 2, Stage: 3, Runs: "overlapping",
				Failure: hook.Open, Capabilities: caps, Why: "after no-prod, trial; priority -1, then id",
			},
		},
	}
	if !reflect.DeepEqual(plan, want) {
		t.Errorf("got\n%+v\nwant\n%+v", plan, want)
	}
}

// SPEC H-18
func TestPlanPrintsWell(t *testing.T) {
	t.Parallel()
	rt := planned(t)
	for phase, want := range map[string]string{
		"test.rewrite": `test.rewrite (gate): 4 subscriptions in 3 stages
  1.  redact   stage 1  overlapping 2s  closed    everything                                  rewriters come first; priority 0, then id
  2.  no-prod  stage 2  inline          closed    tool in [write edit] and when path is prod  priority 0, then id
  3.  trial    stage 2  inline shadow   fallback  everything                                  after redact; priority 0, then id
  4.  scan     stage 3  overlapping     open      everything                                  after no-prod, trial; priority -1, then id
  disabled: also-off, off
`,
		"test.observe": `test.observe (observe): 2 subscriptions in 1 stage
  1.  count  stage 1  detached 1m0s  open  everything  priority 0, then id
  2.  mail   stage 1  queued 10m0s   open  everything  after count; priority 0, then id
`,
		"test.collect": "test.collect (collect): 0 subscriptions in 0 stages\n",
	} {
		plan, err := rt.Plan(phase)
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// SPEC H-18
func TestPlanMarshals(t *testing.T) {
	t.Parallel()
	plan, err := planned(t).Plan("test.rewrite")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(plan.Entries[0])
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"position":1,"id":"redact","name":"redact","priority":0,"level":0,"stage":1,"runs":"overlapping","execution":"deadline",` +
		`"failure":"closed","capabilities":["rewrite_input"],"rewrites":true,"origin":{"kind":"host"},"why":"rewriters come first; priority 0, then id","timeout":"2s"}`
	equal(t, "JSON", string(data), want)

	data, err = json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var back hook.Plan
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "JSON there and back", string(again), string(data))
	plan.Entries[2].Failure = back.Entries[2].Failure // The answer of a fallback is not part of the plan.
	if !reflect.DeepEqual(back, plan) {
		t.Errorf("got\n%+v\nwant\n%+v", back, plan)
	}
	equal(t, "the fallback", back.Entries[2].Failure.String(), "fallback")
	if err := json.Unmarshal([]byte(`{"entries":[{"failure":"ajar"}]}`), &back); err == nil {
		t.Error("an unknown failure mode was accepted")
	}
	empty, err := json.Marshal(collectPhase.Plan(nil))
	if err != nil || string(empty) != `{"phase":"test.collect","kind":"collect","entries":[]}` {
		t.Errorf("empty plan: got %s, %v", empty, err)
	}
}

// A fallback that was read from text has no answer.
//
// SPEC H-10
func TestFallbackWithoutAnAnswerIsRefused(t *testing.T) {
	t.Parallel()
	var f hook.Failure
	if err := f.UnmarshalText([]byte("fallback")); err != nil {
		t.Fatal(err)
	}
	if _, err := newRuntime(t, nil).Install(gateWith(hook.Options{Failure: f})); err == nil {
		t.Error("accepted")
	}
}

// SPEC H-02
func TestSubscriptionsAreListed(t *testing.T) {
	t.Parallel()
	var got []string
	for _, s := range planned(t).Subscriptions() {
		got = append(got, s.Phase().Name()+" "+s.ID())
	}
	same(t, "subscriptions", got, []string{
		"test.observe count", "test.observe mail",
		"test.rewrite also-off", "test.rewrite no-prod", "test.rewrite off", "test.rewrite redact", "test.rewrite scan", "test.rewrite trial",
	})
}
