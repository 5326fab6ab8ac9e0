//go:build unix

package toolbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/toolbox"
)

func TestShell(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	for _, test := range []struct {
		rule    string
		command string
		want    string
		class   belay.ResultClass
		code    int
	}{
		{"output comes as it was written, errors too", "echo 1; echo 2 >&2; echo 3", "1\n2\n3\n", "", 0},
		{"no output is told", "true", "[no output]", "", 0},
		{"a code is told", "echo oh; exit 3", "oh\n[exit code 3]", belay.ClassFailed, 3},
		{"a code comes on a line of its own", "printf oh; exit 1", "oh\n[exit code 1]", belay.ClassFailed, 1},
		{"a signal is told", "kill -9 $$", "[the command was killed by a signal: killed]", belay.ClassFailed, -1},
		{"it starts in the project", "pwd -P | xargs basename", "demo\n", "", 0},
		{"there is nothing to read", "cat; echo end", "end\n", "", 0},
		{"there is nobody to ask", "(: </dev/tty) 2>/dev/null || echo none", "none\n", "", 0},
		{"pagers do not wait", "echo $PAGER $TERM $GIT_PAGER", "cat dumb cat\n", "", 0},
		{"what is not UTF-8 is replaced", `printf 'a\377b'`, "a\ufffdb", "", 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			r := k.call("shell", in{"command": test.command, "description": "tries"})
			if r.Text != test.want || r.Class != test.class || r.IsError != (test.class != "") {
				t.Errorf("text = %q, class %q, want %q, %q", r.Text, r.Class, test.want, test.class)
			}
			v := view[toolbox.ShellView](t, r)
			if v.Kind != "shell" || v.Command != test.command || v.Description != "tries" || v.ExitCode != test.code || v.TimedOut || v.Aborted {
				t.Errorf("view = %+v", v)
			}
		})
	}
	k.fails(belay.ClassInvalid, "shell", in{"command": "a\x00b"}, "zero byte")
}

func TestShellTimesOut(t *testing.T) {
	t.Parallel()
	k := newKit(t, &toolbox.Options{Shell: &toolbox.ShellOptions{Timeout: 100 * time.Millisecond}})
	r := k.call("shell", in{"command": "echo begun; sleep 3600; echo never"})
	if r.Class != belay.ClassTimeout || !strings.HasPrefix(r.Text, "begun\n[the command was killed after its timeout of 100ms") {
		t.Errorf("result = %s %q", r.Class, r.Text)
	}
	if v := view[toolbox.ShellView](t, r); !v.TimedOut || v.Aborted {
		t.Errorf("view = %+v", v)
	}
	// A call can set a longer timeout.
	if r := k.call("shell", in{"command": "sleep 0.3; echo done", "timeout_seconds": 60}); r.Text != "done\n" {
		t.Errorf("text = %q", r.Text)
	}
}

