package looptest_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// verdict has the fields that the verdicts of all gates have.
type verdict struct {
	Decision, Reason string
	Context          []belay.Reminder
}

// gate is a gate without type parameters. Its verdicts are of the type verdict.
type gate struct {
	phaseCase
	in any
	// words are the decisions of the gate, from mild to severe. "" is pass.
	words []string
	make  func(v verdict) any
	read  func(out any) verdict
	// caps are the capabilities that the decisions need.
	caps hook.Capability
}

// decided returns the verdict with the decision. The gate need not know the decision.
func decided[V any](v V, decision string) V {
	reflect.ValueOf(&v).Elem().FieldByName("Decision").SetString(decision)
	return v
}

func gates(t testing.TB) []gate {
	t.Helper()
	const standard = hook.CanBlock | hook.CanAddContext
	all := []gate{
		{
			phaseCase: caseOf(belay.UserPromptSubmit), words: []string{"", "deny"}, caps: standard,
			make: func(v verdict) any {
				return decided(belay.PromptVerdict{Reason: v.Reason, Aside: belay.Aside{Context: v.Context}}, v.Decision)
			},
			read: func(out any) verdict {
				v := out.(belay.PromptVerdict)
				return verdict{string(v.Decision), v.Reason, v.Context}
			},
		},
		{
			phaseCase: caseOf(belay.ToolPre), words: []string{"", "ask", "deny", "halt"}, caps: standard | hook.CanAsk,
			make: func(v verdict) any {
				return belay.ToolVerdict{Decision: belay.ToolDecision(v.Decision), Reason: v.Reason, Aside: belay.Aside{Context: v.Context}}
			},
			read: func(out any) verdict {
				v := out.(belay.ToolVerdict)
				return verdict{string(v.Decision), v.Reason, v.Context}
			},
		},
		{
			phaseCase: caseOf(belay.ApprovalRequest), words: []string{"", "allow", "deny"}, caps: hook.CanApprove | hook.CanAddContext,
			make: func(v verdict) any {
				return decided(belay.ApprovalVerdict{Reason: v.Reason, Aside: belay.Aside{Context: v.Context}}, v.Decision)
			},
			read: func(out any) verdict {
				v := out.(belay.ApprovalVerdict)
				return verdict{string(v.Decision), v.Reason, v.Context}
			},
		},
		{
			phaseCase: caseOf(belay.SubagentStart), words: []string{"", "deny"}, caps: standard,
			make: func(v verdict) any {
				return decided(belay.SubagentVerdict{Reason: v.Reason, Aside: belay.Aside{Context: v.Context}}, v.Decision)
			},
			read: func(out any) verdict {
				v := out.(belay.SubagentVerdict)
				return verdict{string(v.Decision), v.Reason, v.Context}
			},
		},
		{
			phaseCase: caseOf(belay.TurnStop), words: []string{"", "continue"}, caps: standard,
			make: func(v verdict) any {
				return decided(belay.StopVerdict{Reason: v.Reason, Aside: belay.Aside{Context: v.Context}}, v.Decision)
			},
			read: func(out any) verdict {
				v := out.(belay.StopVerdict)
				return verdict{string(v.Decision), v.Reason, v.Context}
			},
		},
	}
	for i := range all {
		all[i].in = fullInput(t, all[i].phaseCase)
	}
	return all
}

// TestGatesAreAllTested checks that the table above has every gate.
//
// SPEC H-01
func TestGatesAreAllTested(t *testing.T) {
	t.Parallel()
	var tested, promised []string
	for _, g := range gates(t) {
		tested = append(tested, g.Name())
	}
	for _, row := range promisedPhases {
		if row.Kind == hook.Gate {
			promised = append(promised, row.Name)
		}
	}
	if diff := cmp.Diff(promised, tested); diff != "" {
		t.Errorf("gates lacks a gate (-promised +tested):\n%s", diff)
	}
}

// ask dispatches to hooks with these verdicts in plan order. It returns the outcome and the
// handlers that were called.
func (g *gate) ask(t testing.TB, verdicts []verdict, opts hook.Options) (anyOutcome, []string) {
	t.Helper()
	var asked []string
	var subs []hook.Subscription
	for i, v := range verdicts {
		id := fmt.Sprintf("hook-%02d", i)
		opts.Capabilities = g.caps
		subs = append(subs, g.on(id, func(context.Context, any) (any, error) {
			if !opts.Concurrent {
				asked = append(asked, id)
			}
			return g.make(v), nil
		}, &opts))
	}
	slices.Reverse(subs) // the order of installation must not matter
	outcome, err := g.dispatch(context.Background(), snapshotOf(t, nil, subs...), g.in)
	if err != nil {
		t.Fatal(err)
	}
	return outcome, asked
}

