package permit_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/permit"
)

// SPEC P-05
func TestRules(t *testing.T) {
	t.Parallel()
	const (
		pass = belay.ToolPass
		ask  = belay.ToolAsk
		deny = belay.ToolDeny
	)
	w := newWorld(t)
	w.link(t, "keys", "src")
	tools := map[string]permit.Profile{"fetch": {Zone: permit.ZoneNetwork, URLs: []string{"url"}}, "deploy": {Zone: permit.ZoneExternal}}
	for _, c := range []struct {
		rule  string
		rules []string
		tool  string
		in    map[string]any
		want  belay.ToolDecision
	}{
		{"deny beats ask and allow, whatever the order", []string{"allow shell(ls)", "deny shell(ls)", "ask shell(ls)"}, "shell", map[string]any{"command": "ls"}, deny},
		{"ask beats allow", []string{"ask shell(ls)", "allow shell(ls)"}, "shell", map[string]any{"command": "ls"}, ask},
		{"an allow permits a call that the mode asks about", []string{"allow shell(go test *)"}, "shell", map[string]any{"command": "go test ./..."}, pass},
		{"a last * also matches no word", []string{"allow shell(go test *)"}, "shell", map[string]any{"command": "go test"}, pass},
		{"an allow matches whole commands", []string{"allow shell(go test)"}, "shell", map[string]any{"command": "go test ./..."}, ask},
		{"a deny matches commands that begin with its words", []string{"deny shell(git log)"}, "shell", map[string]any{"command": "git log --oneline"}, deny},
		{"a deny does not match a longer word", []string{"deny shell(git log)"}, "shell", map[string]any{"command": "git logs"}, ask},
		{"every command of a line must be allowed", []string{"allow shell(go test *)"}, "shell", map[string]any{"command": "go test && go generate"}, ask},
		{"several rules allow the commands of a line", []string{"allow shell(go test *)", "allow shell(go generate *)"}, "shell", map[string]any{"command": "go test && go generate"}, pass},
		{"one command of a line is enough for a deny", []string{"deny shell(touch *)"}, "shell", map[string]any{"command": "ls; (cd src && touch x)"}, deny},
		{"a deny sees through quotes and variables", []string{"deny shell(touch)"}, "shell", map[string]any{"command": `T=tou; "$T"'ch' x`}, deny},
		{"a deny sees through wrappers", []string{"deny shell(touch)"}, "shell", map[string]any{"command": `env A=1 nice sh -c 'touch x'`}, deny},
		{"a deny matches the name of the program without its directory", []string{"deny shell(touch)"}, "shell", map[string]any{"command": `/usr/bin/touch x`}, deny},
		{"an allow does not trust a program of the project by its name", []string{"allow shell(go *)"}, "shell", map[string]any{"command": `./go build`}, ask},
		{"an allow does not cover a redirection", []string{"allow shell(go test *)"}, "shell", map[string]any{"command": `go test > ` + w.outside + `/x`}, ask},
		{"an allow does not cover a substitution", []string{"allow shell(go test *)"}, "shell", map[string]any{"command": `go test $(go generate)`}, ask},
		{"an allow does not cover words that are not known", []string{"allow shell(go test *)"}, "shell", map[string]any{"command": `go test $X`}, ask},
		{"an allow does not lift a protection", []string{"allow shell(rm *)", "allow shell"}, "shell", map[string]any{"command": `rm -rf src`}, ask},
		{"an allow of the tool covers all of a line", []string{"allow shell"}, "shell", map[string]any{"command": `go test $X; nosuchprogram`}, pass},
		{"nothing covers zone 6", []string{"allow *", "allow shell", "allow shell(rm *)"}, "shell", map[string]any{"command": `rm -rf /`}, deny},
		{"paths of file tools", []string{"deny read(src/**)"}, "read", map[string]any{"path": "src/a.go"}, deny},
		{"paths are compared after links are resolved", []string{"deny read(src/**)"}, "read", map[string]any{"path": "keys/a.go"}, deny},
		{"paths are compared without ..", []string{"deny read(src/**)"}, "read", map[string]any{"path": "x/../src/./a.go"}, deny},
		{"a path elsewhere", []string{"deny read(src/**)"}, "read", map[string]any{"path": "docs/a.go"}, pass},
		{"a path anywhere", []string{"deny read(**/*.pem)"}, "read", map[string]any{"path": "a/b/key.pem"}, deny},
		{"a name anywhere", []string{"deny read(**/.env)"}, "read", map[string]any{"path": "a/b/.env"}, deny},
		{"a path of whatever tool", []string{"deny *(path:**/.env)"}, "shell", map[string]any{"command": "cat a/.env"}, deny},
		{"a path that a redirection reads", []string{"deny *(path:**/.env)"}, "shell", map[string]any{"command": "cat < .env"}, deny},
		{"a path by its absolute pattern", []string{"deny shell(path:" + w.outside + "/**)"}, "shell", map[string]any{"command": "cat " + w.outside + "/x"}, deny},
		{"an address", []string{"allow fetch(https://*.example.com/*)"}, "fetch", map[string]any{"url": "https://api.example.com/v1/x"}, pass},
		{"an address without a path", []string{"allow fetch(https://example.com/*)"}, "fetch", map[string]any{"url": "https://example.com"}, pass},
		{"another scheme", []string{"allow fetch(https://example.com/*)"}, "fetch", map[string]any{"url": "http://example.com/"}, ask},
		{"a host that only looks like it", []string{"allow fetch(https://example.com/*)"}, "fetch", map[string]any{"url": "https://example.com@evil.test/"}, ask},
		{"a host that ends like it", []string{"allow fetch(https://*.example.com/*)"}, "fetch", map[string]any{"url": "https://evil-example.com/"}, ask},
		{"a denied host in capitals with a dot", []string{"deny fetch(evil.test)"}, "fetch", map[string]any{"url": "https://EVIL.test./x"}, deny},
		{"an address in a command", []string{"deny shell(url:evil.test)"}, "shell", map[string]any{"command": "curl -s https://evil.test/x"}, deny},
		{"a field", []string{"deny deploy(target=prod*)"}, "deploy", map[string]any{"target": "prod-1"}, deny},
		{"all fields must match", []string{"allow deploy(target=test, dry=true)"}, "deploy", map[string]any{"target": "test", "dry": false}, ask},
		{"a field that is not a string", []string{"allow deploy(target=test, dry=true)"}, "deploy", map[string]any{"target": "test", "dry": true}, pass},
		{"a nested field", []string{"deny deploy(to.env=prod)"}, "deploy", map[string]any{"to": map[string]any{"env": "prod"}}, deny},
		{"a field that is not there", []string{"allow deploy(target=*)"}, "deploy", map[string]any{}, ask},
		{"a pattern of tools", []string{"deny dep*"}, "deploy", nil, deny},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			floor := w.floor(t, permit.Options{Mode: permit.Standard, Sandboxed: true, Rules: rules(t, c.rules...), Tools: tools})
			expect(t, floor.Explain(t.Context(), c.tool, input(t, c.in)), c.want, "")
		})
	}
}

