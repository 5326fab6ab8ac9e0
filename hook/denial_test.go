package hook_test

import (
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// modes are the failure modes of a gate.
var modes = map[string]hook.Failure{
	"closed": hook.Closed, "open": hook.Open, "fallback": gatePhase.Fallback(verdict{}),
}

// A denial counts, even if another part of its answer is invalid.
//
// SPEC H-15, C-03
func TestADenialStandsWithAFaultInTheSameAnswer(t *testing.T) {
	t.Parallel()
	unknown := []hook.Job{{Handler: "nobody", Key: "k", Reference: "r"}}
	for _, test := range []struct {
		rule   string
		grants hook.Capability
		says   verdict
		code   codes.Code
	}{
		{"context that is not granted", hook.CanBlock, verdict{Severity: hook.SeverityDeny, Reason: "mine", Context: []string{"c"}}, codes.CapabilityMissing},
		{"an audit note that is not granted", hook.CanBlock, verdict{Severity: hook.SeverityHalt, Reason: "mine", Audit: []hook.Audit{{Code: "a"}}}, codes.CapabilityMissing},
		{"a job that is not granted", hook.CanBlock, verdict{Severity: hook.SeverityDeny, Reason: "mine", Jobs: unknown}, codes.CapabilityMissing},
		{"a job that cannot be scheduled", hook.CanBlock | hook.CanSchedule, verdict{Severity: hook.SeverityHalt, Reason: "mine", Jobs: unknown}, codes.JobUnknown},
		{"the denial itself is not granted", hook.CanAudit, verdict{Severity: hook.SeverityDeny, Reason: "mine"}, codes.CapabilityMissing},
		{"nothing is granted", hook.NoCapability, verdict{Severity: hook.SeverityHalt, Reason: "mine", Context: []string{"c"}}, codes.CapabilityMissing},
	} {
		for mode, failure := range modes {
			for _, w := range ways {
				t.Run(test.rule+", "+mode+", "+w.name, func(t *testing.T) {
					t.Parallel()
					o := w.opts
					o.Capabilities, o.Failure, o.Timeout = test.grants, failure, time.Minute
					journal := hook.NewMemoryJournal(16)
					opts := &hook.RuntimeOptions{Journal: journal, Queue: hook.NewMemoryQueue(journal, nil)}
					var asked trail
					rt := newRuntime(t, opts, gatePhase.On("a", says(test.says), &o), gatePhase.On("later", asked.gate("later"), nil))
					s := snapshot(t, rt)
					out := dispatch(t, gatePhase, s, write)
					equal(t, "severity", out.Output.Severity, test.says.Severity)
					equal(t, "reason", out.Output.Reason, "mine")
					equal(t, "by", out.By, "a")
					equal(t, "context", len(out.Output.Context), 0)
					same(t, "diagnostics", codesOf(out.Diagnostics), []codes.Code{test.code})
					same(t, "asked after the denial", asked.all(), nil)
					run := runOf(t, s.Take(), "a")
					equal(t, "state", run.State, hook.Failed)
					equal(t, "class", run.Class, test.code)
					kinds := make([]string, 0, 1)
					for _, c := range run.Contributed {
						kinds = append(kinds, c.Kind)
					}
					same(t, "contributions on record", kinds, []string{test.says.Severity.String()})
					equal(t, "audit notes on record", len(run.Audit), 0)
				})
			}
		}
	}
}

// SPEC H-15
func TestADenialStandsIfItsRewritingCannotBeApplied(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"unfit", "broken"} {
		for _, failure := range []hook.Failure{hook.Open, hook.Closed, rewritePhase.Fallback(edit{})} {
			rt := newRuntime(t, nil, rewritePhase.On("a", says(edit{Severity: hook.SeverityHalt, Text: text}), rewriter(hook.Options{Capabilities: hook.CanBlock, Failure: failure})))
			out := dispatch(t, rewritePhase, snapshot(t, rt), write)
			// This phase has no Verdict, so its Closed answer is used, which denies.
			equal(t, "severity, "+text+", "+failure.String(), out.Output.Severity, hook.SeverityDeny)
			equal(t, "text, "+text, out.Input.text, write.text)
			same(t, "diagnostics", codesOf(out.Diagnostics), []codes.Code{codes.OutputInvalid})
		}
	}
}

