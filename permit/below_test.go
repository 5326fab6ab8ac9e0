package permit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
)

// A guard allows only its paths. A command without a path works on the current directory,
// so the guard must check the current directory.
//
// SPEC P-01
func TestLeavingThePathOutIsNoWayAroundAGuard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, "docs/a.md", "a")
	w.write(t, "docs/deep/b.md", "b")
	guard := func(paths ...string) *permit.Floor {
		return w.floor(t, permit.Options{Sandboxed: true, Mode: permit.Permissive, Guards: []permit.Guard{{ID: "only", Paths: paths}}})
	}
	docs := guard("docs/**")
	for _, c := range []struct {
		tool    string
		in      map[string]any
		refused bool
	}{
		{"grep", map[string]any{"pattern": "x"}, true},
		{"grep", map[string]any{"pattern": "x", "path": ""}, true},
		{"grep", map[string]any{"pattern": "x", "path": []any{}}, true},
		{"grep", map[string]any{"pattern": "x", "path": "docs"}, false},
		{"grep", map[string]any{"pattern": "x", "path": "docs/a.md", "glob": "*.md"}, false},
		{"list", map[string]any{}, true},
		{"list", map[string]any{"path": "docs"}, false},
		{"glob", map[string]any{"pattern": "src/**"}, true},
		{"glob", map[string]any{"pattern": "**/*.go"}, true},
		{"glob", map[string]any{"pattern": "*.go", "path": "src"}, true},
		{"glob", map[string]any{"pattern": "docs/**/*.md"}, false},
		{"glob", map[string]any{"pattern": "*.md", "path": "docs"}, false},
		{"files__read", map[string]any{"file_path": "src/a.go"}, true},
	} {
		want := belay.ToolPass
		if c.refused {
			want = belay.ToolDeny
		}
		expect(t, docs.Explain(t.Context(), c.tool, input(t, c.in)), want, "")
	}
	for command, refused := range map[string]bool{
		"grep -r hunter": true, "grep -rn hunter .": true, "rgrep x": true, "grep --recursive x": true, "grep -d recurse x": true, "find": true, "find -name x": true, "rg x": true, "ag x": true,
		"git grep x": true, "ls": true, "ls -la": true, "tree": true, "du -sh": true, "fd x": true, "git show HEAD:src/a.go": true, "git diff": true, "git log -p": true,
		"cd src && ls": true, "cd docs && cat ../src/a.go": true, "git archive HEAD": true, "find . -type f | xargs cat": true, "git ls-files | xargs cat": true,
		"grep -r hunter docs": false, "rg x docs": false, "ls docs": false, "find docs -name '*.md'": false, "git grep x docs": false, "git show HEAD:docs/a.md": false,
		"git diff -- docs": false, "find docs -name '*.md' | xargs grep x": false, "echo hi": false, "cat docs/a.md | grep a": false, "cat docs/a.md | rg a": false,
	} {
		want := belay.ToolPass
		if refused {
			want = belay.ToolDeny
		}
		expect(t, shell(t, docs, command), want, "")
	}
	flat := guard("docs/*", "docs")
	expect(t, shell(t, flat, "grep x docs/a.md"), belay.ToolPass, "")
	expect(t, shell(t, flat, "grep -r x docs"), belay.ToolDeny, "guard only") // docs/deep is not allowed
	expect(t, shell(t, flat, "grep -r x docs/a.md"), belay.ToolPass, "")
}

