package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// explained returns a runtime whose gate has a handler for every line of an explanation.
func explained(t *testing.T) *hook.Runtime {
	t.Helper()
	return newRuntime(t, nil,
		gatePhase.On("a-quiet", says(verdict{}), nil),
		gatePhase.On("b-context", says(verdict{Context: []string{"mind the step"}}), nil),
		gatePhase.On("c-broken", fails[verdict](errBroken), &hook.Options{Failure: hook.Open}),
		gatePhase.On("d-trial", says(halt("never")), &hook.Options{Shadow: true}),
		gatePhase.On("e-reader", says(deny("no")), &hook.Options{Match: hook.Match{Tools: []string{"read*"}}}),
		gatePhase.On("f-when", says(deny("no")), &hook.Options{Match: hook.Match{When: hook.When("text is empty", func(c call) bool { return c.text == "" })}}),
		gatePhase.On("g-guard", says(deny("production is off limits")), &hook.Options{Concurrent: true, After: []string{"c-broken"}}),
		gatePhase.On("h-never", says(ask("sure?")), &hook.Options{After: []string{"g-guard"}}),
		gatePhase.On("off", says(deny("no")), &hook.Options{Disabled: true}),
	)
}

const explainedText = `test.gate: g-guard won
  1.  a-quiet    completed  no opinion
  2.  b-context  completed  context
  3.  c-broken   failed     the handler is broken (hook.error)
  4.  d-trial    completed  halt [shadow]
  5.  e-reader   not asked  it matches only tool in [read*], but this input has "write"
  6.  f-when     not asked  its condition is false: text is empty
  7.  g-guard    completed  deny  <- won
  8.  h-never    not asked  g-guard had stopped the phase (hook.skipped)
  -   off        not asked  it is disabled
`

// SPEC H-18
func TestExplain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		s := snapshot(t, explained(t))
		x, err := gatePhase.Explain(t.Context(), s, write)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := x.String(), explainedText; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		equal(t, "phase", x.Phase, "test.gate")
		equal(t, "scope", x.Scope, *write.scope)
		equal(t, "won", x.Won, "g-guard")
		equal(t, "merged", string(x.Merged), `{"severity":"deny","reason":"production is off limits","context":["mind the step"]}`)
		same(t, "diagnostics", codesOf(x.Diagnostics), []codes.Code{codes.Error})
		want := []hook.Explained{
			{Position: 1, ID: "a-quiet", Asked: true, State: hook.Completed},
			{Position: 2, ID: "b-context", Asked: true, State: hook.Completed, Contributed: []string{"context"}, Said: json.RawMessage(`{"context":["mind the step"]}`)},
			{Position: 3, ID: "c-broken", Asked: true, State: hook.Failed, Code: codes.Error, Why: "the handler is broken"},
			{Position: 4, ID: "d-trial", Asked: true, State: hook.Completed, Contributed: []string{"halt"}, Said: json.RawMessage(`{"severity":"halt","reason":"never"}`), Shadow: true},
			{Position: 5, ID: "e-reader", Why: `it matches only tool in [read*], but this input has "write"`},
			{Position: 6, ID: "f-when", Why: "its condition is false: text is empty"},
			{Position: 7, ID: "g-guard", Asked: true, State: hook.Completed, Contributed: []string{"deny"}, Said: json.RawMessage(`{"severity":"deny","reason":"production is off limits"}`), Won: true},
			{Position: 8, ID: "h-never", State: hook.Skipped, Code: codes.Skipped, Why: "g-guard had stopped the phase"},
			{ID: "off", Why: "it is disabled"},
		}
		for i, e := range x.Entries {
			if i < len(want) && !reflect.DeepEqual(e, want[i]) {
				t.Errorf("entry %d: got %+v, want %+v", i, e, want[i])
			}
		}
		equal(t, "entries", len(x.Entries), len(want))
		equal(t, "runs on record", len(s.Take()), 0)
	})
}

