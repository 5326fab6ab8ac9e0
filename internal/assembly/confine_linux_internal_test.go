package assembly

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/sandbox"
)

// room is a project whose shell commands are confined as in the command line.
type room struct {
	t     *testing.T
	floor *Floor
	shell belay.Tool
	calls int
}

// newRoom makes a project with files. Its directory is not inside the temporary directory.
func newRoom(t *testing.T, user string, files map[string]string) *room {
	t.Helper()
	return newRoomIn(t, "build", user, files)
}

// newRoomIn makes a project with this mode.
func newRoomIn(t *testing.T, mode, user string, files map[string]string) *room {
	t.Helper()
	s := load(t, user, "BELAY_MODE="+mode)
	for name, text := range files {
		path := filepath.Join(s.Project, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		filetest.WriteProgram(t, path, text)
	}
	spill := SpillDir(s)
	if err := os.MkdirAll(spill, 0o700); err != nil {
		t.Fatal(err)
	}
	r := &room{t: t, floor: floorFor(t, s)}
	tools, closeTools, err := openTools(s, r.floor, nil, nil, spill)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = closeTools()
		if cache, err := privateCache(s.Project); err == nil {
			_ = os.RemoveAll(cache)
		}
	})
	for _, tool := range tools.Tools() {
		if tool.Declaration().Name == "shell" {
			r.shell = tool
		}
	}
	return r
}

// sandboxed skips the test if the sandbox of this machine does not enforce these limits.
func (r *room) sandboxed(limits ...sandbox.Limit) *room {
	r.t.Helper()
	for _, limit := range append(limits, sandbox.Writes) {
		if r.floor.box == nil || !r.floor.box.Holds(limit) {
			r.t.Skipf("NOT COVERED: the sandbox of this machine does not hold %s: %+v", limit, New(nil).MachineSandbox(r.t.Context()).Describe())
		}
	}
	return r
}

// run checks a command as in a turn. It runs the command even if the floor denies it.
func (r *room) run(command string) (belay.Authorization, belay.Result) {
	r.t.Helper()
	r.calls++
	input, err := json.Marshal(map[string]any{"command": command, "timeout_seconds": 240})
	if err != nil {
		r.t.Fatal(err)
	}
	call := toolCall(r.t, strings.Repeat("i", r.calls), "shell", json.RawMessage(input))
	a, err := r.floor.Authorize(r.t.Context(), call)
	if err != nil {
		r.t.Fatal(err)
	}
	result, err := r.shell.Call(context.WithoutCancel(r.t.Context()), &belay.Invocation{ID: call.ID(), Tool: "shell", Session: "s", Turn: "t", Input: call.Input()})
	if err != nil {
		r.t.Fatal(err)
	}
	return a, result
}

// mustRun runs a command that the floor must allow and that must succeed.
func (r *room) mustRun(command string) string {
	r.t.Helper()
	a, result := r.run(command)
	if a.Decision != belay.ToolPass || result.IsError {
		r.t.Fatalf("%s: %s by %s (%s); %s: %s", command, a.Decision, a.By, a.Reason, result.Class, result.Text)
	}
	return result.Text
}

