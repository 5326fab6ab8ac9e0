package looptest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/policy"
)

// These are keys with every merge rule.
var (
	mayWrite = policy.And("may_write")
	maxFiles = policy.Min[int]("max_files")
	maxName  = policy.Min[string]("max_name")
	topics   = policy.Union[string]("topics")
	model    = policy.First[string]("model")
	route    = policy.First[map[string]int]("route")
)

// mergePolicies dispatches to hooks that return these policies, in plan order.
func mergePolicies(t testing.TB, policies ...belay.TurnPolicy) hook.Outcome[belay.TurnBegun, belay.TurnPolicy] {
	t.Helper()
	var subs []hook.Subscription
	for i, policy := range policies {
		subs = append(subs, belay.TurnPrePolicy.On(fmt.Sprintf("hook-%02d", i), answering(belay.TurnPrePolicy, policy), nil))
	}
	slices.Reverse(subs)
	return dispatch(t, belay.TurnPrePolicy, inputOf(t, belay.TurnPrePolicy, `{"text": "hello"}`), subs...)
}

// fromFile returns a policy as a hook in a file gives it: its values are JSON without a
// Go type.
func fromFile(t testing.TB, policy string) belay.TurnPolicy {
	t.Helper()
	var p belay.TurnPolicy
	if err := json.Unmarshal([]byte(`{"policy": `+policy+`}`), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// readPolicy returns all values of the policy, read with the keys.
func readPolicy(p policy.Settings) map[string]any {
	got := map[string]any{}
	if v, ok := mayWrite.Value(p); ok {
		got["may_write"] = v
	}
	if v, ok := maxFiles.Value(p); ok {
		got["max_files"] = v
	}
	if v, ok := maxName.Value(p); ok {
		got["max_name"] = v
	}
	if v, ok := topics.Value(p); ok {
		got["topics"] = v
	}
	if v, ok := model.Value(p); ok {
		got["model"] = v
	}
	if v, ok := route.Value(p); ok {
		got["route"] = v
	}
	return got
}

// SPEC H-17
func TestPolicyKeysMergeByTheirRule(t *testing.T) {
	t.Parallel()
	set := belay.SetPolicy
	for _, test := range []struct {
		rule      string
		policies  []belay.TurnPolicy
		want      map[string]any
		conflicts int
	}{
		{"nobody set anything", []belay.TurnPolicy{{}, {}}, map[string]any{}, 0},
		{"and holds if all say so", []belay.TurnPolicy{set(mayWrite.Set(true)), set(mayWrite.Set(true))}, map[string]any{"may_write": true}, 0},
		{"and fails if one says no", []belay.TurnPolicy{set(mayWrite.Set(true)), set(mayWrite.Set(false)), set(mayWrite.Set(true))}, map[string]any{"may_write": false}, 0},
		{"min takes the smallest", []belay.TurnPolicy{set(maxFiles.Set(5)), set(maxFiles.Set(2)), set(maxFiles.Set(9))}, map[string]any{"max_files": 2}, 0},
		{"min of texts is by bytes", []belay.TurnPolicy{set(maxName.Set("b")), set(maxName.Set("B"))}, map[string]any{"max_name": "B"}, 0},
		{"union joins, sorts and drops repetition", []belay.TurnPolicy{set(topics.Set([]string{"c", "a"})), set(topics.Set([]string{"b", "a"}))}, map[string]any{"topics": []string{"a", "b", "c"}}, 0},
		{"union sorts a value that is alone", []belay.TurnPolicy{set(topics.Set([]string{"b", "a", "b"}))}, map[string]any{"topics": []string{"a", "b"}}, 0},
		{"first keeps the earlier and says so", []belay.TurnPolicy{set(model.Set("large")), set(model.Set("small"))}, map[string]any{"model": "large"}, 1},
		{"first is content with the same value", []belay.TurnPolicy{set(model.Set("large")), set(model.Set("large"))}, map[string]any{"model": "large"}, 0},
		{"first compares values that Go cannot", []belay.TurnPolicy{set(route.Set(map[string]int{"a": 1, "b": 2})), set(route.Set(map[string]int{"b": 2, "a": 1}))}, map[string]any{"route": map[string]int{"a": 1, "b": 2}}, 0},
		{"one answer may set a key twice", []belay.TurnPolicy{set(maxFiles.Set(5), maxFiles.Set(3), model.Set("a"), model.Set("b"))}, map[string]any{"max_files": 3, "model": "a"}, 1},
		{"a value from a file is read by the key", []belay.TurnPolicy{fromFile(t, `{"max_files": 4, "topics": ["x"], "route": {"a": 1}}`)}, map[string]any{"max_files": 4, "topics": []string{"x"}, "route": map[string]int{"a": 1}}, 0},
		{"a value from a file merges by the key of a later one", []belay.TurnPolicy{fromFile(t, `{"max_files": 4}`), set(maxFiles.Set(2))}, map[string]any{"max_files": 2}, 0},
		{"a value from a file merges by the key of an earlier one", []belay.TurnPolicy{set(maxFiles.Set(4)), fromFile(t, `{"max_files": 2, "model": "a"}`)}, map[string]any{"max_files": 2, "model": "a"}, 0},
		{"files alone agree", []belay.TurnPolicy{fromFile(t, `{"max_files": 4}`), fromFile(t, `{"max_files": 4}`)}, map[string]any{"max_files": 4}, 0},
		{"files alone disagree: nobody declared a rule, so the earlier stands", []belay.TurnPolicy{fromFile(t, `{"max_files": 4}`), fromFile(t, `{"max_files": 2}`)}, map[string]any{"max_files": 4}, 1},
		{"a value that the key cannot read does not stand against one that it can", []belay.TurnPolicy{fromFile(t, `{"max_files": "many"}`), set(maxFiles.Set(2))}, map[string]any{"max_files": 2}, 1},
		{"nor does it replace one", []belay.TurnPolicy{set(maxFiles.Set(2)), fromFile(t, `{"max_files": "many"}`)}, map[string]any{"max_files": 2}, 1},
		{"a value that the key cannot read is none", []belay.TurnPolicy{fromFile(t, `{"max_files": "many"}`)}, map[string]any{}, 0},
		{"keys of one name and another rule clash", []belay.TurnPolicy{set(maxFiles.Set(5)), set(policy.First[int]("max_files").Set(2))}, map[string]any{"max_files": 5}, 1},
		{"keys of one name and another type clash", []belay.TurnPolicy{set(maxFiles.Set(5)), set(policy.Min[string]("max_files").Set("2"))}, map[string]any{"max_files": 5}, 1},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			outcome := mergePolicies(t, test.policies...)
			if diff := cmp.Diff(test.want, readPolicy(outcome.Output.Policy)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := slices.Repeat([]codes.Code{codes.PolicyConflict}, test.conflicts); !slices.Equal(codesOf(outcome.Diagnostics), want) {
				t.Errorf("diagnostics %v, want %v", outcome.Diagnostics, want)
			}
		})
	}
}

// The diagnostic of a conflict names the key and the later subscription, and quotes no
// value.
//
// SPEC H-17, H-16
func TestPolicyConflictsQuoteNoValues(t *testing.T) {
	t.Parallel()
	const secret, other = "hunter2-swordfish", "correct-horse"
	outcome := mergePolicies(t,
		belay.SetPolicy(model.Set(secret), maxFiles.Set(424242)),
		belay.SetPolicy(model.Set(other)),
		fromFile(t, `{"model": {"`+secret+`": "`+other+`"}, "max_files": "`+secret+`"}`))
	if got := len(outcome.Diagnostics); got != 3 {
		t.Fatalf("%d diagnostics, want 3: %v", got, outcome.Diagnostics)
	}
	for i, d := range outcome.Diagnostics {
		text := fmt.Sprintf("%+v %s %s", d, d, encode(t, d))
		for _, planted := range []string{secret, other, "424242"} {
			if strings.Contains(text, planted) {
				t.Errorf("the diagnostic quotes %q: %s", planted, text)
			}
		}
		if want := []string{"hook-01", "hook-02", "hook-02"}[i]; d.Subscription != want || d.Phase != "turn.pre_policy" {
			t.Errorf("the diagnostic %s is about %s, want %s", d, d.Subscription, want)
		}
		if !strings.Contains(d.Message, `"model"`) && !strings.Contains(d.Message, `"max_files"`) {
			t.Errorf("the diagnostic %s does not name the key", d)
		}
	}
}

// A key returns a copy of the value, so a handler cannot change the policy of others.
//
// SPEC H-08, H-17
func TestPolicyValuesAreCopies(t *testing.T) {
	t.Parallel()
	nested := policy.First[map[string][]string]("nested")
	settings := mergePolicies(t, belay.SetPolicy(
		topics.Set([]string{"a", "b"}), route.Set(map[string]int{"x": 1}), nested.Set(map[string][]string{"k": {"v"}}),
	)).Output.Policy
	got, _ := topics.Value(settings)
	got[0] = "scribbled"
	where, _ := route.Value(settings)
	where["x"] = 99
	deep, _ := nested.Value(settings)
	deep["k"][0] = "scribbled"
	if again, _ := topics.Value(settings); !slices.Equal(again, []string{"a", "b"}) {
		t.Errorf("topics are %v after a handler scribbled over them", again)
	}
	if again, _ := route.Value(settings); again["x"] != 1 {
		t.Errorf("the route is %v after a handler scribbled over it", again)
	}
	if again, _ := nested.Value(settings); again["k"][0] != "v" {
		t.Errorf("nested is %v after a handler scribbled over it", again)
	}
}

// Merging does not change a handler's answer, so a handler can use one value in several
// turns.
//
// SPEC H-17
func TestMergingPolicyLeavesAnswersAlone(t *testing.T) {
	t.Parallel()
	mine := []string{"z", "a"}
	shared := belay.SetPolicy(topics.Set(mine))
	for range 2 {
		outcome := mergePolicies(t, shared, belay.SetPolicy(topics.Set([]string{"m"})))
		if got, _ := topics.Value(outcome.Output.Policy); !slices.Equal(got, []string{"a", "m", "z"}) {
			t.Errorf("merged %v", got)
		}
	}
	if !slices.Equal(mine, []string{"z", "a"}) {
		t.Errorf("the handler's own value became %v", mine)
	}
}

// SPEC H-17
func TestPolicySettingsAsJSON(t *testing.T) {
	t.Parallel()
	policy := belay.SetPolicy(topics.Set([]string{"b"}), maxFiles.Set(3), mayWrite.Set(false))
	const want = `{"policy":{"max_files":3,"may_write":false,"topics":["b"]}}`
	if got := string(encode(t, policy)); got != want {
		t.Errorf("written as %s, want %s", got, want)
	}
	var keys []string
	for _, s := range fromFile(t, `{"topics": ["b"], "may_write": false, "max_files": 3}`).Policy {
		keys = append(keys, s.Name())
	}
	if !slices.Equal(keys, []string{"max_files", "may_write", "topics"}) {
		t.Errorf("read in the order %v, want it sorted, whatever the map says", keys)
	}
	if got := topics.Name(); got != "topics" {
		t.Errorf("the key's name is %q", got)
	}
	var bad belay.TurnPolicy
	if err := json.Unmarshal([]byte(`{"policy": ["max_files"]}`), &bad); err == nil || !strings.Contains(err.Error(), "policy") {
		t.Errorf("a list of settings is read with %v, want an error that names policy", err)
	}
}

// This test compares the merge with a reference that applies the rule of each key to all
// values at once.
//
// SPEC H-17
func TestPolicyMergeMatchesReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		type values struct {
			write []bool
			files []int
			topic []string
			model []string
		}
		var all values
		var policies []belay.TurnPolicy
		// A value from a file does not know the rule of its key. So one of the first two
		// settings of a key must come from Go code.
		typed := map[string]bool{}
		raw := map[string]int{}
		setting := func(key string, value any, set policy.Setting) policy.Setting {
			if !rapid.Bool().Draw(r, key+" from a file") || (!typed[key] && raw[key] == 1) {
				typed[key] = true
				return set
			}
			raw[key]++
			return fromFile(t, string(encode(t, map[string]any{key: value}))).Policy[0]
		}
		for range rapid.IntRange(0, 5).Draw(r, "hooks") {
			var settings []policy.Setting
			for range rapid.IntRange(0, 3).Draw(r, "settings") {
				switch rapid.IntRange(0, 3).Draw(r, "key") {
				case 0:
					v := rapid.Bool().Draw(r, "may_write")
					all.write = append(all.write, v)
					settings = append(settings, setting("may_write", v, mayWrite.Set(v)))
				case 1:
					v := rapid.IntRange(-3, 3).Draw(r, "max_files")
					all.files = append(all.files, v)
					settings = append(settings, setting("max_files", v, maxFiles.Set(v)))
				case 2:
					v := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3).Draw(r, "topics")
					all.topic = append(all.topic, v...)
					settings = append(settings, setting("topics", v, topics.Set(v)))
				case 3:
					v := rapid.SampledFrom([]string{"large", "small"}).Draw(r, "model")
					all.model = append(all.model, v)
					settings = append(settings, setting("model", v, model.Set(v)))
				}
			}
			policies = append(policies, belay.SetPolicy(settings...))
		}
		outcome := mergePolicies(t, policies...)
		want, conflicts := map[string]any{}, 0
		if len(all.write) > 0 {
			want["may_write"] = !slices.Contains(all.write, false)
		}
		if len(all.files) > 0 {
			want["max_files"] = slices.Min(all.files)
		}
		if len(all.topic) > 0 {
			slices.Sort(all.topic)
			want["topics"] = slices.Compact(all.topic)
		}
		for _, v := range all.model {
			if v != all.model[0] {
				conflicts++
			}
			want["model"] = all.model[0]
		}
		if diff := cmp.Diff(want, readPolicy(outcome.Output.Policy)); diff != "" {
			r.Errorf("merged (-want +got):\n%s", diff)
		}
		if len(outcome.Diagnostics) != conflicts {
			r.Errorf("%d conflicts, want %d: %v", len(outcome.Diagnostics), conflicts, outcome.Diagnostics)
		}
	})
}

// SPEC H-20
func TestPolicyHandlersDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	var saw []string
	look := func(_ context.Context, turn belay.TurnBegun) (belay.TurnPolicy, error) {
		saw = append(saw, string(encode(t, turn)))
		return belay.SetPolicy(maxFiles.Set(1)), nil
	}
	dispatch(t, belay.TurnPrePolicy, inputOf(t, belay.TurnPrePolicy, `{"text": "hello"}`),
		belay.TurnPrePolicy.On("a", look, nil), belay.TurnPrePolicy.On("b", look, &hook.Options{After: []string{"a"}}))
	if want := slices.Repeat([]string{`{"text":"hello"}`}, 2); !slices.Equal(saw, want) {
		t.Errorf("handlers saw %q, want %q", saw, want)
	}
}
