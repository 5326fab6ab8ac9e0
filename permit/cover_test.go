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
		"rm -rf docs":                      "shell(rm -rf docs)",
		"rm -rf docs/*":                    `shell(rm -rf docs/\*)`,
		"cat /etc/hostname":                "shell(cat /etc/hostname)",
		"git push --force origin main":     "shell(git push --force origin main)",
		"git reset --hard HEAD~1":          "shell(git reset --hard HEAD~1)",
		"nosuchprogram x":                  "shell(nosuchprogram x)",
		"npm run build":                    "shell(npm run build *)",
		"make":                             "shell(make *)",
		"python3 -c 'print(1)'":            "",
		"python3 run.py":                   "",
		"sh run.sh":                        "",
		"/bin/sh run.sh":                   "",
		"sudo ls":                          "",
		"find . -name '*.o' -delete":       "",
		"awk -f x.awk y":                   "",
	} {
		if got := floor.Suggest(t.Context(), "shell", input(t, map[string]any{"command": command})); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	strict := floor.In(permit.Strict)
	if got := strict.Suggest(t.Context(), "write", input(t, map[string]any{"path": "src/b.go"})); got != "write(src/*)" {
		t.Errorf("got %q", got)
	}
	if got := strict.Suggest(t.Context(), "write", input(t, map[string]any{"path": "b.go"})); got != "write(b.go)" {
		t.Errorf("got %q", got)
	}
	if got := floor.Suggest(t.Context(), "deploy", nil); got != "deploy" {
		t.Errorf("got %q", got)
	}
	tools := map[string]permit.Profile{"fetch": {Zone: permit.ZoneNetwork, URLs: []string{"url"}}}
	asks := w.floor(t, permit.Options{Sandboxed: true, Tools: tools, Rules: rules(t, "ask write(migrations/**)", "ask shell(ls)", "ask *(path:conf/*)", "ask edit")})
	for _, c := range []struct {
		tool string
		in   map[string]any
		want string
	}{
		{"write", map[string]any{"path": "migrations/deep/1.sql"}, "write(migrations/**)"},
		{"write", map[string]any{"path": "conf/a"}, "write(path:conf/*)"},
		{"edit", map[string]any{"path": "src/a.go"}, "edit(src/*)"},
		{"shell", map[string]any{"command": "ls -l src"}, "shell(ls *)"},
		{"shell", map[string]any{"command": "touch x; ls"}, "shell(ls)"},
		{"fetch", map[string]any{"url": "https://a.example/x?y"}, "fetch(https://a.example/*)"},
	} {
		if got := asks.Suggest(t.Context(), c.tool, input(t, c.in)); got != c.want {
			t.Errorf("%s %v: %q, want %q", c.tool, c.in, got, c.want)
		}
	}
}

// A pattern stands for what was asked about. What the floor would let run is no reason
// to take any pattern for a yes.
//
// SPEC P-09
func TestAPatternMustMatchWhatWasAskedAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	floor := w.floor(t, permit.Options{Sandboxed: true, Rules: rules(t, "ask write(migrations/**)", "ask shell(touch)")})
	for _, c := range []struct {
		rule, pattern, tool string
		in                  map[string]any
		want                bool
	}{
		{"the paths of the rule", "write(migrations/*)", "write", map[string]any{"path": "migrations/1"}, true},
		{"other paths", "write(docs/*)", "write", map[string]any{"path": "migrations/1"}, false},
		{"the command of the rule", "shell(touch *)", "shell", map[string]any{"command": "touch x && ls"}, true},
		{"another command of the line", "shell(ls *)", "shell", map[string]any{"command": "touch x && ls"}, false},
		{"a call that others ask about", "shell(mkdir *)", "shell", map[string]any{"command": "mkdir x"}, true},
		{"a part of one that others ask about", "shell(mkdir *)", "shell", map[string]any{"command": "mkdir x && cat y"}, false},
		{"none of one that others ask about", "shell(mkdir *)", "shell", map[string]any{"command": "cat y"}, false},
		{"a file that others ask about", "write(docs/*)", "write", map[string]any{"path": "src/x"}, false},
		{"a tool that others ask about", "write", "write", map[string]any{"path": "src/x"}, true},
	} {
		got, err := floor.Covers(t.Context(), c.pattern, call(t, c.tool, c.in))
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v, want %v", c.rule, got, err, c.want)
		}
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
