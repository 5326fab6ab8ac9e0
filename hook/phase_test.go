package hook_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/belay-run/belay/hook"
)

// SPEC H-01
func TestPhaseIsAValueThatSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		phase   hook.AnyPhase
		name    string
		kind    hook.Kind
		failure hook.Failure
		in, out reflect.Type
	}{
		{gatePhase, "test.gate", hook.Gate, hook.Closed, reflect.TypeFor[call](), reflect.TypeFor[verdict]()},
		{collectPhase, "test.collect", hook.Collect, hook.Open, reflect.TypeFor[call](), reflect.TypeFor[findings]()},
		{observePhase, "test.observe", hook.Observe, hook.Open, reflect.TypeFor[call](), reflect.TypeFor[remark]()},
		{pagePhase, "test.page", hook.Collect, hook.Open, reflect.TypeFor[call](), reflect.TypeFor[*page]()},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			equal(t, "name", test.phase.Name(), test.name)
			equal(t, "kind", test.phase.Info().Kind, test.kind)
			equal(t, "default failure mode", test.phase.Info().Failure, test.failure)
			same(t, "labels", test.phase.Info().Labels, []string{"agent", "lang", "tool"})
			in, out := test.phase.Types()
			equal(t, "input type", in, test.in)
			equal(t, "output type", out, test.out)
			if test.phase.Info().May == "" || test.phase.Info().Fires == "" {
				t.Error("the lines for the documentation are lost")
			}
		})
	}
}

// SPEC H-01
func TestPhaseValuesAreInterchangeable(t *testing.T) {
	t.Parallel()
	copied := gatePhase
	rt := newRuntime(t, nil, copied.On("no", says(deny("no")), nil))
	out := dispatch(t, gatePhase, snapshot(t, rt), write)
	equal(t, "verdict", out.Output.Severity, hook.SeverityDeny)
}

// NewRuntime reports a definition that cannot work, because a package variable cannot
// return an error.
//
// SPEC H-01, H-10
func TestFaultyPhasesAreRefusedByNewRuntime(t *testing.T) {
	t.Parallel()
	merge := func(_ *hook.Merging, merged, _ verdict) verdict { return merged }
	closed := func(hook.Problem) (verdict, bool) { return deny(""), true }
	good := hook.Definition[call, verdict]{Name: "good", Kind: hook.Gate, Merge: merge, Closed: closed}
	for _, test := range []struct {
		rule   string
		spoil  func(d *hook.Definition[call, verdict])
		naming string
	}{
		{"a complete definition is accepted", func(*hook.Definition[call, verdict]) {}, ""},
		{"a phase has a name", func(d *hook.Definition[call, verdict]) { d.Name = "" }, "name"},
		{"a phase's name is an id", func(d *hook.Definition[call, verdict]) { d.Name = "tool pre" }, "name"},
		{"a phase has a kind", func(d *hook.Definition[call, verdict]) { d.Kind = 0 }, "kind"},
		{"a kind is one of three", func(d *hook.Definition[call, verdict]) { d.Kind = 9 }, "kind"},
		{"a gate has a merge rule", func(d *hook.Definition[call, verdict]) { d.Merge = nil }, "merge"},
		{"a collect phase has a merge rule", func(d *hook.Definition[call, verdict]) { d.Kind, d.Merge = hook.Collect, nil }, "merge"},
		{"an observe phase needs no merge rule", func(d *hook.Definition[call, verdict]) { d.Kind, d.Merge = hook.Observe, nil }, ""},
		{"a gate needs a Closed function", func(d *hook.Definition[call, verdict]) { d.Closed = nil }, "closed"},
		{"Closed of a gate must deny", func(d *hook.Definition[call, verdict]) {
			d.Closed = func(hook.Problem) (verdict, bool) { return ask("sure?"), true }
		}, "closed"},
		{"Closed of a gate must return an answer", func(d *hook.Definition[call, verdict]) {
			d.Closed = func(hook.Problem) (verdict, bool) { return deny(""), false }
		}, "closed"},
		{"Closed of a gate must not panic", func(d *hook.Definition[call, verdict]) {
			d.Closed = func(hook.Problem) (verdict, bool) { panic("broken") }
		}, "closed"},
		{"the capability to rewrite needs a Rewrite function", func(d *hook.Definition[call, verdict]) { d.Capabilities = hook.CanRewriteInput }, "rewrite"},
		{"an observe phase does not fail closed", func(d *hook.Definition[call, verdict]) { d.Kind, d.Failure = hook.Observe, hook.Closed }, "failure"},
		{"a phase does not default to a fallback", func(d *hook.Definition[call, verdict]) { d.Failure = gatePhase.Fallback(deny("")) }, "failure"},
		{"a gate may default to open", func(d *hook.Definition[call, verdict]) { d.Failure = hook.Open }, ""},
		{"a negative overlap is refused", func(d *hook.Definition[call, verdict]) { d.Overlap = -1 }, "overlap"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			def := good
			test.spoil(&def)
			_, err := hook.NewRuntime([]hook.AnyPhase{hook.Define(def)}, nil)
			switch {
			case test.naming == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.naming != "" && err == nil:
				t.Errorf("accepted, want an error that names %s", test.naming)
			case test.naming != "" && !strings.Contains(err.Error(), test.naming):
				t.Errorf("got %q, want an error that names %s", err, test.naming)
			}
		})
	}
}