// outside returns a directory that no confined command may change. It is not in the project
// and not in the temporary directory.
func outside(t *testing.T) string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(home, "belay-test-") //nolint:usetesting // a temporary one could be changed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// A program of the project is in zone 2 and runs without approval in build mode. The floor
// cannot see what it does, but the sandbox confines it.
//
// SPEC P-12
func TestSandboxHoldsWhatTheParserCannotSee(t *testing.T) {
	t.Parallel()
	target := outside(t)
	r := newRoom(t, "", map[string]string{
		"out.sh":  "#!/bin/sh\necho inside > made.txt\necho outside > " + target + "/made.txt\n",
		"hook.sh": "#!/bin/sh\nmkdir -p .git/hooks && echo evil > .git/hooks/pre-commit\n",
		"own.sh":  "#!/bin/sh\necho 'mode: permissive' > belay.yaml\n",
	}).sandboxed(sandbox.Missing)
	a, result := r.run("./out.sh")
	if a.Decision != belay.ToolPass || !result.IsError || !strings.Contains(result.Text, "the command ran in a sandbox: it can change only the project and temporary files, and there is no network") {
		t.Errorf("%+v, %s: %s", a, result.Class, result.Text)
	}
	if text, err := os.ReadFile(filepath.Join(r.floor.settings.Project, "made.txt")); err != nil || string(text) != "inside\n" {
		t.Errorf("the project could not be written: %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(target, "made.txt")); err == nil {
		t.Error("something outside was written")
	}
	for _, script := range []string{"./hook.sh", "./own.sh"} {
		if a, result := r.run(script); a.Decision != belay.ToolPass || !result.IsError {
			t.Errorf("%s: %+v, %s", script, a, result.Text)
		}
	}
	for _, name := range []string{".git", config.Name} {
		if info, err := os.Lstat(filepath.Join(r.floor.settings.Project, name)); err == nil {
			t.Errorf("%s was made: %v", name, info.Mode())
		}
	}
	r.mustRun("git init -q . && git status --short")
	if _, result := r.run("./hook.sh"); !result.IsError {
		t.Errorf("a repository that is there has its hooks changed: %s", result.Text)
	}
}

const tinyModule = "module example.com/tiny\n\ngo 1.24\n"

const tinyTest = `package tiny

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer server.Close()
	answer, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "hello" {
		t.Fatal(string(text), err)
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
`

// Builds and tests work inside the sandbox, with a server on the loopback interface. They
// leave nothing in the user's caches.
//
// SPEC P-12
func TestBuildsWorkInTheSandbox(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "", map[string]string{"go.mod": tinyModule, "tiny.go": "package tiny\n", "tiny_test.go": tinyTest}).sandboxed(sandbox.Loopback)
	// Build outside the sandbox first: inside, the standard library would be compiled
	// again.
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", "tiny.test", ".")
	build.Dir, build.Env = r.floor.settings.Project, append(os.Environ(), "CGO_ENABLED=0") // what other steps have compiled
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text := r.mustRun("go build ./... && ./tiny.test -test.v"); !strings.Contains(text, "--- PASS: TestServer") {
		t.Error(text)
	}
	cache, err := privateCache(r.floor.settings.Project)
	if err != nil {
		t.Fatal(err)
	}
	if text := r.mustRun("go env GOCACHE && echo $XDG_CACHE_HOME"); text != filepath.Join(cache, "go-build")+"\n"+cache+"\n" {
		t.Errorf("caches are at %s, want %s", text, cache)
	}
	if info, err := os.Stat(cache); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

// A command that changes the machine runs outside the sandbox if the floor understood the
// command, because a person or a rule has allowed that. A command that the floor did not
// understand stays inside.
//
// SPEC P-12
func TestWhatWasLetOutRunsOutside(t *testing.T) {
	t.Parallel()
	target := outside(t)
	r := newRoom(t, "", map[string]string{"commands": "echo unknown > " + target + "/unknown.txt\n"}).sandboxed()
	a, result := r.run("echo known > " + target + "/known.txt")
	if a.Decision != belay.ToolAsk || result.IsError {
		t.Errorf("%+v, %s", a, result.Text)
	}
	if _, err := os.Stat(filepath.Join(target, "known.txt")); err != nil {
		t.Errorf("it was not let out: %v", err)
	}
	a, result = r.run(`eval "$(cat commands)"`)
	if a.Decision != belay.ToolAsk || !result.IsError {
		t.Errorf("%+v, %s", a, result.Text)
	}
	if _, err := os.Stat(filepath.Join(target, "unknown.txt")); err == nil {
		t.Error("what was not understood was let out")
	}
	// If the floor understands only one part of a command, the other parts stay inside.
	a, result = r.run("touch " + target + "/half.txt; sh commands")
	if a.Decision != belay.ToolAsk || !result.IsError {
		t.Errorf("%+v, %s", a, result.Text)
	}
	for _, name := range []string{"half.txt", "unknown.txt"} {
		if _, err := os.Stat(filepath.Join(target, name)); err == nil {
			t.Errorf("%s was made: code that nobody has read was let out", name)
		}
	}
}

// Confined commands can change the directories in the user's settings. A command that was
// not checked gets the strictest confinement.
func TestSandboxSettings(t *testing.T) {
	t.Parallel()
	target := outside(t)
	r := newRoom(t, "sandbox: {write: ["+target+"]}\n", map[string]string{"out.sh": "#!/bin/sh\necho x > " + target + "/made.txt\n"}).sandboxed()
	r.mustRun("./out.sh")
	a, result := r.run("touch " + target + "/asked.txt") // needs approval, but does not have to leave the sandbox
	if a.Decision != belay.ToolAsk || result.IsError {
		t.Errorf("%+v, %s", a, result.Text)
	}
	if runs := r.floor.Confinement(r.floor.Explain(t.Context(), "shell", json.RawMessage(`{"command":"touch `+target+`/asked.txt"}`))); runs != "in the sandbox, with network" && runs != "in the sandbox, without network" {
		t.Errorf("it runs %s, which may write there", runs)
	}
	input := json.RawMessage(`{"command":"echo x > ` + outside(t) + `/unjudged.txt"}`)
	if result, err := r.shell.Call(t.Context(), &belay.Invocation{ID: "unjudged", Tool: "shell", Input: input}); err != nil || !result.IsError {
		t.Errorf("a call that nobody judged was let out: %v, %s", err, result.Text)
	}
	r = newRoom(t, "sandbox: {mode: off}\n", map[string]string{"out.sh": "#!/bin/sh\necho x > " + target + "/off.txt\n"})
	if a, result := r.run("./out.sh"); a.Decision != belay.ToolAsk || result.IsError {
		t.Errorf("without a sandbox a program of the project is zone 3: %+v, %s", a, result.Text)
	}
	if line := r.floor.relaxed(); !strings.Contains(line, "the sandbox is off") {
		t.Errorf("it is not told: %q", line)
	}
}

// If the settings require a sandbox and there is none, commands are denied.
func TestSandboxIsRequired(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "sandbox: {mode: require}\n", nil)
	r.floor.box = nil
	if _, result := r.run("echo x > made.txt"); result.Class != belay.ClassDenied || !strings.Contains(result.Text, "requires a sandbox, and this machine has none: install bubblewrap") {
		t.Errorf("%s: %s", result.Class, result.Text)
	}
	if _, err := os.Stat(filepath.Join(r.floor.settings.Project, "made.txt")); err == nil {
		t.Error("it ran")
	}
}

