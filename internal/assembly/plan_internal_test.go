package assembly

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/policy"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// After the approval of a plan a session has the mode from before plan mode, or else the mode
// that the settings give without plan.
//
// SPEC U-02
func TestModeAfterAPlan(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, user, environ, flag string
		chosen                    []string // by the person, one after the other
		want                      string   // "" stands for the default
	}{
		{rule: "the mode from before", user: "mode: standard", chosen: []string{"strict", "plan"}, want: "strict"},
		{rule: "the mode of the settings", user: "mode: strict", chosen: []string{"plan"}, want: "strict"},
		{rule: "plan mode twice forgets nothing", user: "mode: strict", chosen: []string{"standard", "plan", "plan"}, want: "standard"},
		{rule: "the weaker setting below a flag", user: "mode: strict", flag: "plan", want: "strict"},
		{rule: "the weaker setting below a variable", user: "mode: strict", environ: "plan", want: "strict"},
		{rule: "the last setting below plan counts", user: "mode: strict", environ: "standard", flag: "plan", want: "standard"},
		{rule: "without a setting the default", flag: "plan"},
		{rule: "a mode of the settings that only reads stays", user: "mode: read-only", chosen: []string{"plan"}, want: "read-only"},
		{rule: "a person who chose plan below plan settings", user: "mode: plan", chosen: []string{"plan"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			s := load(t, test.user, "BELAY_MODE="+test.environ)
			if test.flag != "" {
				if err := s.Override("mode", "mode", test.flag); err != nil {
					t.Fatal(err)
				}
			}
			f := floorFor(t, s)
			for _, mode := range test.chosen {
				if err := f.SetMode("s", mode); err != nil {
					t.Fatal(err)
				}
			}
			if f.ModeOf("s") != permit.Plan {
				t.Fatalf("the mode is %s before the approval", f.ModeOf("s").Name)
			}
			if test.want == "" {
				if test.want = "standard"; f.box != nil {
					test.want = "build"
				}
			}
			if got, err := f.LeavePlan(t.Context(), "s"); err != nil || got != test.want || f.ModeOf("s").Name != test.want || f.ModeOf("s/1").Name != test.want {
				t.Errorf("the mode is %q, and %s for calls (%v), want %s", got, f.ModeOf("s").Name, err, test.want)
			}
			if f.ModeOf("other") == f.ModeOf("s") && test.flag == "plan" {
				t.Error("another session left plan mode too")
			}
		})
	}
}

// A turn whose plan was approved in another process has left plan mode. A new turn, and a turn
// whose plan was not approved, have not.
//
// SPEC U-02
func TestPlanApprovedInAnotherProcess(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	plan := []scripted.Step{{Calls: []scripted.Call{{Tool: "present_plan", Input: `{}`}}}, {Text: "done"}}
	agent, err := belay.New(scripted.New(append(plan, scripted.Step{Text: "next"}), nil), &belay.Options{Store: store, Tools: []belay.Tool{
		belay.NewRawTool(belay.ToolDeclaration{Name: "present_plan", Description: "x", InputSchema: []byte(`{"type":"object"}`)}, func(context.Context, *belay.Invocation) (belay.Result, error) {
			return belay.Result{Text: "approved", Render: []byte(`{"kind":"plan","plan":"x","mode":"standard"}`)}, nil
		}, nil),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Close(t.Context()) }()
	session := agent.Session("s")
	turn := "none"
	mode := func(environ string, turns int) string {
		for range turns {
			res, err := session.Turn(t.Context(), "go")
			if err != nil {
				t.Fatal(err)
			}
			turn = res.ID
		}
		f := floorFor(t, load(t, "", "BELAY_MODE="+environ))
		f.store = store
		return f.modeOf(t.Context(), "s", turn, policy.Settings{TurnMode.Set("plan"), turnModeFrom.Set("flag")}).Name
	}
	if got := mode("", 0); got != "plan" {
		t.Errorf("without a plan the mode is %s", got)
	}
	if got := mode("", 1); got != "standard" {
		t.Errorf("after the approval the mode is %s", got)
	}
	if got := mode("strict", 0); got != "strict" {
		t.Errorf("under stricter settings the mode is %s", got)
	}
	turn = "the next one" // its message is not stored yet when its first hooks run
	if got := mode("", 0); got != "plan" {
		t.Errorf("at the beginning of the next turn the mode is %s", got)
	}
	if got := mode("", 1); got != "plan" {
		t.Errorf("in the next turn the mode is %s", got)
	}
}

// SPEC U-02
// A directory that a person adds counts like the project, for the floor and for the tools.
func TestAddRoot(t *testing.T) {
	t.Parallel()
	s := load(t, "")
	w := &Assembled{Settings: s, Floor: floorFor(t, s)}
	tools, closeTools, err := openTools(s, w.Floor, nil, nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w.stock = tools
	w.OnClose(closeTools)
	t.Cleanup(func() { _ = w.Close() })
	other := direct(t.TempDir())
	decide := func() belay.ToolDecision {
		a, err := w.Floor.Authorize(t.Context(), toolCall(t, "1", "read", map[string]any{"path": filepath.Join(other, "x")}))
		if err != nil {
			t.Fatal(err)
		}
		return a.Decision
	}
	if decide() != belay.ToolDeny {
		t.Fatal("a file outside may be read")
	}
	for _, wrong := range []string{"/", filepath.Dir(s.Project), "nowhere", "go.mod", "~"} {
		if got, err := w.AddRoot(wrong); err == nil {
			t.Errorf("%s was added as %s", wrong, got)
		}
	}
	for range 2 {
		if got, err := w.AddRoot(other); err != nil || got != other {
			t.Fatalf("added %q (%v), want %s", got, err, other)
		}
	}
	if decide() != belay.ToolPass {
		t.Error("a file of an added directory may not be read")
	}
	if got := w.Floor.Roots(); len(got) != 1 || got[0] != other {
		t.Errorf("the roots are %q", got)
	}
}