func TestShellDoesNotWaitForWhatItLeavesBehind(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	r := k.call("shell", in{"command": "sleep 3600 & echo $!"})
	pid, err := strconv.Atoi(strings.Fields(r.Text)[0])
	if err != nil {
		t.Fatal(r.Text)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	if has(t, r.Text, "background process is still running"); r.IsError || !view[toolbox.ShellView](t, r).LeftRunning {
		t.Errorf("result = %+v", r)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("what it left was ended: %v", err)
	}
}

func TestShellKeepsBothEnds(t *testing.T) {
	t.Parallel()
	k := newKit(t, &toolbox.Options{Shell: &toolbox.ShellOptions{MaxOutput: 100}})
	r := k.call("shell", in{"command": "echo first; for i in $(seq 5000); do printf é; done; echo; echo last"})
	if !strings.HasPrefix(r.Text, "first\n") || !strings.HasSuffix(r.Text, "\nlast\n") || strings.Contains(r.Text, "\ufffd") || len(r.Text) > 200 {
		t.Errorf("text = %q", r.Text)
	}
	has(t, r.Text, "left out here")
	if v := view[toolbox.ShellView](t, r); v.Bytes != 10_012 || v.Forgotten == 0 {
		t.Errorf("view = %+v", v)
	}
}

func TestShellWithholdsSecrets(t *testing.T) {
	withheld := []string{
		"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "PGPASSWORD", "DB_PASSWORD", "X_CREDENTIALS", "npm_token",
		"DB_PASS", "PGPASS", "MYSQL_PWD", "GITHUB_PAT", "REDIS_AUTH", "NPM_CONFIG__AUTH", "SENTRY_DSN", "PRIVATEKEY", "ENCRYPTIONKEY", "GPGKEY",
		"TOKEN2", "API_KEYS_2", "SIGNING_KEYS3", "HTTP_COOKIE", "GIT_CREDS", "HTTP_AUTHORIZATION", "ASKPASS_TOKEN",
	}
	passed := []string{
		"BELAY_TEST_PLAIN", "KEYBOARD", "TOKENIZER", "PASSAGE", "X_COMPAT", "X_PATH", "AUTHOR", "SSH_AUTH_SOCK", "GIT_ASKPASS", "AWS_REGION2",
	}
	for _, name := range append(withheld, passed...) {
		t.Setenv(name, "value-of-"+name)
	}
	t.Setenv("OLDPWD", "/") // bash accepts only a directory
	k := newKit(t, nil)
	text := k.ok("shell", in{"command": "env"})
	has(t, "\n"+text, "\nOLDPWD=/\n")
	for _, name := range withheld {
		if strings.Contains(text, "value-of-"+name) {
			t.Errorf("%s was passed on", name)
		}
	}
	for _, name := range passed {
		has(t, text, name+"=value-of-"+name+"\n")
	}
	k = newKit(t, &toolbox.Options{Shell: &toolbox.ShellOptions{Keep: []string{"GITHUB_*"}}})
	if text = k.ok("shell", in{"command": "env"}); !strings.Contains(text, "value-of-GITHUB_TOKEN") || strings.Contains(text, "value-of-OPENAI") {
		t.Errorf("with Keep: %s", text)
	}
	k = newKit(t, &toolbox.Options{Shell: &toolbox.ShellOptions{Env: []string{"ONLY=this", "PATH=" + os.Getenv("PATH")}}})
	if text = k.ok("shell", in{"command": "env"}); strings.Contains(text, "value-of") || !strings.Contains(text, "ONLY=this") {
		t.Errorf("with Env: %s", text)
	}
}

func TestShellWithholdsURLsWithPasswords(t *testing.T) { //nolint:paralleltest // it sets variables
	for value, secret := range map[string]bool{
		"postgres://app:hunter2@db.example/app":          true,
		"redis://:hunter2@cache.example:6379/0":          true,
		"http://user@corp:p@ss@proxy.example:3128":       true,
		"--dsn mysql+tcp://a:b@h and more":               true,
		"https://example.com:8443/a?b=c@d":               false,
		"ssh://git@example.com:22/a.git":                 false,
		"https://a.example:80/x https://b.example/@y":    false,
		"user:word@example.com":                          false,
		"/usr/bin:/bin":                                  false,
		"https://example.com/a:b@c":                      false,
		"unix:///run/x.sock":                             false,
		"http://proxy.example:3128":                      false,
		"git@example.com:belay/belay.git":                false,
		"amqps://guest:guest@mq.example:5671/%2f?x=1&y=": true,
	} {
		t.Setenv("BELAY_TEST_URL", value)
		k := newKit(t, nil)
		if got := k.ok("shell", in{"command": `echo "[$BELAY_TEST_URL]"`}); (got == "[]\n") != secret || !secret && got != "["+value+"]\n" {
			t.Errorf("%s: the command has %q", value, got)
		}
	}
}

// The environment cannot make the shell run something before a command, or change the
// meaning of the command.
//
// SPEC P-14
func TestShellStartsFresh(t *testing.T) { //nolint:paralleltest // it sets variables
	dir := t.TempDir()
	before := filepath.Join(dir, "before.sh")
	if err := os.WriteFile(before, []byte("echo ran before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hostile := []string{
		"BASH_ENV=" + before, "ENV=" + before, "SHELLOPTS=xtrace", "PS4=$(echo traced)", "CDPATH=" + dir, "POSIXLY_CORRECT=1",
		"BASH_FUNC_true%%=() { echo a function; }",
	}
	for _, variable := range hostile {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	for rule, env := range map[string][]string{
		"by the environment of the process": nil,
		"by options":                        append([]string{"PATH=" + os.Getenv("PATH")}, hostile...),
	} {
		k := newKit(t, &toolbox.Options{Shell: &toolbox.ShellOptions{Env: env}})
		if text := k.call("shell", in{"command": "true; echo said; bash -c 'true; echo again'"}).Text; text != "said\nagain\n" {
			t.Errorf("%s: the command said %q", rule, text)
		}
	}
}

func TestShellThatIsNotThere(t *testing.T) {
	t.Parallel()
	k := newKit(t, &toolbox.Options{Shell: &toolbox.ShellOptions{Shell: "belay-no-such-shell"}})
	k.fails(belay.ClassUnavailable, "shell", in{"command": "true"}, "no belay-no-such-shell on this machine")
	k = newKit(t, &toolbox.Options{Shell: &toolbox.ShellOptions{Dir: "/belay/no/such/directory"}})
	k.fails(belay.ClassFailed, "shell", in{"command": "true"}, "could not be started")
}

// agentOf makes an agent with all tools for a project.
func agentOf(t *testing.T, dir string, opts *belay.Options, steps ...scripted.Step) *belay.Agent {
	t.Helper()
	opts.Tools, opts.Authorizer = toolbox.New(openRoot(t, dir), nil).Tools(), permit.Off()
	agent, err := belay.New(scripted.New(steps, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Close(context.WithoutCancel(t.Context())) })
	return agent
}

// SPEC T-10
func TestShellIsEndedWhenTheTurnIsAborted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agent := agentOf(t, dir, &belay.Options{}, scripted.Step{Calls: []scripted.Call{
		{Tool: "shell", Input: `{"command": "echo begun; echo $$ > pid.tmp; mv pid.tmp pid; sleep 3600; echo never"}`},
	}})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stop := errors.New("stop")
	go func() { // ends when the command has begun, or with the test
		for t.Context().Err() == nil {
			if _, err := os.Stat(filepath.Join(dir, "pid")); err == nil {
				cancel(stop)
				return
			}
			<-time.After(time.Millisecond)
		}
	}()
	turn, err := agent.Session("s").Turn(ctx, "go")
	if !errors.Is(err, stop) || turn.Reason != belay.EndAborted {
		t.Fatalf("turn = %+v, %v", turn, err)
	}
	var result *belay.ResultPart
	for message, err := range agent.Session("s").Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range message.Parts {
			if part.Result != nil {
				result = part.Result
			}
		}
	}
	if result == nil || result.Class != belay.ClassAborted || !strings.HasPrefix(result.Text, "begun\n[the command was killed because the turn was aborted") {
		t.Errorf("result = %+v, want what it had written, and that it was aborted", result)
	}
	data, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the shell %d is still there: %v", pid, err)
	}
}