// merged is a slow and simple merge. It reads the verdicts up to the first one that stops
// the phase. The most severe verdict wins. If several are equally severe, the earliest
// wins. The merged verdict has the context of all verdicts that were read.
func (g *gate) merged(verdicts []verdict) (want verdict, by string, asked int) {
	for i, v := range verdicts {
		asked++
		from := fmt.Sprintf("hook-%02d", i)
		if slices.Index(g.words, v.Decision) > slices.Index(g.words, want.Decision) {
			want.Decision, want.Reason, by = v.Decision, v.Reason, from
		}
		for _, r := range v.Context {
			r.From = from
			want.Context = append(want.Context, r)
		}
		if v.Decision != "" && v.Decision != "ask" && v.Decision != "allow" {
			break
		}
	}
	return want, by, asked
}

// SPEC H-17
func TestVerdictsMerge(t *testing.T) {
	t.Parallel()
	for _, g := range gates(t) {
		t.Run(g.Name(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) {
				var verdicts []verdict
				for i := range rapid.IntRange(0, 6).Draw(r, "hooks") {
					v := verdict{Decision: rapid.SampledFrom(g.words).Draw(r, "decision")}
					if v.Decision != "" {
						v.Reason = fmt.Sprintf("reason %d", i)
					}
					if rapid.Bool().Draw(r, "tells") {
						v.Context = belay.Tell(fmt.Sprintf("told by %d", i))
					}
					verdicts = append(verdicts, v)
				}
				outcome, asked := g.ask(t, verdicts, hook.Options{})
				want, by, askable := g.merged(verdicts)
				if diff := cmp.Diff(want, g.read(outcome.out)); diff != "" || outcome.by != by {
					r.Errorf("merging %+v gives by %q, want %q (-want +got):\n%s", verdicts, outcome.by, by, diff)
				}
				if len(asked) != askable {
					r.Errorf("merging %+v asked %v, want the first %d", verdicts, asked, askable)
				}
			})
		})
	}
}

// SPEC H-17
func TestTheMostSevereVerdictWins(t *testing.T) {
	t.Parallel()
	for _, g := range gates(t) {
		severest := g.words[len(g.words)-1]
		mildest := g.words[1]
		for _, test := range []struct {
			rule     string
			verdicts []verdict
			want     verdict
			by       string
			asked    int
		}{
			{"no opinion is a pass", []verdict{{}, {}}, verdict{}, "", 2},
			{"an objection beats a pass before it", []verdict{{}, {Decision: severest, Reason: "b"}}, verdict{Decision: severest, Reason: "b"}, "hook-01", 2},
			{"of equals the earlier keeps its reason", []verdict{{Decision: mildest, Reason: "a"}, {Decision: mildest, Reason: "b"}}, verdict{Decision: mildest, Reason: "a"}, "hook-00", -1},
			{"after a refusal nobody is asked", []verdict{{Decision: severest, Reason: "a"}, {Decision: severest, Reason: "b"}, {}}, verdict{Decision: severest, Reason: "a"}, "hook-00", 1},
			{"a reason without objection says nothing", []verdict{{Reason: "a"}}, verdict{}, "", 1},
			{"an objection needs no reason", []verdict{{Decision: severest}}, verdict{Decision: severest}, "hook-00", 1},
			{"blank context is not told", []verdict{{Context: belay.Tell(" \n", "told")}}, verdict{Context: []belay.Reminder{{Text: "told", From: "hook-00"}}}, "", 1},
		} {
			outcome, asked := g.ask(t, test.verdicts, hook.Options{})
			if diff := cmp.Diff(test.want, g.read(outcome.out)); diff != "" || outcome.by != test.by {
				t.Errorf("%s: %s: by %q, want %q (-want +got):\n%s", g.Name(), test.rule, outcome.by, test.by, diff)
			}
			if test.asked >= 0 && len(asked) != test.asked {
				t.Errorf("%s: %s: asked %v, want %d", g.Name(), test.rule, asked, test.asked)
			}
		}
	}
}