// SPEC H-01
func TestRuntimeRefusesPhasesThatAreNone(t *testing.T) {
	t.Parallel()
	for rule, phases := range map[string][]hook.AnyPhase{
		"a phase is not nil":             {gatePhase, nil},
		"a phase is made by Define":      {hook.Phase[call, verdict]{}},
		"two phases do not share a name": {gatePhase, collectPhase, gatePhase},
	} {
		if _, err := hook.NewRuntime(phases, nil); err == nil {
			t.Errorf("%s: accepted", rule)
		}
	}
}

// A zero phase belongs to no runtime. It is inactive, and nobody can subscribe to it.
//
// SPEC H-03, H-13
func TestZeroPhaseIsInactive(t *testing.T) {
	t.Parallel()
	var zero hook.Phase[call, verdict]
	rt := newRuntime(t, nil, gatePhase.On("a", says(deny("no")), nil))
	s := snapshot(t, rt)
	if zero.Active(s) {
		t.Error("it is active")
	}
	out, err := zero.Dispatch(context.Background(), s, write)
	if err != nil || out.Output.Severity != hook.SeverityPass {
		t.Errorf("dispatch: got %v, %v; want no opinion", out.Output, err)
	}
	if _, err := rt.Install(zero.On("b", says(deny("no")), nil)); err == nil {
		t.Error("a subscription to it was installed")
	}
	equal(t, "what it may", zero.Info().May+zero.Info().Fires, "")
}

// A runtime finds all its phases, even if hashes of their names collide.
//
// SPEC H-13
func TestRuntimeWithManyPhases(t *testing.T) {
	t.Parallel()
	var phases []hook.Phase[call, findings]
	var all []hook.AnyPhase
	for i := range 200 {
		def := collectDefinition
		def.Name = "many." + strings.Repeat("x", i%7) + "/" + string(rune('a'+i%26)) + strings.Repeat("y", i/26)
		phases = append(phases, hook.Define(def))
		all = append(all, phases[i])
	}
	rt, err := hook.NewRuntime(all, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(phases); i += 2 {
		install(t, rt, phases[i].On("a", says(note(phases[i].Name())), nil))
	}
	s := snapshot(t, rt)
	for i, p := range phases {
		equal(t, p.Name()+" active", p.Active(s), i%2 == 0)
		if out := dispatch(t, p, s, write); i%2 == 0 {
			same(t, p.Name(), out.Output.Notes, []string{p.Name()})
		}
	}
	if foreign := collectPhase.Active(s); foreign {
		t.Error("a phase that the runtime does not have is active")
	}
}

// SPEC H-01
func TestRuntimeListsItsPhases(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	phases := rt.Phases()
	same(t, "phases", phases, allPhases)
	phases[0] = nil
	same(t, "phases, after a caller changed its copy", rt.Phases(), allPhases)
	equal(t, "capabilities", gatePhase.Info().Capabilities.String(), "block,ask,context,audit,jobs")
}

// SPEC H-01, J-06
func TestDecodeInput(t *testing.T) {
	t.Parallel()
	in, err := gatePhase.DecodeInput(*write.scope, []byte(`{"tool":"edit","text":"x"}`))
	if err != nil || in.tool != "edit" || *in.scope != *write.scope {
		t.Errorf("got %+v, %v; want what the phase's own Decode makes of it", in, err)
	}
	if _, err := gatePhase.DecodeInput(hook.Scope{}, []byte(`{`)); err == nil || !strings.Contains(err.Error(), "test.gate input") {
		t.Errorf("got %v, want an error that names the phase", err)
	}
	plain := hook.Define(hook.Definition[map[string]int, remark]{Name: "test.plain", Kind: hook.Observe})
	if in, err := plain.DecodeInput(hook.Scope{}, []byte(`{"a":1}`)); err != nil || in["a"] != 1 {
		t.Errorf("got %v, %v; want plain JSON by default", in, err)
	}
}
