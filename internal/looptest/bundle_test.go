package looptest_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// toolBundle returns a bundle of tools that have only a name.
func toolBundle(id string, tools ...string) belay.ToolBundle {
	bundle := belay.ToolBundle{ID: id, Route: "test:" + id}
	for _, name := range tools {
		bundle.Tools = append(bundle.Tools, belay.ToolDeclaration{Name: name})
	}
	return bundle
}

// SPEC H-17
func TestToolBundlesMerge(t *testing.T) {
	t.Parallel()
	type bundles = []belay.ToolBundle
	for _, test := range []struct {
		rule  string
		hooks []bundles
		want  []string // "ID by SUBSCRIPTION"
		codes []codes.Code
	}{
		{"bundles are kept in plan order", []bundles{{toolBundle("z", "a")}, {toolBundle("m", "b"), toolBundle("n")}}, []string{"z by hook-00", "m by hook-01", "n by hook-01"}, nil},
		{"a duplicate id keeps the earlier", []bundles{{toolBundle("x", "a")}, {toolBundle("x", "b")}, {toolBundle("y", "b")}}, []string{"x by hook-00", "y by hook-02"}, []codes.Code{codes.BundleDuplicate}},
		{"a duplicate id within one answer keeps the earlier", []bundles{{toolBundle("x", "a"), toolBundle("x", "b")}}, []string{"x by hook-00"}, []codes.Code{codes.BundleDuplicate}},
		{"a tool that is owned drops the whole bundle", []bundles{{toolBundle("x", "a")}, {toolBundle("y", "b", "a", "c")}}, []string{"x by hook-00"}, []codes.Code{codes.ToolConflict}},
		{"a bundle that was dropped owns nothing", []bundles{{toolBundle("x", "a")}, {toolBundle("y", "b", "a")}, {toolBundle("z", "b")}}, []string{"x by hook-00", "z by hook-02"}, []codes.Code{codes.ToolConflict}},
		{"a bundle that declares a tool twice is dropped", []bundles{{toolBundle("x", "a", "a")}}, nil, []codes.Code{codes.ToolConflict}},
		{"a duplicate id has its own diagnostic, even if the tools are the same", []bundles{{toolBundle("x", "a")}, {toolBundle("x", "a")}}, []string{"x by hook-00"}, []codes.Code{codes.BundleDuplicate}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var answers []belay.ToolBundles
			for _, b := range test.hooks {
				answers = append(answers, belay.ToolBundles{Bundles: b})
			}
			outcome := planned(t, belay.TurnPreToolMaterialization, hook.Limits{},
				inputOf(t, belay.TurnPreToolMaterialization, `{"text": ""}`), answers...)
			var got []string
			for _, b := range outcome.Output.Bundles {
				got = append(got, b.ID+" by "+b.From)
				if b.Route != "test:"+b.ID {
					t.Errorf("the bundle %s lost its route: %q", b.ID, b.Route)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("bundles (-want +got):\n%s", diff)
			}
			if !slices.Equal(codesOf(outcome.Diagnostics), test.codes) {
				t.Errorf("diagnostics %v, want %v", outcome.Diagnostics, test.codes)
			}
			for _, d := range outcome.Diagnostics {
				if want := map[codes.Code]codes.Level{codes.ToolConflict: codes.LevelError, codes.BundleDuplicate: codes.LevelWarn}[d.Code]; d.Level != want {
					t.Errorf("%s is of level %s, want %s", d.Code, d.Level, want)
				}
			}
		})
	}
}

// SPEC H-17
func TestCompactionInstructionsMerge(t *testing.T) {
	t.Parallel()
	outcome := planned(t, belay.TurnPreCompaction, hook.Limits{}, inputOf(t, belay.TurnPreCompaction, `{"trigger": "forced"}`),
		belay.CompactionAdvice{Instructions: belay.Tell("keep the plan")},
		belay.CompactionAdvice{Instructions: belay.Tell("keep the names"), Aside: belay.Aside{Context: belay.Tell("told")}})
	want := belay.CompactionAdvice{
		Instructions: []belay.Reminder{{Text: "keep the plan", From: "hook-00"}, {Text: "keep the names", From: "hook-01"}},
		Aside:        belay.Aside{Context: []belay.Reminder{{Text: "told", From: "hook-01"}}},
	}
	if diff := cmp.Diff(string(encode(t, want)), string(encode(t, outcome.Output))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