// A later verdict replaces an earlier one if it is more severe. A verdict that denies
// stops the phase.
//
// SPEC H-17
func TestToolVerdictsAreOrdered(t *testing.T) {
	t.Parallel()
	call := inputOf(t, belay.ToolPre, `{"id": "1", "tool": "write", "input": {}}`)
	for _, test := range []struct {
		rule          string
		first, second belay.ToolVerdict
		want          belay.ToolDecision
	}{
		{"deny beats ask from an earlier hook", belay.Ask("a"), belay.Deny("b"), belay.ToolDeny},
		{"halt beats ask from an earlier hook", belay.Ask("a"), belay.Halt("b"), belay.ToolHalt},
		{"ask does not replace deny", belay.Deny("a"), belay.Ask("b"), belay.ToolDeny},
		{"halt does not come after deny", belay.Deny("a"), belay.Halt("b"), belay.ToolDeny},
	} {
		outcome := dispatch(t, belay.ToolPre, call,
			belay.ToolPre.On("a", answering(belay.ToolPre, test.first), nil),
			belay.ToolPre.On("b", answering(belay.ToolPre, test.second), nil))
		if outcome.Output.Decision != test.want {
			t.Errorf("%s: got %s", test.rule, outcome.Output.Decision)
		}
	}
}

// Gates that run at the same time all answer, so the most severe answer wins, for example
// halt over deny. The merge does not depend on which gate answers first.
//
// SPEC H-17
func TestOverlappingVerdictsMergeInPlanOrder(t *testing.T) {
	t.Parallel()
	for _, g := range gates(t) {
		severest, mildest := g.words[len(g.words)-1], g.words[1]
		verdicts := []verdict{
			{Context: belay.Tell("a")},
			{Decision: mildest, Reason: "b", Context: belay.Tell("b")},
			{Decision: severest, Reason: "c", Context: belay.Tell("c")},
			{Decision: severest, Reason: "d", Context: belay.Tell("d")},
		}
		var want verdict
		for i, v := range verdicts { // all gates answer
			r := v.Context[0]
			r.From = fmt.Sprintf("hook-%02d", i)
			want.Context = append(want.Context, r)
			if slices.Index(g.words, v.Decision) > slices.Index(g.words, want.Decision) {
				want.Decision, want.Reason = v.Decision, v.Reason
			}
		}
		for range 5 {
			outcome, _ := g.ask(t, verdicts, hook.Options{Concurrent: true})
			if diff := cmp.Diff(want, g.read(outcome.out)); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", g.Name(), diff)
			}
		}
	}
}

// A typing error must not count as a pass. An unknown decision makes the answer invalid,
// and the subscription's failure mode applies.
//
// SPEC H-10
func TestUnknownDecisionsAreMalformed(t *testing.T) {
	t.Parallel()
	refusal := map[string]string{"turn.stop": "continue"}
	for _, g := range gates(t) {
		want := refusal[g.Name()]
		if want == "" {
			want = "deny"
		}
		for _, word := range []string{"denied", "Deny", "block", "true"} {
			outcome, _ := g.ask(t, []verdict{{Decision: word, Reason: "why"}}, hook.Options{Failure: hook.Closed})
			if got := g.read(outcome.out); got.Decision != want || outcome.by != "hook-00" {
				t.Errorf("%s: %q became %+v, want %s", g.Name(), word, got, want)
			}
			if len(outcome.diagnostics) != 1 || outcome.diagnostics[0].Code != codes.OutputInvalid {
				t.Errorf("%s: %q: diagnostics %v, want hook.output_invalid", g.Name(), word, outcome.diagnostics)
			}
		}
		outcome, _ := g.ask(t, []verdict{{Decision: "pass"}}, hook.Options{})
		if got := g.read(outcome.out); got.Decision != "" || outcome.by != "" {
			t.Errorf("%s: pass became %+v by %q", g.Name(), got, outcome.by)
		}
	}
}

// At every phase, the outcome lists the outputs of hooks, in plan order and with their
// subscriptions.
//
// SPEC H-17
func TestOutputsAreListedInPlanOrder(t *testing.T) {
	t.Parallel()
	for _, p := range everyPhase() {
		outputs := func(text string) any { return withNote(p, belay.Note{Output: text}) }
		snapshot := snapshotOf(t, nil,
			p.on("b", func(context.Context, any) (any, error) { return outputs("second"), nil }, nil),
			p.on("a", func(context.Context, any) (any, error) { return outputs("first"), nil }, nil),
			p.on("c", func(context.Context, any) (any, error) { return nil, nil }, nil))
		outcome, err := p.dispatch(t.Context(), snapshot, fullInput(t, p))
		if err != nil {
			t.Fatal(err)
		}
		shown := outcome.out.(interface{ Shown() []belay.Shown }).Shown()
		want := []belay.Shown{{Text: "first", From: "a"}, {Text: "second", From: "b"}}
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.Name(), diff)
		}
	}
}
