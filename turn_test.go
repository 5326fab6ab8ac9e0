package belay_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// turnSoFar is the wire form of what the phases that prepare a turn are given.
type turnSoFar struct {
	Text    string               `json:"text"`
	Policy  belay.PolicySettings `json:"policy,omitempty"`
	Context []belay.ContextEntry `json:"context,omitempty"`
	Tools   []string             `json:"tools,omitempty"`
	Plan    *belay.PreflightPlan `json:"plan,omitempty"`
}

// soFar is the part of an input that tells what was merged so far.
type soFar interface {
	Policy() belay.PolicySettings
	Context() []belay.ContextEntry
}

// SPEC H-20
func TestLaterPhasesSeeWhatWasMerged(t *testing.T) {
	t.Parallel()
	type view struct {
		Files   int
		Context []string
	}
	var seen []view
	look := func(in soFar) {
		files, _ := maxFiles.Value(in.Policy())
		v := view{Files: files}
		for _, e := range in.Context() {
			v.Context = append(v.Context, e.From+": "+e.Text)
		}
		seen = append(seen, v)
	}
	fact := func(text string) belay.PromptContext {
		return belay.PromptContext{Entries: []belay.ContextEntry{{Text: text}}}
	}
	remember := func(text string) hook.Handler[belay.TurnSoFar, belay.PromptContext] {
		return func(_ context.Context, in belay.TurnSoFar) (belay.PromptContext, error) {
			look(in)
			return fact(text), nil
		}
	}
	snapshot := snapshotOf(t, nil,
		belay.TurnPrePolicy.On("team", answering(belay.TurnPrePolicy, belay.SetPolicy(maxFiles.Set(9))), nil),
		belay.TurnPrePolicy.On("friday", answering(belay.TurnPrePolicy, belay.SetPolicy(maxFiles.Set(3))), nil),
		belay.TurnPrePromptContext.On("git", remember("main"), nil),
		belay.TurnPrePromptContext.On("issues", remember("issue 7"), &hook.Options{After: []string{"git"}}),
		belay.TurnPostPreflightPromptContext.On("recall", func(_ context.Context, in belay.Preflight) (belay.PromptContext, error) {
			look(in)
			if plan := in.Plan(); plan.Source != "planner" || !slices.Equal(plan.Queries, []string{"changelog"}) {
				t.Errorf("the plan is %+v", plan)
			}
			return fact("recalled"), nil
		}, nil),
		belay.TurnPreToolMaterialization.On("tools", func(_ context.Context, in belay.TurnSoFar) (belay.ToolBundles, error) {
			look(in)
			return belay.ToolBundles{}, nil
		}, nil),
		belay.TurnPrePromptCompile.On("style", func(_ context.Context, in belay.TurnSoFar) (belay.PromptSections, error) {
			look(in)
			return belay.PromptSections{}, nil
		}, nil),
	)
	so := turnSoFar{Text: "tidy the changelog", Tools: []string{"write"}}
	policy, err := belay.TurnPrePolicy.Dispatch(t.Context(), snapshot, inputOf(t, belay.TurnPrePolicy, `{"text": "tidy the changelog"}`))
	if err != nil {
		t.Fatal(err)
	}
	so.Policy = policy.Output.Policy
	first, err := belay.TurnPrePromptContext.Dispatch(t.Context(), snapshot, inputOf(t, belay.TurnPrePromptContext, string(encode(t, so))))
	if err != nil {
		t.Fatal(err)
	}
	so.Context = first.Output.Entries
	preflight := so
	preflight.Plan = &belay.PreflightPlan{Source: "planner", Queries: []string{"changelog"}}
	second, err := belay.TurnPostPreflightPromptContext.Dispatch(t.Context(), snapshot, inputOf(t, belay.TurnPostPreflightPromptContext, string(encode(t, preflight))))
	if err != nil {
		t.Fatal(err)
	}
	so.Context = append(so.Context, second.Output.Entries...)
	_, err = belay.TurnPreToolMaterialization.Dispatch(t.Context(), snapshot, inputOf(t, belay.TurnPreToolMaterialization, string(encode(t, so))))
	if err != nil {
		t.Fatal(err)
	}
	_, err = belay.TurnPrePromptCompile.Dispatch(t.Context(), snapshot, inputOf(t, belay.TurnPrePromptCompile, string(encode(t, so))))
	if err != nil {
		t.Fatal(err)
	}
	both := []string{"git: main", "issues: issue 7"}
	want := []view{
		{3, nil},
		{3, nil}, // handlers of one phase do not see each other's, whatever their order
		{3, both},
		{3, append(slices.Clone(both), "recall: recalled")},
		{3, append(slices.Clone(both), "recall: recalled")},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("what the phases saw (-want +got):\n%s", diff)
	}
}

