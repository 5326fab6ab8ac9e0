package looptest_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/policy"
)

// turnSoFar is the JSON input of the phases that prepare a turn.
type turnSoFar struct {
	Text    string               `json:"text"`
	Policy  policy.Settings      `json:"policy,omitempty"`
	Context []belay.ContextEntry `json:"context,omitempty"`
	Tools   []string             `json:"tools,omitempty"`
	Plan    *belay.PreflightPlan `json:"plan,omitempty"`
}

// soFar has the methods of an input that return the merged policy and context.
type soFar interface {
	Policy() policy.Settings
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
		{3, nil}, // handlers of one phase do not see each other's contributions, in any order
		{3, both},
		{3, append(slices.Clone(both), "recall: recalled")},
		{3, append(slices.Clone(both), "recall: recalled")},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("what the phases saw (-want +got):\n%s", diff)
	}
}

// Without an id, everyone would share one session.
func TestSessionNeedsAnID(t *testing.T) {
	t.Parallel()
	agent, _ := newAgent(t, nil)
	if _, err := agent.Session("").Turn(t.Context(), "hello"); err == nil || !strings.Contains(err.Error(), "id is empty") {
		t.Errorf("the turn's error is %v", err)
	}
}