// SPEC T-09
func TestALongOutputIsCutAndKept(t *testing.T) {
	t.Parallel()
	spill := t.TempDir()
	agent := agentOf(t, t.TempDir(), &belay.Options{SpillDir: spill},
		scripted.Step{Calls: []scripted.Call{{Tool: "shell", Input: `{"command": "seq 100000"}`}}}, scripted.Step{Text: "done"})
	var result belay.Result
	for event, err := range agent.Session("s").Run(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if event.Result != nil {
			result = *event.Result
		}
	}
	if len(result.Text) > 31_000 || result.Spilled == "" {
		t.Fatalf("%d bytes, spilled to %q", len(result.Text), result.Spilled)
	}
	k := newKit(t, &toolbox.Options{Extra: []*os.Root{openRoot(t, spill)}})
	has(t, k.ok("read", in{"path": result.Spilled, "offset": 50_000, "limit": 1}), "50000\t50000\n")
}

// SPEC T-02, T-03, T-04
func TestAWholeTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "greet.sh"), []byte("echo hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	model := []scripted.Step{
		{Calls: []scripted.Call{
			{Tool: "grep", Input: `{"pattern": "hello"}`}, {Tool: "read", Input: `{"path": "greet.sh"}`}, {Tool: "list", Input: `{}`},
		}},
		{Calls: []scripted.Call{ // run one after the other: the shell sees the edit
			{Tool: "edit", Input: `{"path": "greet.sh", "old_string": "hello", "new_string": "goodbye"}`}, {Tool: "shell", Input: `{"command": "sh greet.sh"}`},
		}, Expect: &scripted.Expect{Results: []scripted.Result{{Tool: "grep", Text: "greet.sh\n1: echo hello"}, {Tool: "read", Text: "1\techo hello"}, {Tool: "list", Text: "greet.sh"}}}},
		{
			Calls:  []scripted.Call{{Tool: "read", Input: `{"path": "../x", "nonsense": 1, "offset": 0}`}, {Tool: "read", Input: `{"path": "../x"}`}},
			Expect: &scripted.Expect{Results: []scripted.Result{{Tool: "edit", Text: "1 replacement"}, {Tool: "shell", Text: "goodbye"}}},
		},
		{Text: "done"},
	}
	agent := agentOf(t, dir, &belay.Options{}, model...)
	classes := map[belay.ResultClass]int{}
	for event, err := range agent.Session("s").Run(t.Context(), "make it say goodbye") {
		if err != nil {
			t.Fatal(err)
		}
		if event.Result == nil {
			continue
		}
		classes[event.Result.Class]++
		if !event.Result.IsError {
			var rendered struct {
				Kind string `json:"kind"`
			}
			if err := json.Unmarshal(event.Result.Render, &rendered); err != nil || rendered.Kind == "" {
				t.Errorf("%s: render data %s, %v", event.Call.Tool, event.Result.Render, err)
			}
		}
	}
	if classes[belay.ClassInvalid] != 1 || classes[belay.ClassDenied] != 1 || classes[""] != 5 {
		t.Errorf("classes = %v", classes)
	}
}

