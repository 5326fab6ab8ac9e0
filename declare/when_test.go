package declare_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
)

// condition compiles an expression for tool.pre.
func condition(t testing.TB, text string) hook.Condition {
	t.Helper()
	quoted := strings.ReplaceAll(text, "'", "''")
	declared, err := declare.Parse("a.yaml", []byte(gate("action: deny", "match: { when: '"+quoted+"' }")))
	if err != nil {
		t.Fatal(err)
	}
	return declared[0].Options.Match.When
}

// SPEC H-02
func TestWhen(t *testing.T) {
	t.Parallel()
	in := hooktest.Input(t, belay.ToolPre, `{"id": "1", "tool": "write", "context": [{"text": "fact"}], "policy": {"mode": "x"},
		"input": {"path": "/srv/prod/a.txt", "n": 3, "f": 1.5, "list": [1, "b", null], "deep": {"a": {"b": true}}, "q\"uote": "x\ny", "none": null, "big": 12345678901234567890}}`)
	for _, test := range []struct {
		text string
		want bool
		err  string
	}{
		{`args.path.startsWith("/srv/prod")`, true, ""},
		{`args.path.startsWith("/tmp")`, false, ""},
		{`args.path.matches("^/srv/(prod|live)/")`, true, ""},
		{`args["path"] == "/srv/prod/a.txt"`, true, ""},
		{`args.n == 3 && args.n < 4 && args.n % 2 == 1`, true, ""},
		{`args.f > 1 && args.f < 2`, true, ""},
		{`args.list.size() == 3 && args.list[1] == "b" && args.list[2] == null`, true, ""},
		{`args.deep.a.b`, true, ""},
		{`args["q\"uote"] == "x\ny"`, true, ""},
		{`args.none == null`, true, ""},
		{`has(args.path) && !has(args.nope)`, true, ""},
		{`"path" in args && !("nope" in args)`, true, ""},
		{`args.size() == 8`, true, ""},
		{`args.exists(k, k == "deep")`, true, ""},
		{`args == {"a": 1}`, false, ""},
		{`input.tool == "write" && input.id == "1"`, true, ""},
		{`input.context.exists(c, c.text == "fact")`, true, ""},
		{`input.context[0].text == "fact" && input.context[0].id == ""`, true, ""},
		{`input.policy.mode == "x"`, true, ""},
		{`has(input.original)`, false, ""},
		{`input.input.path == args.path`, true, ""},
		{`clean("/srv//x/.././prod/") == "/srv/prod" && (clean(args.path) + "/").startsWith("/srv/prod/")`, true, ""},
		{`(clean("/srv/production/a") + "/").startsWith("/srv/prod/")`, false, ""},
		{`clean(args.n) == "3"`, false, "no such overload"},
		{`args.nope == 1`, false, "no such key: nope"},
		{`args.path > 3`, false, "no such overload"},
		{`args.path`, false, "neither true nor false"},
		{`args.list.all(a, args.list.all(b, args.list.all(c, args.list.all(d, args.list.all(e, args.list.all(f, args.list.all(g, args.list.all(h, ` +
			`args.list.all(i, args.list.all(j, args.list.all(k, args.list.all(l, args.list.all(m, true)))))))))))))`, false, "cost limit"},
	} {
		held, err := condition(t, test.text).Holds(in)
		if held != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s = %t, %v, want %t, %q", test.text, held, err, test.want, test.err)
		}
	}
}

// SPEC H-02
func TestWhenSeesEveryPhase(t *testing.T) {
	t.Parallel()
	for _, p := range belay.Phases() {
		text := "hooks:\n  - { id: a, phase: " + p.Name() + ", action: log, match: { when: 'input == input' } }\n"
		declared, err := declare.Parse("a.yaml", []byte(text))
		if err != nil {
			t.Error(err)
			continue
		}
		set, err := declare.New(declared, hook.Origin{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		rt, err := hook.NewRuntime(belay.Phases(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.Install(set.Subscriptions()...); err != nil {
			t.Errorf("%s: %v", p.Name(), err)
		}
	}
	when := condition(t, "true")
	if err := when.Check(belay.ToolPost, nil); err == nil {
		t.Error("a condition of another phase: want it refused")
	}
}

// A gate must stay closed if its condition cannot be evaluated.
//
// SPEC H-02
func TestWhenErrorCountsAsAMatchAtGates(t *testing.T) {
	t.Parallel()
	set := newPlace(t).set(gate("action: deny", `match: { when: 'args.nope == "x"' }`), nil)
	if trial := try(t, set, write); trial.Output.Decision != belay.ToolDeny || code(trial) != codes.MatchFailed {
		t.Errorf("%v, want the gate asked, and told of", trial)
	}
	set = newPlace(t).set("hooks:\n  - { id: a, phase: tool.post, action: { remind: x }, match: { when: 'args.nope == \"x\"' } }\n", nil)
	trial := hooktest.Try(t, belay.ToolPost, only(t, set), hooktest.Input(t, belay.ToolPost, `{"id": "1", "tool": "a", "input": {}, "text": ""}`), nil)
	if len(trial.Output.Context) != 0 || len(trial.Diagnostics) != 1 {
		t.Errorf("%v, want elsewhere a failure", trial)
	}
}

// SPEC H-02
func TestWhenDoesNotMatch(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	trial := try(t, p.set(gate("run: touch ran", `match: { tools: [write], when: 'args.path.startsWith("/tmp")' }`), nil), write)
	if _, asked := trial.Run(); asked || p.has("ran") {
		t.Errorf("%v, want it not asked", trial)
	}
}