// SPEC H-18
func TestExplanationMarshals(t *testing.T) {
	t.Parallel()
	x, err := gatePhase.Explain(context.Background(), snapshot(t, explained(t)), write)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	var back hook.Explanation
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	for i := range x.Diagnostics {
		x.Diagnostics[i].Err = nil // The error is not part of the JSON.
	}
	if !reflect.DeepEqual(back, x) { //nolint:govet // the errors are gone
		t.Errorf("got\n%+v\nwant\n%+v", back, x)
	}
	if strings.Contains(string(data), "Err") {
		t.Errorf("the handler's error itself is in the JSON: %s", data)
	}
}

// SPEC H-18
func TestExplainWhoWasNeverAsked(t *testing.T) {
	t.Parallel()
	off := gateNamed("off", &hook.Options{Disabled: true})
	cancelled, cancel := context.WithCancelCause(context.Background())
	cancel(errEscape)
	for _, test := range []struct {
		rule string
		ctx  context.Context //nolint:containedctx // a table
		subs []hook.Subscription
		want string
	}{
		{"nobody is subscribed", context.Background(), nil, "test.gate: nobody objected\n"},
		{"everybody is disabled", context.Background(), []hook.Subscription{off}, "test.gate: nobody objected\n  -  off  not asked  it is disabled\n"},
		{
			"the turn was cancelled", cancelled,
			[]hook.Subscription{gateNamed("a", nil)},
			"test.gate: failed: test.gate: the user pressed escape\n  1.  a  not asked  the turn was cancelled (hook.canceled)\n",
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			x, err := gatePhase.Explain(test.ctx, snapshot(t, newRuntime(t, nil, test.subs...)), write)
			if err != nil {
				t.Fatal(err)
			}
			if got := x.String(); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// SPEC H-18, H-21
func TestExplainWorkThatIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		queue := hook.NewMemoryQueue(hook.NewMemoryJournal(8), nil)
		rt := newRuntime(t, &hook.RuntimeOptions{Queue: queue},
			observePhase.On("fired", says(remark{}), &hook.Options{Execution: hook.FireAndRecord}),
			observePhase.On("queued", says(remark{}), &hook.Options{Execution: hook.Background}),
			observePhase.On("queued-trial", says(remark{}), &hook.Options{Execution: hook.Background, Shadow: true}))
		x, err := observePhase.Explain(t.Context(), snapshot(t, rt), write)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range x.Entries {
			got = append(got, e.ID+": "+e.Why)
			equal(t, "asked "+e.ID, e.Asked, false)
		}
		same(t, "entries", got, []string{
			"fired: it would start, and the turn would not wait for it", "queued: it would be queued", "queued-trial: it would be queued",
		})
		stats, err := queue.Stats(t.Context())
		if err != nil || stats.Waiting > 0 {
			t.Errorf("queue: got %+v, %v; want nothing queued by an explanation", stats, err)
		}
	})
}

// SPEC H-18
func TestExplainFailures(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		rt := newRuntime(t, &hook.RuntimeOptions{Abandoned: 1},
			gatePhase.On("slow", does[verdict](func(context.Context, call) { <-release }), &hook.Options{Execution: hook.Deadline, Timeout: time.Second, Failure: hook.Open}),
			gatePhase.On("strict", fails[verdict](errBroken), nil))
		s := snapshot(t, rt)
		for _, want := range []string{"slow:timed_out:hook.timeout strict:failed:hook.error", "slow:failed:hook.quarantined strict:failed:hook.error"} {
			x, err := gatePhase.Explain(t.Context(), s, write)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range x.Entries {
				got = append(got, e.ID+":"+e.State.String()+":"+string(e.Code))
			}
			equal(t, "entries", strings.Join(got, " "), want)
			equal(t, "won", x.Won, "strict")
		}
		close(release)
		failing := newRuntime(t, nil, collectPhase.On("a", fails[findings](errBroken), &hook.Options{Failure: hook.Closed}))
		x, err := collectPhase.Explain(t.Context(), snapshot(t, failing), write)
		if err != nil || !strings.Contains(x.Error, "failed closed") {
			t.Errorf("got %q, %v; want the failure in the explanation", x.Error, err)
		}
	})
}