// SPEC P-05
func TestAProjectMayNotAllow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	allow := rules(t, "allow shell(go test *)")[0]
	for _, origin := range []hook.OriginKind{hook.OriginProject, hook.OriginSpace} {
		allow.Origin, allow.Where = origin, "belay.yaml:3"
		if _, err := permit.New(w.project, &permit.Options{Rules: []permit.Rule{allow}}); err == nil || !strings.Contains(err.Error(), "belay.yaml:3") {
			t.Errorf("%v: error %v does not name the rule", origin, err)
		}
		granted := allow
		granted.Granted = true
		if _, err := permit.New(w.project, &permit.Options{Rules: []permit.Rule{granted}}); err != nil {
			t.Error(err)
		}
		deny := allow
		deny.Decision = permit.RuleDeny
		if _, err := permit.New(w.project, &permit.Options{Rules: []permit.Rule{deny}}); err != nil {
			t.Error(err)
		}
	}
}

func TestRulesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "allow, ask or deny",
		"alow shell":                "did you mean",
		"allow":                     "names no tool",
		"allow (ls)":                "names no tool",
		"allow shell git push":      "in parentheses",
		"allow shell(git push":      "not closed",
		"allow shell()":             "empty",
		"deny [(x)":                 "syntax error",
		"deny shell([)":             "syntax error",
		"deny read([)":              "not a valid path pattern",
		"deny custom(what)":         "FIELD",
		"deny custom(a=b, c)":       "write FIELD=PATTERN",
		"deny custom(url:http://@)": "not a valid address pattern",
	} {
		r, err := permit.ParseRule(text)
		if err == nil {
			_, err = permit.New(t.TempDir(), &permit.Options{Rules: []permit.Rule{r}})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v does not say %q", text, err, want)
		}
	}
	_, err := permit.New(t.TempDir(), &permit.Options{Rules: []permit.Rule{{Decision: "maybe", Tool: "x"}}, Guards: []permit.Guard{{}}, Relax: []string{"x"}})
	for _, want := range []string{"maybe", "checks nothing", "unknown protection"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

// SPEC P-01
func TestGuards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		rule    string
		guard   permit.Guard
		tool    string
		in      map[string]any
		refused bool
	}{
		{"an expression in the input", permit.Guard{Deny: `prod-\d+`}, "shell", map[string]any{"command": "echo prod-1"}, true},
		{"an expression deep in the input", permit.Guard{Deny: `prod-\d+`}, "custom", map[string]any{"a": []any{map[string]any{"b": "prod-1"}}}, true},
		{"an expression in what a command resolves to", permit.Guard{Deny: `prod-\d+`}, "shell", map[string]any{"command": `P=prod; echo "$P"-1`}, true},
		{"an expression that is not there", permit.Guard{Deny: `prod-\d+`}, "shell", map[string]any{"command": "echo prod"}, false},
		{"another tool", permit.Guard{Tools: []string{"write"}, Deny: `.`}, "read", map[string]any{"path": "a"}, false},
		{"a pattern of tools", permit.Guard{Tools: []string{"wr*"}, Deny: `.`}, "write", map[string]any{"path": "a"}, true},
		{"a command that may be run", permit.Guard{Commands: []string{"echo", "ls"}}, "shell", map[string]any{"command": "echo a | /bin/ls"}, false},
		{"a command that may not", permit.Guard{Commands: []string{"echo", "ls"}}, "shell", map[string]any{"command": "echo a; cat b"}, true},
		{"a program of the project with that name", permit.Guard{Commands: []string{"echo", "ls"}}, "shell", map[string]any{"command": "./ls"}, true},
		{"a command that is not known", permit.Guard{Commands: []string{"echo", "ls"}}, "shell", map[string]any{"command": "$X"}, true},
		{"a path that may be used", permit.Guard{Paths: []string{"src/**"}}, "read", map[string]any{"path": "src/a.go"}, false},
		{"a path that may not", permit.Guard{Paths: []string{"src/**"}}, "read", map[string]any{"path": "belay.yaml"}, true},
		{"a path that a command uses", permit.Guard{Paths: []string{"src/**"}}, "shell", map[string]any{"command": "cat src/a.go belay.yaml"}, true},
		{"Go code that agrees", permit.Guard{Check: func(context.Context, string, json.RawMessage) error { return nil }}, "read", map[string]any{"path": "a"}, false},
		{"Go code that does not", permit.Guard{Check: func(context.Context, string, json.RawMessage) error { return errors.New("no") }}, "read", map[string]any{"path": "a"}, true},
		{"Go code that panics", permit.Guard{Check: func(context.Context, string, json.RawMessage) error { panic("oh") }}, "read", map[string]any{"path": "a"}, true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			c.guard.ID = "g"
			floor := w.floor(t, permit.Options{Sandboxed: true, Mode: permit.Permissive, Guards: []permit.Guard{c.guard}, Rules: rules(t, "allow *")})
			want, by := belay.ToolPass, ""
			if c.refused {
				want, by = belay.ToolDeny, "guard g"
			}
			expect(t, floor.Explain(t.Context(), c.tool, input(t, c.in)), want, by)
		})
	}
}