// Every input of a turn that comes behind turn.pre_policy carries what was
// merged so far, on the wire too.
//
// SPEC H-20
func TestEveryLaterInputCarriesPolicyAndContext(t *testing.T) {
	t.Parallel()
	before := []string{"session.start", "user.prompt.submit", "turn.pre_policy", "session.end"}
	for _, p := range everyPhase() {
		if slices.Contains(before, p.Name()) {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(encode(t, fullInput(t, p)), &fields); err != nil {
			t.Fatal(err)
		}
		fields["policy"] = map[string]any{maxFiles.Key(): 3}
		fields["context"] = []any{map[string]any{"text": "main", "from": "git"}}
		in, err := p.decode(hook.Scope{}, encode(t, fields))
		if err != nil {
			t.Fatalf("%s: %v", p.Name(), err)
		}
		so, ok := in.(soFar)
		if !ok {
			t.Fatalf("%s: the input %T does not tell what was merged so far", p.Name(), in)
		}
		files, _ := maxFiles.Value(so.Policy())
		if context := so.Context(); files != 3 || len(context) != 1 || context[0].Text != "main" {
			t.Errorf("%s: policy %v, context %v", p.Name(), so.Policy(), context)
		}
	}
}

// Every phase of a turn after turn.pre_policy is given what was merged so far;
// those before it, and the end of the session, belong to no turn that has any.
//
// SPEC H-20
func TestEveryLaterPhaseIsGivenPolicyAndContext(t *testing.T) {
	t.Parallel()
	before := []string{"session.start", "user.prompt.submit", "turn.pre_policy", "session.end"}
	const merged = `{"policy": {"max_files": 3}, "context": [{"id": "git", "text": "branch main", "from": "git-status"}]}`
	for _, p := range everyPhase() {
		in, err := p.decode(testScope, []byte(merged))
		if slices.Contains(before, p.Name()) {
			if err == nil {
				t.Errorf("%s takes a policy that cannot be there yet", p.Name())
			}
			continue
		}
		if err != nil {
			t.Errorf("%s does not take what was merged: %v", p.Name(), err)
			continue
		}
		look := func(in any) {
			files, _ := maxFiles.Value(in.(soFar).Policy())
			want := []belay.ContextEntry{{ID: "git", Text: "branch main", From: "git-status"}}
			if diff := cmp.Diff(want, in.(soFar).Context()); files != 3 || diff != "" {
				t.Errorf("%s sees the policy %d and the context (-want +got):\n%s", p.Name(), files, diff)
			}
		}
		outcome, err := p.dispatch(t.Context(), snapshotOf(t, nil, p.on("look", func(_ context.Context, in any) (any, error) {
			look(in)
			return nil, nil
		}, nil)), in)
		if err != nil {
			t.Fatal(err)
		}
		look(outcome.in)
	}
}

// Rewriting an input changes nothing else of it.
//
// SPEC H-20
func TestRewritersKeepWhatWasMerged(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		phase  phaseCase
		answer any
		needs  hook.Capability
	}{
		{caseOf(belay.ToolPre), belay.ToolVerdict{Input: []byte(`{}`)}, hook.CanRewriteInput},
		{caseOf(belay.ToolPost), belay.RewriteResult("other"), hook.CanRewriteOutput},
	} {
		in := fullInput(t, test.phase)
		_, outcome, err := answerWith(t, test.phase, in, test.answer, test.needs)
		if err != nil || len(outcome.rewriters) != 1 {
			t.Fatalf("%s: %v, rewritten by %v", test.phase.Name(), err, outcome.rewriters)
		}
		before, after := in.(soFar), outcome.in.(soFar)
		if len(before.Policy()) == 0 || !cmp.Equal(encode(t, before.Policy()), encode(t, after.Policy())) || !cmp.Equal(before.Context(), after.Context()) {
			t.Errorf("%s: %s became %s", test.phase.Name(), encode(t, in), encode(t, outcome.in))
		}
	}
}