// ExplainRuns explains a recorded turn from its records: which handlers were called, in
// which order, the kinds of their contributions, and which answer won. Records do not hold
// the answers.
//
// SPEC H-18, J-02
func TestExplainRuns(t *testing.T) {
	t.Parallel()
	rt := explained(t)
	s := snapshot(t, rt)
	live, err := gatePhase.Explain(context.Background(), s, write)
	if err != nil {
		t.Fatal(err)
	}
	if left := s.Take(); len(left) > 0 {
		t.Errorf("an explanation left %d records", len(left))
	}
	dispatch(t, gatePhase, s, write)
	dispatch(t, gatePhase, s, write)
	runs := s.Take()
	plan, err := rt.Plan("test.gate")
	if err != nil {
		t.Fatal(err)
	}
	last := runs[len(runs)-1].Dispatch
	gone := hook.Run{Phase: "test.gate", Subscription: "gone-since", State: hook.Completed, Scope: *write.scope, Dispatch: last}
	other := hook.Run{Phase: "test.collect", Subscription: "elsewhere", State: hook.Completed}
	all := hook.ExplainRuns(plan, append(runs, gone, other))
	equal(t, "one explanation for each dispatch", len(all), 2)
	x := all[1]
	equal(t, "dispatch", x.Dispatch, last)
	equal(t, "won", x.Won, live.Won)
	equal(t, "scope", x.Scope, *write.scope)
	byID := map[string]hook.Explained{}
	for _, e := range x.Entries {
		byID[e.ID] = e
		if e.Said != nil {
			t.Errorf("%s: what was said is not on record: %s", e.ID, e.Said)
		}
	}
	if _, ok := byID["elsewhere"]; ok {
		t.Error("a run of another phase is in it")
	}
	equal(t, "a run whose subscription is gone", byID["gone-since"].Asked, true)
	for _, want := range live.Entries {
		got := byID[want.ID]
		if want.ID == "off" {
			continue // This handler has no record.
		}
		same(t, want.ID+" contributed", got.Contributed, want.Contributed)
		equal(t, want.ID+" asked", got.Asked, want.Asked)
		equal(t, want.ID+" state", got.State, want.State)
		equal(t, want.ID+" code", got.Code, want.Code)
		equal(t, want.ID+" position", got.Position, want.Position)
		equal(t, want.ID+" won", got.Won, want.Won)
		equal(t, want.ID+" shadow", got.Shadow, want.Shadow)
		if !got.Asked && got.Why == "" {
			t.Errorf("%s: it does not say why it was not asked", want.ID)
		}
	}
}

// SPEC H-18
func TestExplainRunsOfAFailedGate(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, gatePhase.On("a", says(ask("sure?")), nil), gatePhase.On("b", fails[verdict](errors.New("no")), nil))
	s := snapshot(t, rt)
	dispatch(t, gatePhase, s, write)
	plan, err := rt.Plan("test.gate")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "won", hook.ExplainRuns(plan, s.Take())[0].Won, "b")
}

// Hooks whose start is recorded count their attempts, as jobs do. Their runs belong to a
// dispatch. The attempts of a job do not.
//
// SPEC H-18
func TestExplainRunsOfCountedAttempts(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, gatePhase.On("a", says(ask("sure?")), nil))
	plan, err := rt.Plan("test.gate")
	if err != nil {
		t.Fatal(err)
	}
	run := func(attempt int, job string, state hook.State, severity hook.Severity) hook.Run {
		return hook.Run{Phase: "test.gate", Subscription: "a", Dispatch: "d", Attempt: attempt, Job: job, State: state, Severity: severity}
	}
	all := hook.ExplainRuns(plan, []hook.Run{
		run(1, "", hook.Interrupted, hook.SeverityPass),
		run(2, "", hook.Completed, hook.SeverityDeny),
		run(1, "j", hook.Failed, hook.SeverityPass),
	})
	equal(t, "explanations", len(all), 1)
	equal(t, "entries", len(all[0].Entries), 1)
	equal(t, "state", all[0].Entries[0].State, hook.Completed)
	equal(t, "won", all[0].Won, "a")
}
