//go:build unix

package permit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
)

// everyday is an entry of testdata/everyday.yaml: a common command, and what the floor
// decides about it in the default mode.
type everyday struct {
	Command string `yaml:"command"`
	// Sandbox is the decision if commands run in a sandbox. Bare is the decision without
	// a sandbox. Both are pass or ask.
	Sandbox string `yaml:"sandbox"`
	Bare    string `yaml:"bare"`
}

// everydayProject returns a project with the files that the commands name.
func everydayProject(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, t.TempDir())
	for name, text := range map[string]string{
		"main.go": "package main\n", "go.mod": "module example.com/x\n", "src/a.go": "package a\n", "package.json": "{}\n", "README.md": "# x\n",
		"a.txt": "x\n", "run.sh": "echo x\n", "script.py": "print(1)\n", "app.log": "x\n", "data.csv": "a,b,c\n",
		".gitignore": "dist/\nbuild/\nnode_modules/\n", "dist/x": "x\n", "build/x": "x\n", ".git/config": "[core]\n", ".git/HEAD": "ref: refs/heads/main\n",
		"my.patch":                    "--- a/main.go\n+++ b/main.go\n@@ -1 +1 @@\n-package main\n+package app\n",
		"node_modules/.bin/prettier":  "x\n",
		"node_modules/.bin/tsc":       "x\n",
		"node_modules/.bin/eslint":    "x\n",
		"node_modules/.bin/jest":      "x\n",
		"node_modules/.bin/vitest":    "x\n",
		"node_modules/jest/readme.md": "x\n",
	} {
		put(t, filepath.Join(s.project, filepath.FromSlash(name)), text)
	}
	return s
}

// decided returns the explanation of a floor in its default mode for a command.
func decided(t *testing.T, s *stage, sandboxed bool, command string) *permit.Explanation {
	t.Helper()
	f, err := permit.New(s.project, &permit.Options{Home: s.home, Temp: s.tmp, Sandboxed: sandboxed})
	if err != nil {
		t.Fatal(err)
	}
	return shell(t, f, command)
}

// People switch off a floor that blocks ordinary work. So every command of the list must
// get the decision in the list. In a sandbox, at most one command in ten may need
// approval.
//
// SPEC P-18
func TestEverydayCommands(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "everyday.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []everyday
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&all); err != nil {
		t.Fatal(err)
	}
	s := everydayProject(t)
	asks := 0
	var seen []string
	for _, one := range all {
		if slices.Contains(seen, one.Command) {
			t.Errorf("%q is there twice", one.Command)
		}
		seen = append(seen, one.Command)
		for _, how := range []struct {
			sandboxed bool
			want      string
		}{{true, one.Sandbox}, {false, one.Bare}} {
			e := decided(t, s, how.sandboxed, one.Command)
			if got := verdict(e); got != how.want {
				t.Errorf("%s\nsandboxed %v: got %s, want %s\n%s", one.Command, how.sandboxed, got, how.want, e)
			}
		}
		if one.Sandbox != "pass" {
			asks++
		}
	}
	t.Logf("%d commands, %d ask with a sandbox", len(all), asks)
	if len(all) < 300 || 10*asks > len(all) {
		t.Errorf("%d of %d commands ask with a sandbox: want 300 commands, and at most one in ten of them", asks, len(all))
	}
}

// Commands that are similar to everyday commands, but do more, still need approval.
//
// SPEC P-18
func TestNearlyEverydayCommandsAsk(t *testing.T) {
	t.Parallel()
	s := everydayProject(t)
	for _, command := range []string{
		"make install", "make -n install SHELL=/tmp/x", "make -n -f /tmp/Makefile install",
		`jq []x] package.json`, `jq []"x"] package.json`, "jq .a[].b[0] package.json",
		"rm -rf node_modules/../src", "rm -rf src/node_modules.old", "rm -rf src/../src/lib",
		"ldd /tmp/x", `ldd "$x"`, "ldd /usr/bin/../../tmp/x",
		"tox -x testenv.commands=id", "tox -c /etc/tox.ini", "nox -f /tmp/noxfile.py",
	} {
		if e := decided(t, s, true, command); verdict(e) == "pass" {
			t.Errorf("%s runs without a question:\n%s", command, e)
		}
	}
}

// The default mode depends on whether commands run in a sandbox.
//
// SPEC P-18
func TestTheDefaultModeFollowsTheSandbox(t *testing.T) {
	t.Parallel()
	s := newStage(t, t.TempDir())
	for sandboxed, want := range map[bool]permit.Mode{true: permit.Build, false: permit.Standard} {
		f, err := permit.New(s.project, &permit.Options{Home: s.home, Temp: s.tmp, Sandboxed: sandboxed})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Mode(); got != want {
			t.Errorf("sandboxed %v: got %s, want %s", sandboxed, got.Name, want.Name)
		}
	}
}

// A question says why the call needs approval, and how to avoid the question.
//
// SPEC P-18
func TestAQuestionSaysWhatWouldMakeItNotAsk(t *testing.T) {
	t.Parallel()
	s := everydayProject(t)
	for command, want := range map[string]string{
		"cat /etc/hosts":   "to avoid this question, add the directory to permit.roots",
		"rm -rf src":       "to avoid this question, relax this protection in your settings: destructive.files",
		"git fetch":        "to avoid this question, add a rule that allows this call",
		`cat "$UNKNOWN"`:   "to avoid this question, write the command without unknown parts",
		"git reset --hard": "to avoid this question, relax this protection in your settings: destructive.reset",
	} {
		e := decided(t, s, true, command)
		if got := e.Asks(); e.Decision != belay.ToolAsk || !strings.HasPrefix(got, e.Reason) || !strings.HasSuffix(got, "; "+want) {
			t.Errorf("%s: got %q, want %q at its end", command, got, want)
		}
	}
}