// If an invalid answer has no denial, the whole answer is dropped. In shadow mode, Belay
// records the answer and ignores it.
//
// SPEC H-15, H-21
func TestOnlyADenialStandsWithAFaultInTheSameAnswer(t *testing.T) {
	t.Parallel()
	for rule, o := range map[string]hook.Options{
		"an ask":   {Capabilities: hook.CanAsk},
		"a shadow": {Capabilities: hook.CanBlock, Shadow: true},
	} {
		o.Failure = hook.Open
		says := says(verdict{Severity: hook.SeverityAsk, Context: []string{"c"}})
		if o.Shadow {
			says = sayDeny
		}
		rt := newRuntime(t, nil, gatePhase.On("a", says, &o))
		out := dispatch(t, gatePhase, snapshot(t, rt), write)
		equal(t, rule+": severity", out.Output.Severity, hook.SeverityPass)
		same(t, rule+": diagnostics", codesOf(out.Diagnostics), []codes.Code{codes.CapabilityMissing})
	}
}

var sayDeny = says(verdict{Severity: hook.SeverityDeny, Context: []string{"c"}})

// A gate fails open by default if a denial does harm there. At such a gate, a denial needs
// its capability.
//
// SPEC H-15
func TestADenialNeedsItsCapabilityAtAGateThatFailsOpenByDefault(t *testing.T) {
	t.Parallel()
	phase := hook.Define(hook.Definition[call, verdict]{
		Name: "test.open", Kind: hook.Gate, Failure: hook.Open, Capabilities: hook.CanApprove | hook.CanBlock | hook.CanAddContext, Scope: callScope,
		Merge: func(m *hook.Merging, merged, answer verdict) verdict {
			if m.Wins {
				merged.Severity = answer.Severity
			}
			return merged
		},
		Verdict: func(v verdict) verdict { return verdict{Severity: v.Severity, Reason: v.Reason} },
		Closed:  func(hook.Problem) (verdict, bool) { return deny("failed"), true },
	})
	for granted, want := range map[hook.Capability]hook.Severity{hook.CanBlock: hook.SeverityDeny, hook.CanAddContext: hook.SeverityPass} {
		rt, err := hook.NewRuntime([]hook.AnyPhase{phase}, nil)
		if err != nil {
			t.Fatal(err)
		}
		install(t, rt, phase.On("a", says(verdict{Severity: hook.SeverityDeny, Context: []string{"c"}}), &hook.Options{Capabilities: granted | hook.CanApprove}))
		out := dispatch(t, phase, snapshot(t, rt), write)
		equal(t, "severity with "+granted.String(), out.Output.Severity, want)
	}
}

// If the Verdict function of a phase is broken, the gate still denies.
//
// SPEC H-12, H-15
func TestADenialStandsIfItsVerdictPanicsOrPasses(t *testing.T) {
	t.Parallel()
	for rule, broken := range map[string]func(verdict) verdict{
		"panics":        func(verdict) verdict { panic("broken") },
		"passes":        func(verdict) verdict { return verdict{} },
		"says too much": func(v verdict) verdict { return v },
	} {
		phase := hook.Define(hook.Definition[call, verdict]{
			Name: "test.broken", Kind: hook.Gate, Capabilities: hook.CanBlock | hook.CanAddContext, Scope: callScope,
			Merge:   func(_ *hook.Merging, _, answer verdict) verdict { return answer },
			Verdict: broken,
			Closed:  func(hook.Problem) (verdict, bool) { return deny("failed"), true },
		})
		rt, err := hook.NewRuntime([]hook.AnyPhase{phase}, nil)
		if err != nil {
			t.Fatal(err)
		}
		install(t, rt, phase.On("a", sayDeny, &hook.Options{Capabilities: hook.CanBlock, Failure: hook.Open}))
		out := dispatch(t, phase, snapshot(t, rt), write)
		if out.Output.Severity != hook.SeverityDeny || len(out.Output.Context) > 0 || !slices.Contains(codesOf(out.Diagnostics), codes.CapabilityMissing) {
			t.Errorf("%s: %+v, want a bare denial", rule, out.Output)
		}
	}
}