// A rule about a path also applies to a command that reads or changes a directory which
// contains that path.
//
// SPEC P-05
func TestRulesSeeWhatIsBelowADirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, "secrets/deep/key", "k")
	w.write(t, "migrations/1.sql", "s")
	w.write(t, "conf/tls/server.pem", "p")
	w.write(t, "out/x", "x")
	for _, c := range []struct {
		rule    string
		reaches []string // commands that the rule applies to
		not     []string
	}{
		{
			"deny *(path:migrations/**)",
			[]string{
				`find . -name "*.sql" -exec sed -i s/a/b/ {} +`, `find . -exec sed -i s/a/b/ {} +`, "find . -name '*.sql' -delete", "fd -e sql -x sed -i s/a/b/", "chmod -R go-r .",
				"rm -rf .", "git checkout -- .", "git restore .", "tar xf a.tar", "cp -r out/. .", "rsync -a out/ .", "mv migrations old", "unzip a.zip",
			},
			[]string{"find src -name '*.go' -exec gofmt -w {} +", "cp -r out src/out", "tar xf a.tar -C out", "touch x", "chmod -R go-r src", "git checkout main"},
		},
		{
			"deny *(path:secrets/**)",
			[]string{
				"grep -r s .", "grep -R s", "rg s", "tar c .", "tar czf out/x.tgz .", "cp -r . TMP/x", "cp -a . TMP/x", "cp -r .. TMP/x", "zip -r out/x.zip .", "rsync -a . TMP/x", "diff -r . out", "git grep s",
				"git archive HEAD", "find . -type f -exec cat {} +", "find . -type f | xargs cat", "git ls-files | xargs grep s", "cat */*/*", "cd src && grep -r s ..", "grep -r s secrets",
				"git show HEAD:secrets/deep/key", "git diff HEAD -- secrets", "scp -r . host.example:",
			},
			[]string{
				"go build ./...", "go test ./...", "git status", "git diff", "git log", "ls", "ls -R", "find . -name '*.go'", "grep -r s src", "rg s src conf", "tar c src", "cp -r src out/src", "grep s *.go",
				"find src | xargs cat", "git add .", "git commit -am x", "make", "du -sh .", "git grep s src",
			},
		},
		{"deny *(path:**/*.pem)", []string{"grep -r s .", "rg s conf", "tar c conf/tls", "cp -r conf out/c"}, []string{"grep -r s src", "rg s secrets", "ls -R", "tar c out"}},
		{"deny *(path:**/*.key)", nil, []string{"grep -r s .", "rg s", "tar c ."}}, // there is no such file
		{"ask *(path:conf/tls/server.pem)", []string{"rg s", "grep -r s conf"}, []string{"grep -r s src"}},
	} {
		floor := w.floor(t, permit.Options{Sandboxed: true, Mode: permit.Permissive, Rules: rules(t, c.rule)})
		heard := func(e *permit.Explanation) bool {
			for _, o := range e.Opinions {
				if o.By == "rule "+c.rule {
					return true
				}
			}
			return false
		}
		for i, command := range append(c.reaches, c.not...) {
			e := shell(t, floor, strings.ReplaceAll(command, "TMP", w.temp))
			if want := i < len(c.reaches); heard(e) != want {
				t.Errorf("%s: %s: the rule speaks %v, want %v\n%s", c.rule, command, !want, want, e)
			}
		}
	}
	floor := w.floor(t, permit.Options{Sandboxed: true, Rules: rules(t, "deny *(path:secrets/**)")})
	e := floor.Explain(t.Context(), "grep", input(t, map[string]any{"pattern": "x"}))
	expect(t, e, belay.ToolDeny, "rule")
	if !strings.Contains(e.Reason, ". contains secrets, and the rule for that path says deny") {
		t.Errorf("the reason does not say what is reached: %s", e.Reason)
	}
	expect(t, file(t, floor, "grep", "."), belay.ToolDeny, "rule")
	expect(t, file(t, floor, "grep", "src"), belay.ToolPass, "")
	expect(t, file(t, floor, "list", "."), belay.ToolPass, "")
	expect(t, floor.Explain(t.Context(), "files__read", input(t, map[string]any{"path": "secrets/key"})), belay.ToolDeny, "rule")
	outside := w.floor(t, permit.Options{Sandboxed: true, Rules: rules(t, fmt.Sprintf("deny *(path:%s/x/**)", w.outside))})
	expect(t, shell(t, outside, "cp -r "+w.outside+" out"), belay.ToolAsk, "protection shell.outside") // the directory x of the rule does not exist
}
