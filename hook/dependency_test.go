package hook_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/hook"
)

// SPEC H-06
func TestDependencyErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		nodes []node
		want  error
		text  []string
	}{
		{
			"a dependency that does not exist",
			[]node{{id: "a", after: []string{"ghost"}}},
			&hook.DependencyError{Subscription: "a", Phase: "test.rewrite", Field: "after", Dependency: "ghost", Kind: "missing"},
			[]string{`"a"`, "test.rewrite", "after", `"ghost"`},
		},
		{
			"a dependency whose name is nearly right",
			[]node{{id: "a", before: []string{"no-prood"}}, {id: "no-prod"}},
			&hook.DependencyError{Subscription: "a", Phase: "test.rewrite", Field: "before", Dependency: "no-prood", Kind: "missing"},
			[]string{"before", `did you mean "no-prod"?`},
		},
		{
			"a subscription is not suggested as its own missing dependency",
			[]node{{id: "h2", after: []string{"hh"}}},
			&hook.DependencyError{Subscription: "h2", Phase: "test.rewrite", Field: "after", Dependency: "hh", Kind: "missing"},
			[]string{`there is no subscription "hh"`},
		},
		{
			"a dependency that is disabled",
			[]node{{id: "a", before: []string{"b"}}, {id: "b", disabled: true}},
			&hook.DependencyError{Subscription: "a", Phase: "test.rewrite", Field: "before", Dependency: "b", Kind: "disabled"},
			[]string{`"a"`, "before", `"b" is disabled`},
		},
		{
			"a dependency in another phase",
			[]node{{id: "a", after: []string{elsewhere}}},
			&hook.DependencyError{Subscription: "a", Phase: "test.rewrite", Field: "after", Dependency: elsewhere, Kind: "other_phase"},
			[]string{`"a"`, "after", "is only on test.gate"},
		},
		{
			"a dependency on itself",
			[]node{{id: "a", before: []string{"a"}}},
			&hook.DependencyError{Subscription: "a", Phase: "test.rewrite", Field: "before", Dependency: "a", Kind: "self"},
			[]string{`"a"`, "before", "itself"},
		},
		{
			"a rewriter after a handler that does not rewrite",
			[]node{{id: "a", rewrites: true, after: []string{"b"}}, {id: "b"}},
			&hook.RewriterOrderError{Rewriter: "a", Phase: "test.rewrite", After: "b"},
			[]string{`"a"`, "rewrites", `"b"`},
		},
		{
			"a rewriter after a handler that does not rewrite, declared with before",
			[]node{{id: "a", rewrites: true}, {id: "b", before: []string{"a"}}},
			&hook.RewriterOrderError{Rewriter: "a", Phase: "test.rewrite", After: "b"},
			[]string{`"a"`, "rewrites", `"b"`},
		},
		{
			"a cycle",
			[]node{{id: "a", after: []string{"b"}}, {id: "b", after: []string{"a"}}},
			&hook.CycleError{Phase: "test.rewrite", Members: []string{"a", "b"}},
			[]string{"test.rewrite", "a -> b -> a"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			rt, err := installNodes(t, test.nodes)
			problems := slices.Clone(installProblems(t, err))
			if d, ok := errors.AsType[*hook.DependencyError](problems[0]); ok {
				d = new(*d)
				d.Reason, problems[0] = "", d
			}
			if len(problems) != 1 || !reflect.DeepEqual(problems[0], test.want) { //nolint:govet // these errors are facts: structs of strings
				t.Fatalf("got %#v, want %#v", problems[0], test.want)
			}
			for _, part := range test.text {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %s: %v", part, err)
				}
			}
			same(t, "plan", planOf(t, rt, rewritePhase), []string{})
		})
	}
}

// A dependency may be installed earlier or in the same call. In the same call, the order
// does not matter.
//
// SPEC H-06
func TestDependencyMayBeThereAlready(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, gateNamed("z", nil))
	install(t, rt, gateNamed("a", &hook.Options{After: []string{"z", "m"}}), gateNamed("m", nil))
	same(t, "plan", planOf(t, rt, gatePhase), []string{"m", "z", "a"})
}

// The dependencies of installed subscriptions are checked again when other subscriptions
// change.
//
// SPEC H-06
func TestLaterInstallCannotBreakTheOrder(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, gateNamed("a", nil), gateNamed("b", &hook.Options{After: []string{"a"}}))
	_, err := rt.Install(gateNamed("c", &hook.Options{After: []string{"b"}, Before: []string{"a"}}))
	problems := installProblems(t, err)
	if cycle, ok := errors.AsType[*hook.CycleError](problems[0]); !ok || strings.Join(cycle.Members, " ") != "a b c" {
		t.Errorf("got %v, want the cycle a b c", err)
	}
	same(t, "plan", planOf(t, rt, gatePhase), []string{"a", "b"})
}

// A handler that the dispatch waits for cannot be ordered after background work, which runs
// later.
//
// SPEC H-09
func TestNothingComesAfterBackgroundWork(t *testing.T) {
	t.Parallel()
	background := func(id string, o hook.Options) hook.Subscription {
		o.Execution = hook.Background
		return observePhase.On(id, says(remark{}), &o)
	}
	inline := func(id string, o hook.Options) hook.Subscription { return observePhase.On(id, says(remark{}), &o) }
	for _, test := range []struct {
		rule    string
		subs    []hook.Subscription
		refused string // the wrong field of subscription "x"
	}{
		{"inline after background", []hook.Subscription{background("a", hook.Options{}), inline("x", hook.Options{After: []string{"a"}})}, "after"},
		{"inline after background, declared with before", []hook.Subscription{background("x", hook.Options{Before: []string{"b"}}), inline("b", hook.Options{})}, "before"},
		{"deadline after background", []hook.Subscription{background("a", hook.Options{}), inline("x", hook.Options{After: []string{"a"}, Execution: hook.Deadline, Timeout: 1})}, "after"},
		{"background after inline is fine", []hook.Subscription{inline("a", hook.Options{}), background("x", hook.Options{After: []string{"a"}})}, ""},
		{"background after background is fine", []hook.Subscription{background("a", hook.Options{}), background("x", hook.Options{After: []string{"a"}})}, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			rt := newRuntime(t, &hook.RuntimeOptions{Queue: hook.NewMemoryQueue(hook.NewMemoryJournal(8), nil)})
			_, err := rt.Install(test.subs...)
			if test.refused == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			problems := installProblems(t, err)
			if problem, ok := errors.AsType[*hook.OptionError](problems[0]); !ok || problem.Field != test.refused || problem.Subscription != "x" {
				t.Errorf("got %v, want an *OptionError about %s of x", err, test.refused)
			}
		})
	}
}

// Install reports all problems together: a cycle and the other problems.
//
// SPEC H-06
func TestCycleBesideOtherProblems(t *testing.T) {
	t.Parallel()
	_, err := newRuntime(t, nil).Install(
		gatePhase.On("a", says(verdict{}), &hook.Options{After: []string{"b"}}),
		gatePhase.On("b", says(verdict{}), &hook.Options{After: []string{"a"}}),
		gatePhase.On("c", says(verdict{}), &hook.Options{After: []string{"nobody"}}),
		gatePhase.On("d", says(verdict{}), &hook.Options{Execution: hook.Deadline}))
	var kinds []string
	for _, problem := range installProblems(t, err) {
		kinds = append(kinds, fmt.Sprintf("%T", problem))
	}
	same(t, "problems", kinds, []string{"*hook.OptionError", "*hook.DependencyError", "*hook.CycleError"})
}