// Belay does not use a cache directory that another user may have prepared.
func TestPrivateCacheIsPrivate(t *testing.T) {
	for name, prepare := range map[string]func(dir string) error{
		"one that others may use": func(dir string) error { return os.Mkdir(dir, 0o700|fs.ModePerm) },
		"a link":                  func(dir string) error { return os.Symlink(t.TempDir(), dir) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			dir, err := privateCache("/project")
			if err != nil {
				t.Fatal(err)
			}
			if again, err := privateCache("/project"); err != nil || again != dir {
				t.Errorf("the second time it is %s, %v", again, err)
			}
			if other, err := privateCache("/other"); err != nil || other == dir {
				t.Errorf("that of another project is %s, %v", other, err)
			}
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			if err := prepare(dir); err != nil {
				t.Fatal(err)
			}
			_ = os.Chmod(dir, 0o777)
			if _, err := privateCache("/project"); err == nil || !strings.Contains(err.Error(), "must be a private cache directory of this user") {
				t.Errorf("it is used: %v", err)
			}
		})
	}
}

// Downloads go into directories of this project. Only git and ssh can use the agent with
// the user's SSH keys.
//
// SPEC P-15
func TestNetworkIsForAPurpose(t *testing.T) {
	agent := filepath.Join(t.TempDir(), "agent")
	t.Setenv("SSH_AUTH_SOCK", agent)
	t.Setenv("GOMODCACHE", t.TempDir())
	r := newRoom(t, "", map[string]string{"go.mod": "module example.com/x\n"})
	for _, c := range []struct {
		command        string
		network, agent bool
	}{
		{"git push origin main", true, true},
		{"git pull --rebase && git status", true, true},
		{"git clone git@a.example:x/y.git", true, true},
		{"ssh a.example uptime", true, true},
		{"scp a.txt a.example:", true, true},
		{"rsync -a src a.example:x", true, true},
		{"npm install", true, false},
		{"pip install requests", true, false},
		{"go mod download", true, false},
		{"curl https://a.example", true, false},
		{"git push origin main && npm test", true, false},
		{"git pull; ./install.sh", true, false},
		{"git push origin main; npm install", true, false},
		{"git submodule foreach 'make'; git pull", true, false},
		{"git -c core.sshCommand=./evil pull", true, false},
		{"git push origin \"$X\"", true, false},
		{"python3 -c 'import socket'", r.floor.box == nil, false}, // in a sandbox it counts as code of the project
		{"go test ./...", false, false},
		{"ls", false, false},
	} {
		input, err := json.Marshal(map[string]any{"command": c.command})
		if err != nil {
			t.Fatal(err)
		}
		policy := r.floor.policy(r.floor.Explain(t.Context(), "shell", input))
		if policy.Network != c.network || (len(policy.Sockets) > 0) != c.agent {
			t.Errorf("%s: network %t, sockets %v, want network %t, agent %t", c.command, policy.Network, policy.Sockets, c.network, c.agent)
		}
		if below(os.Getenv("GOMODCACHE"), policy.Write) && !below(os.Getenv("GOMODCACHE"), []string{os.TempDir()}) {
			t.Errorf("%s: the user's modules can be changed: %v", c.command, policy.Write)
		}
	}
	if r.floor.box == nil {
		t.Skip("this machine has no sandbox")
	}
	cache, err := privateCache(r.floor.settings.Project)
	if err != nil {
		t.Fatal(err)
	}
	says := func(command, want string) {
		t.Helper()
		if _, result := r.run(command); !strings.Contains(result.Text, want) {
			t.Errorf("%s says %q, want %q in it", command, result.Text, want)
		}
	}
	says(`echo "modules $GOMODCACHE"`, "modules "+os.Getenv("GOMODCACHE"))
	says(`go mod download; echo "modules $GOMODCACHE"`, "modules "+filepath.Join(cache, "go-mod"))
	says(`echo "modules $GOMODCACHE, $GOPROXY"`, "modules "+filepath.Join(cache, "go-mod")+", file://"+os.Getenv("GOMODCACHE")+"/cache/download")
	says(`echo "crates $CARGO_HOME"`, "crates "+os.Getenv("CARGO_HOME"))
}
