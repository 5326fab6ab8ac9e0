//go:build unix

package toolbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/toolbox"
)

// newBackgroundKit is a project whose shell can start commands in the background.
func newBackgroundKit(t *testing.T, opts *toolbox.BackgroundOptions) (*kit, *toolbox.Background) {
	t.Helper()
	b := toolbox.NewBackground(opts)
	t.Cleanup(func() { _ = b.Close(t.Context()) })
	k := newKit(t, &toolbox.Options{Background: b})
	for _, tool := range b.Tools() {
		k.tools[tool.Declaration().Name] = tool
	}
	return k, b
}

// alive reports whether a process runs. The process is a child of a command, so nobody in
// this process waits for it.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return fields[0] != "Z" && fields[0] != "X"
}

// A command in the background is listed, its output is read piece by piece, and it is
// stopped with its children.
//
// SPEC U-03
func TestACommandInTheBackground(t *testing.T) {
	t.Parallel()
	k, b := newBackgroundKit(t, nil)
	started := k.callAs("s", "shell", in{"command": "sleep 3600 & echo $!; read -r word < pipe 2>/dev/null; mkfifo pipe; read -r word < pipe; echo heard $word; wait", "background": true, "description": "a server"})
	if started.IsError || !strings.Contains(started.Text, "[bg_1 is running]") {
		t.Fatalf("started = %+v", started)
	}
	pid, err := strconv.Atoi(strings.Fields(started.Text)[0])
	if err != nil || !alive(pid) {
		t.Fatalf("the output is %q, %v, want the number of a process that runs", started.Text, err)
	}
	if list := k.callAs("s", "shell_list", in{}); !strings.Contains(list.Text, "bg_1 is running; command: sleep 3600") {
		t.Errorf("list = %q", list.Text)
	}
	if other := k.callAs("other", "shell_output", in{"id": "bg_1"}); !other.IsError || other.Class != belay.ClassNotFound {
		t.Errorf("another session reads it: %+v", other)
	}
	if err := os.WriteFile(filepath.Join(k.dir, "pipe"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := k.callAs("s", "shell_output", in{"id": "bg_1", "wait_seconds": 60}); out.Text != "heard hello\n[bg_1 is running]" {
		t.Errorf("output = %q", out.Text)
	}
	if out := k.callAs("s", "shell_output", in{"id": "bg_1"}); out.Text != "[no new output]\n[bg_1 is running]" {
		t.Errorf("output = %q", out.Text)
	}
	if stopped := k.callAs("s", "shell_stop", in{"id": "bg_1"}); stopped.IsError || !strings.Contains(stopped.Text, "it was stopped") {
		t.Errorf("stopped = %+v", stopped)
	}
	if alive(pid) {
		t.Error("a child of the command is still running")
	}
	all := b.List("")
	if len(all) != 1 || all[0].Running || all[0].Description != "a server" || all[0].Ended.IsZero() {
		t.Errorf("list = %+v", all)
	}
	if text, err := b.Output("s", "bg_1"); err != nil || !strings.HasSuffix(text, "heard hello\n") {
		t.Errorf("output = %q, %v", text, err)
	}
}

// A command that fails at once says so in the result of shell.
func TestABackgroundCommandThatFails(t *testing.T) {
	t.Parallel()
	k, _ := newBackgroundKit(t, nil)
	if r := k.callAs("s", "shell", in{"command": "echo no; exit 3", "background": true}); !r.IsError || r.Text != "no\n[bg_1 has ended: exit code 3]" {
		t.Errorf("result = %+v", r)
	}
}

// The number of commands and the kept output are bounded.
func TestBackgroundCommandsAreBounded(t *testing.T) {
	t.Parallel()
	k, b := newBackgroundKit(t, &toolbox.BackgroundOptions{Session: 2, Total: 3, Output: 1000})
	for _, session := range []string{"a", "a", "b"} {
		if r := k.callAs(session, "shell", in{"command": "exec sleep 3600", "background": true}); r.IsError {
			t.Fatal(r.Text)
		}
	}
	for _, session := range []string{"a", "b", "c"} {
		if r := k.callAs(session, "shell", in{"command": "exec sleep 3600", "background": true}); r.Class != belay.ClassUnavailable {
			t.Errorf("session %s: %+v, want unavailable", session, r)
		}
	}
	if err := b.Stop(t.Context(), "", "bg_1"); err != nil {
		t.Fatal(err)
	}
	if r := k.callAs("a", "shell", in{"command": "seq 10000; echo end", "background": true}); r.IsError || !strings.Contains(r.Text, "left out here") || !strings.Contains(r.Text, "10000\nend\n") || len(r.Text) > 1300 {
		t.Errorf("output = %d bytes: %q", len(r.Text), r.Text)
	}
}

// The commands of a session end when it is closed, and all end with the agent.
func TestBackgroundCommandsEndWithTheirSession(t *testing.T) {
	t.Parallel()
	b := toolbox.NewBackground(nil)
	call := func() []scripted.Call {
		return []scripted.Call{call("shell", `{"command": "exec sleep 3600", "background": true}`)}
	}
	agent, err := belay.New(scripted.New([]scripted.Step{{Calls: call()}, {Text: "one"}, {Calls: call()}, {Text: "two"}}, nil), &belay.Options{
		Store: memstore.New(nil), Authorizer: permit.Off(),
		Extensions: []belay.Extension{toolbox.New(openRoot(t, t.TempDir()), &toolbox.Options{Background: b}), b},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"first", "second"} {
		if _, err := agent.Session(id).Turn(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
	}
	running := func() (sessions []string) {
		for _, c := range b.List("") {
			if c.Running {
				sessions = append(sessions, c.Session)
			}
		}
		return sessions
	}
	if got := fmt.Sprint(running()); got != "[first second]" {
		t.Fatalf("running = %s", got)
	}
	if err := agent.Session("first").Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(running()); got != "[second]" {
		t.Errorf("after a session was closed: %s", got)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := running(); len(got) > 0 {
		t.Errorf("after the agent was closed: %s", got)
	}
}

// The output of a running command is reported before the command ends.
//
// SPEC U-03
func TestTheShellReportsItsOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agent, err := belay.New(scripted.New([]scripted.Step{
		{Calls: []scripted.Call{call("shell", `{"command": "echo one; echo two; mkfifo go; printf half; read -r word < go; echo; seq 100000"}`)}}, {Text: "done"},
	}, nil), &belay.Options{Store: memstore.New(nil), Authorizer: permit.Off(), Extensions: []belay.Extension{toolbox.New(openRoot(t, dir), nil)}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Close(t.Context()) }()
	reports := 0
	for event, err := range agent.Session("s").Run(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		switch event.Kind {
		case belay.EventToolProgress:
			if reports++; reports == 1 {
				if event.Text != "one\ntwo\n" || event.Call == nil || event.Call.Tool != "shell" {
					t.Errorf("progress = %+v", event)
				}
				if err := os.WriteFile(filepath.Join(dir, "go"), []byte("go\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if len(event.Text) > 5000 {
				t.Errorf("a report has %d bytes", len(event.Text))
			}
		case belay.EventToolUseResult:
			if reports == 0 || event.Result.IsError || !strings.Contains(event.Result.Text, "half\n1\n2\n") {
				t.Errorf("%d reports, result = %.100s", reports, event.Result.Text)
			}
		default:
		}
	}
}

// The to-do list is read from the transcript.
//
// SPEC U-02
func TestTodos(t *testing.T) {
	t.Parallel()
	agent, err := belay.New(scripted.New([]scripted.Step{
		{Calls: []scripted.Call{call("todo_write", `{"todos": [{"content": "look", "status": "in_progress"}, {"content": "act", "status": "pending"}]}`)}},
		{Calls: []scripted.Call{call("todo_write", `{"todos": [{"content": "look", "status": "completed"}, {"content": "act", "status": "in_progress"}]}`)}},
		{Calls: []scripted.Call{call("todo_write", `{"todos": [{"content": "look", "status": "perhaps"}]}`)}},
		{Text: "done"},
	}, nil), &belay.Options{Store: memstore.New(nil), Authorizer: permit.Off(), Extensions: []belay.Extension{toolbox.TodoList()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Close(t.Context()) }()
	session := agent.Session("s")
	for event, err := range session.Run(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == belay.EventToolUseResult && !event.Result.IsError {
			var view toolbox.TodoView
			if err := json.Unmarshal(event.Result.Render, &view); err != nil || view.Kind != "todo" || len(view.Todos) != 2 {
				t.Errorf("render data = %s, %v", event.Result.Render, err)
			}
		}
	}
	todos, err := toolbox.Todos(session.Messages(t.Context()))
	if got := fmt.Sprint(todos); err != nil || got != "[{look completed} {act in_progress}]" {
		t.Errorf("todos = %s, %v", got, err)
	}
}
