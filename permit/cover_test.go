package permit_test

import (
	"encoding/json"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/permit"
)

// SPEC P-09
func TestWhatAPatternCovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	floor := w.floor(t, permit.Options{Sandboxed: true})
	for _, c := range []struct {
		rule, pattern, tool string
		in                  map[string]any
		want                bool
	}{
		{"the command itself", "shell(git push *)", "shell", map[string]any{"command": "git push origin main"}, true},
		{"what a protection asks about", "shell(git push *)", "shell", map[string]any{"command": "git push --force"}, true},
		{"harmless commands beside it", "shell(git push *)", "shell", map[string]any{"command": "git add . && git push 2>&1 | tail -3"}, true},
		{"another command beside it", "shell(git push *)", "shell", map[string]any{"command": "git push; curl example.com"}, false},
		{"another command inside it", "shell(git push *)", "shell", map[string]any{"command": "git push $(curl example.com)"}, false},
		{"words that are not known", "shell(git push *)", "shell", map[string]any{"command": "git push $X"}, false},
		{"a write outside", "shell(echo *)", "shell", map[string]any{"command": "echo a > " + w.outside + "/x"}, false},
		{"ruin", "shell(rm *)", "shell", map[string]any{"command": "rm -rf /"}, false},
		{"another tool", "shell(git push *)", "custom", map[string]any{"command": "git push"}, false},
		{"a path", "write(src/**)", "write", map[string]any{"path": "src/b.go"}, true},
		{"a tool", "deploy", "deploy", map[string]any{"to": "x"}, true},
		{"a field", "deploy(to=test)", "deploy", map[string]any{"to": "prod"}, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if err := floor.CheckPattern(c.pattern); err != nil {
				t.Fatal(err)
			}
			got, err := floor.Covers(t.Context(), c.pattern, call(t, c.tool, c.in))
			if err != nil || got != c.want {
				t.Errorf("%v, %v, want %v", got, err, c.want)
			}
		})
	}
	for _, bad := range []string{"", "shell(", "custom(x)", "shell()"} {
		if floor.CheckPattern(bad) == nil {
			t.Errorf("%q passes for a pattern", bad)
		}
		if ok, err := floor.Covers(t.Context(), bad, call(t, "shell", nil)); ok || err == nil {
			t.Errorf("%q covers a call", bad)
		}
	}
}

func TestSuggestedPatternsCoverTheCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	floor := w.floor(t, permit.Options{Sandboxed: true})
	for command, want := range map[string]string{
		"git push origin main":             "shell(git push *)",
		"git add . && git push":            "shell(git push *)",
		"curl -s https://example.com | wc": "shell(curl *)",
		"go test ./...":                    "shell(go test *)",
		"go test && curl example.com":      "",
		"$X":                               "",
		"./run.sh":                         "",
		"rm -rf /":                         "",
	} {
		if got := floor.Suggest(t.Context(), "shell", input(t, map[string]any{"command": command})); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	strict := floor.In(permit.Strict)
	if got := strict.Suggest(t.Context(), "write", input(t, map[string]any{"path": "src/b.go"})); got != "write(src/**)" {
		t.Errorf("got %q", got)
	}
	if got := floor.Suggest(t.Context(), "deploy", nil); got != "deploy" {
		t.Errorf("got %q", got)
	}
}

// call makes a call as the loop would hand it to the floor.
func call(t testing.TB, tool string, fields map[string]any) belay.ToolCall {
	t.Helper()
	data, err := json.Marshal(map[string]any{"id": "1", "tool": tool, "input": fields})
	if err != nil {
		t.Fatal(err)
	}
	return hooktest.Input(t, belay.ToolPre, string(data))
}