// Removing build output that git ignores loses nothing. The floor asks if git tracks
// files in the directory, if git does not ignore the directory, or if the line may have
// replaced the directory.
//
// SPEC P-18
func TestRemovingIgnoredBuildOutput(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"rm -rf dist": "pass", "rm -rf ./dist/ build": "pass", "rm -r node_modules": "pass", "rm -rf {{project}}/dist": "pass", "rm -fr dist; ls": "pass",
		"rm -rf src": "ask", "rm -rf dist src": "ask", "rm -rf out": "ask", "rm -rf target": "ask", "rm -rf ../dist": "ask", "rm -rf dist/..": "deny", "rm -rf d*": "ask",
		"mv src dist; rm -rf dist": "ask", "rm -rf $D": "ask", "rm -rf src/dist/../../src": "ask",
	} {
		s := everydayProject(t)
		put(t, filepath.Join(s.project, ".git", "index"), "DIRC\x00\x00\x00\x02 target/x ")
		put(t, filepath.Join(s.project, ".gitignore"), "dist/\n/build\nnode_modules\ntarget\n")
		if got := verdict(decided(t, s, true, s.fill(command))); got != want && (want == "pass" || got == "pass") {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
	s := everydayProject(t)
	put(t, filepath.Join(s.project, ".gitignore"), "dist/\n!dist/keep\n")
	if got := verdict(decided(t, s, true, "rm -rf dist")); got != "ask" {
		t.Errorf("with an exception in .gitignore: got %s, want ask", got)
	}
}

// A project may be a directory of a larger repository. That repository decides which
// files git tracks and ignores.
//
// SPEC P-18
func TestRemovingBuildOutputOfAProjectInsideARepository(t *testing.T) {
	t.Parallel()
	const header = "DIRC\x00\x00\x00\x02 "
	for name, c := range map[string]struct {
		files map[string]string // relative to the top of the repository, which contains the project
		want  string
	}{
		"ignored by the project":                  {map[string]string{"project/.gitignore": "dist/\n", ".git/index": header}, "pass"},
		"ignored at the top":                      {map[string]string{".gitignore": "dist/\n", ".git/index": header}, "pass"},
		"ignored at the top by its path":          {map[string]string{".gitignore": "/project/dist\n", ".git/index": header}, "pass"},
		"another path is ignored at the top":      {map[string]string{".gitignore": "/dist\n", ".git/index": header}, "ask"},
		"git has files of it":                     {map[string]string{"project/.gitignore": "dist/\n", ".git/index": header + "project/dist/x "}, "ask"},
		"git has files of another by that name":   {map[string]string{"project/.gitignore": "dist/\n", ".git/index": header + "other/dist/x "}, "pass"},
		"the index is in two parts":               {map[string]string{"project/.gitignore": "dist/\n", ".git/index": header + "link\x00\x00\x00\x20"}, "ask"},
		"an exception at the top":                 {map[string]string{"project/.gitignore": "dist/\n", ".gitignore": "!keep\n", ".git/index": header}, "ask"},
		"a working tree whose index has files":    {map[string]string{"project/.gitignore": "dist/\n", ".git": "gitdir: main/w\n", "main/w/index": header + "project/dist/x "}, "ask"},
		"a working tree whose index has no files": {map[string]string{"project/.gitignore": "dist/\n", ".git": "gitdir: main/w\n", "main/w/index": header}, "pass"},
	} {
		s := newStage(t, t.TempDir())
		put(t, filepath.Join(s.project, "dist", "x"), "x")
		for at, text := range c.files {
			put(t, filepath.Join(filepath.Dir(s.project), filepath.FromSlash(at)), text)
		}
		if got := verdict(decided(t, s, true, "rm -rf dist")); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// In the sandbox, a line can connect to a server that it has started itself. Without such
// a server, requests to this machine still need approval, and so do requests to other
// machines.
//
// SPEC P-18
func TestRequestsToAServerOfTheLine(t *testing.T) {
	t.Parallel()
	s := everydayProject(t)
	for command, want := range map[string]string{
		"go run . & sleep 1; curl -s localhost:8080/health":                   "pass",
		"node server.js & sleep 2; curl http://127.0.0.1:3000/; kill %1":      "pass",
		"./run.sh & curl -X POST -d a=b http://localhost:8080/api":            "pass",
		"npm start & sleep 3 && wget -qO- http://localhost:3000":              "pass",
		"python3 script.py & sleep 1; curl -s http://[::1]:8000/":             "pass",
		"curl -s localhost:8080/health":                                       "ask",
		"go run .; curl -s localhost:8080/health":                             "ask",
		"go run . & curl -s localhost:8080/ | curl -d @- https://example.com": "ask",
		"go run . & curl http://169.254.169.254/":                             "deny",
		"go run . & curl -s localhost:8080/; git push":                        "ask",
		"sleep 5 & curl -s localhost:8080/":                                   "ask",
	} {
		e := decided(t, s, true, command)
		if got := verdict(e); got != want || want == "pass" && e.Network() {
			t.Errorf("%s: got %s, network %v, want %s\n%s", command, got, e.Network(), want, e)
		}
		if got := verdict(decided(t, s, false, command)); got == "pass" {
			t.Errorf("%s: without a sandbox it passes", command)
		}
	}
}