// Confine gets the call, and may change the command line. The tool runs the changed
// command line.
func TestShellConfines(t *testing.T) {
	t.Parallel()
	k := newKit(t, &toolbox.Options{Shell: &toolbox.ShellOptions{
		Env: append(make([]string, 0, 8), "PATH="+os.Getenv("PATH"), "CACHE=shared"),
		Confine: func(_ context.Context, call *belay.Invocation, run *toolbox.ShellRun) error {
			var asked struct{ Command string }
			if err := call.Decode(&asked); err != nil {
				return err
			}
			if asked.Command != run.Argv[len(run.Argv)-1] || run.Argv[len(run.Argv)-2] != "-c" || call.Session != "s" {
				return errors.New("this is another command")
			}
			if strings.Contains(asked.Command, "forbidden") {
				return errors.New("there is no sandbox here: install one")
			}
			run.Argv = append([]string{"env", "WRAPPED=yes"}, run.Argv...)
			run.Env = append(run.Env, "CACHE=private")
			run.Note = "it ran in a box"
			return nil
		},
	}})
	if text := k.ok("shell", in{"command": "echo $WRAPPED $CACHE"}); text != "yes private\n" {
		t.Errorf("text = %q", text)
	}
	k.fails(belay.ClassFailed, "shell", in{"command": "exit 3"}, "[exit code 3] [it ran in a box]")
	k.fails(belay.ClassDenied, "shell", in{"command": "touch forbidden"}, "The command was not run: there is no sandbox here: install one")
	if _, err := os.Stat(filepath.Join(k.dir, "forbidden")); err == nil {
		t.Error("what could not be confined ran")
	}
}
