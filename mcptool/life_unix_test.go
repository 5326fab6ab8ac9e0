//go:build unix

package mcptool_test

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
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/provider/scripted"
)

// When a server is killed during a call, that call fails as unavailable. Other calls fail
// as unavailable until the server has restarted.
//
// SPEC E-09
func TestADeadServerIsUnavailableAndComesBack(t *testing.T) {
	t.Parallel()
	roll, said := newDesk(t), newDesk(t)
	log := new(records)
	e := open(t, quick(mcptool.Options{Logger: log.logger()}), child(t, "test", "full", map[string]string{rollVariable: roll.addr}))
	first := roll.next()
	echo := tool(t, e, "test__echo")

	result := make(chan belay.Result, 1)
	waiting := tool(t, e, "test__wait")
	go func() {
		r, err := waiting.Call(context.Background(), &belay.Invocation{Tool: "test__wait", Input: json.RawMessage(`{"text":"` + said.addr + `"}`)})
		if err != nil {
			t.Error(err)
		}
		result <- r
	}()
	if l := said.next(); l.text != "waiting" {
		t.Fatalf("the tool said %q", l.text)
	}
	kill(t, first)
	r := <-result
	if !r.IsError || r.Class != belay.ClassUnavailable || !strings.Contains(r.Text, "it was killed (signal 9)") || !strings.Contains(r.Text, "unknown whether the call had an effect") {
		t.Errorf("the call in the middle: result = %+v", r)
	}
	first.ended(t)
	second := roll.next()
	await(t, e, "test", inState(mcptool.StateReady))
	if r := call(t, e, "test__echo", `{"text":"back"}`); r.Text != "back" {
		t.Errorf("after the restart: result = %+v", r)
	}
	if tool(t, e, "test__echo") != echo {
		t.Error("a tool that has not changed is another one after the restart")
	}
	second.alive(t)
	if !strings.Contains(log.String(), "mcp server is not available") || !strings.Contains(log.String(), "killed") {
		t.Errorf("the log:\n%s", log)
	}
}

func kill(t *testing.T, l *line) {
	t.Helper()
	pid, err := strconv.Atoi(l.text)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// While a server is down, its tools stay in the list, and their calls fail at once.
//
// SPEC E-09
func TestCallsOfAServerThatIsGone(t *testing.T) {
	t.Parallel()
	roll, hold := newDesk(t), newGate(t)
	server := child(t, "test", "full", map[string]string{rollVariable: roll.addr})
	flag := filepath.Join(t.TempDir(), "held")
	server.Command, server.Args = "/bin/sh", []string{"-c", `if [ -e "$0" ]; then export ` + gateVariable + "=" + hold.addr + `; fi; touch "$0"; exec "$1" -test.run='^$'`, flag, server.Command}
	e := open(t, quick(mcptool.Options{}), server)
	first := roll.next()
	if r := call(t, e, "test__die", `{}`); r.Class != belay.ClassUnavailable || !strings.Contains(r.Text, "exit code 9") {
		t.Errorf("the call that ends its server: result = %+v", r)
	}
	first.ended(t)
	roll.next() // the second process, which waits at the gate
	s := await(t, e, "test", inState(mcptool.StateDown))
	if s.Err == nil || !strings.Contains(s.Err.Error(), "exit code 9") || len(s.Tools) == 0 {
		t.Errorf("status = %+v", s)
	}
	r := call(t, e, "test__echo", `{"text":"x"}`)
	if r.Class != belay.ClassUnavailable || strings.Contains(r.Text, "effect") {
		t.Errorf("result = %+v, want unavailable, and no doubt about an effect", r)
	}
	hold.open()
	await(t, e, "test", inState(mcptool.StateReady))
	if r := call(t, e, "test__echo", `{"text":"back"}`); r.Text != "back" {
		t.Errorf("result = %+v", r)
	}
}

// SPEC E-09
func TestCancelReachesTheServer(t *testing.T) {
	t.Parallel()
	said := newDesk(t)
	e := open(t, quick(mcptool.Options{}), child(t, "test", "full", nil))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user has left")
	done := make(chan error, 1)
	waiting := tool(t, e, "test__wait")
	go func() {
		_, err := waiting.Call(ctx, &belay.Invocation{Tool: "test__wait", Input: json.RawMessage(`{"text":"` + said.addr + `"}`)})
		done <- err
	}()
	if l := said.next(); l.text != "waiting" {
		t.Fatalf("the tool said %q", l.text)
	}
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Errorf("err = %v, want the cause", err)
	}
	if l := said.next(); l.text != "cancelled" {
		t.Errorf("the tool said %q, want that it was cancelled", l.text)
	}
	if r := call(t, e, "test__echo", `{"text":"still here"}`); r.Text != "still here" {
		t.Errorf("result = %+v", r)
	}
}

// Watchers get a server's progress notifications before the call ends.
//
// SPEC E-09
func TestProgress(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	e, err := mcptool.New(t.Context(), []mcptool.Server{child(t, "test", "full", nil)}, quick(mcptool.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	model := scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "test__walk", Input: `{"text":"` + hold.addr + `"}`}}}, {Text: "arrived"}}, nil)
	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{e}})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for event, err := range agent.Session("walk").Run(t.Context(), "walk") {
		if err != nil {
			t.Fatal(err)
		}
		switch event.Kind {
		case belay.EventToolProgress:
			kinds = append(kinds, event.Call.Tool+": "+event.Text)
			hold.open()
		case belay.EventToolUseResult:
			kinds = append(kinds, event.Result.Text)
		default: // other events of the turn
		}
	}
	if got := strings.Join(kinds, ", "); got != "test__walk: 1 of 2: half way, there" {
		t.Errorf("events: %s", got)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A server that starts slowly does not delay New. Its tools appear when it is ready.
//
// SPEC E-09
func TestASlowServerHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	e, err := mcptool.New(t.Context(), []mcptool.Server{child(t, "slow", "full", map[string]string{gateVariable: hold.addr})}, quick(mcptool.Options{Wait: -1}))
	if err != nil {
		t.Fatal(err)
	}
	ready := belay.ToolPost.On("ready", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
		hold.open()
		await(t, e, "slow", inState(mcptool.StateReady))
		return belay.ToolReaction{}, nil
	}, nil)
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls("own", `{}`),
		belaytest.Calls("slow__echo", `{"text":"hello"}`),
		belaytest.Says("done"),
	), &belay.Options{Extensions: []belay.Extension{e}, Tools: []belay.Tool{belaytest.NewTool("own", "fine")}, Hooks: []hook.Subscription{ready}, Scope: []string{"own", "slow__echo"}})
	if s := e.Servers()[0]; s.State != mcptool.StateStarting {
		t.Errorf("status = %+v, want it starting", s)
	}
	turn := agent.Say("go")
	turn.Ended(belay.EndTurn)
	turn.Request(1).Offers("own")
	turn.Request(2).Offers("own", "slow__echo")
	turn.Result("slow__echo", "hello")
}

// A changed list of tools takes effect between two steps of a turn.
//
// SPEC E-09, T-12
func TestAListThatChanges(t *testing.T) {
	t.Parallel()
	e, err := mcptool.New(t.Context(), []mcptool.Server{child(t, "test", "full", nil)}, quick(mcptool.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	want := false
	followed := belay.ToolPost.On("followed", func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
		if r.Tool() == "test__change" {
			want = !want
			await(t, e, "test", func(mcptool.Status) bool { return contains(names(e), "test__extra") == want })
		}
		return belay.ToolReaction{}, nil
	}, nil)
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls("test__change", `{"text":"A tool that was added."}`),
		belaytest.Calls("test__extra", `{}`),
		belaytest.Calls("test__change", `{"text":"remove"}`),
		belaytest.Calls("test__extra", `{}`),
		belaytest.Says("done"),
	), &belay.Options{Extensions: []belay.Extension{e}, Hooks: []hook.Subscription{followed}, Scope: []string{"test__change", "test__extra"}})
	turn := agent.Say("go")
	turn.Ended(belay.EndTurn)
	turn.Request(1).Offers("test__change")
	turn.Request(2).Offers("test__change", "test__extra")
	turn.Request(4).Offers("test__change")
	turn.Result("test__extra", "extra")
	turn.ResultFailed("test__extra", belay.ClassNotFound, "test__extra")
}

// A server that prints something other than messages is stopped and reported. The agent
// continues to work.
//
// SPEC E-09
func TestGarbage(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"garbage": `it printed "Server is running!" to standard output`,
		"endless": "a message of more than 16 MiB",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			roll := newDesk(t)
			e := open(t, quick(mcptool.Options{Backoff: time.Hour}), child(t, "loud", kind, map[string]string{rollVariable: roll.addr}), child(t, "test", "full", nil))
			s := await(t, e, "loud", inState(mcptool.StateDown))
			if s.Err == nil || !strings.Contains(s.Err.Error(), want) {
				t.Errorf("status = %+v, want %q", s, want)
			}
			roll.next().ended(t)
			roll.none()
			if r := call(t, e, "test__echo", `{"text":"fine"}`); r.Text != "fine" {
				t.Errorf("the other server: result = %+v", r)
			}
		})
	}
}

func TestServersThatDoNotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	unset, nowhere := child(t, "unset", "full", map[string]string{"TOKEN": "${NOT_SET_HERE}"}), child(t, "nowhere", "full", nil)
	nowhere.Dir = filepath.Join(dir, "gone")
	log := new(records)
	e := open(t, quick(mcptool.Options{Backoff: time.Hour, Environ: append(os.Environ(), "PASSWORD=hunter-2-hunter"), Logger: log.logger()}),
		mcptool.Server{Name: "missing", Command: "belay-no-such-program"},
		mcptool.Server{Name: "plain", Command: plain},
		child(t, "dies", "dies", map[string]string{"SECRET": "${PASSWORD}"}),
		mcptool.Server{Name: "off", Command: "belay-no-such-program", Disabled: true},
		unset, nowhere,
	)
	want := map[string]string{
		"missing": "there is no program belay-no-such-program", "plain": "cannot be executed: make it executable",
		"dies": "it ended with exit code 3: no database at [REDACTED]", "off": "", "unset": "env: TOKEN: the variable NOT_SET_HERE is not set",
		"nowhere": "its directory " + nowhere.Dir + " does not exist",
	}
	for _, s := range e.Servers() {
		text := ""
		if s.Err != nil {
			text = s.Err.Error()
		}
		if !strings.Contains(text, want[s.Server.Name]) || (text == "") != (want[s.Server.Name] == "") {
			t.Errorf("server %s: %q, want %q in it", s.Server.Name, text, want[s.Server.Name])
		}
	}
	if strings.Contains(log.String(), "hunter") || !strings.Contains(log.String(), `line="no database at [REDACTED]"`) {
		t.Errorf("the log has what a variable was filled in with, or not what the server said:\n%s", log)
	}
	if s := e.Servers()[3]; s.State != mcptool.StateDisabled {
		t.Errorf("status = %+v, want it disabled", s)
	}
}

// A server that does not answer the handshake is stopped. It does not delay other
// servers.
func TestADeafServer(t *testing.T) {
	t.Parallel()
	roll := newDesk(t)
	e := open(t, quick(mcptool.Options{Start: time.Second}), child(t, "deaf", "deaf", map[string]string{rollVariable: roll.addr}))
	s := await(t, e, "deaf", inState(mcptool.StateDown))
	if s.Err == nil || !strings.Contains(s.Err.Error(), "did not answer the handshake in time") {
		t.Errorf("status = %+v", s)
	}
	roll.next().ended(t)
}

// Servers with identical configurations share a process. The process ends with the last
// extension that uses it.
//
// SPEC E-09
func TestSharing(t *testing.T) {
	t.Parallel()
	roll := newDesk(t)
	env := map[string]string{rollVariable: roll.addr}
	opts := quick(mcptool.Options{Pool: new(mcptool.Pool)})
	one, two := open(t, opts, child(t, "one", "full", env)), open(t, opts, child(t, "two", "full", env), child(t, "three", "full", env))
	process := roll.next()
	roll.none() // three servers in two extensions are ready, and only one process has started
	if r := call(t, two, "three__echo", `{"text":"shared"}`); r.Text != "shared" {
		t.Errorf("result = %+v", r)
	}
	shut(t, one)
	process.alive(t)
	if r := call(t, two, "two__echo", `{"text":"still"}`); r.Text != "still" {
		t.Errorf("result = %+v", r)
	}
	shut(t, two)
	process.ended(t)
	roll.none()

	other := child(t, "other", "full", env)
	other.Args = append(other.Args, "-test.v")
	three := open(t, opts, child(t, "one", "full", env), other)
	roll.next()
	roll.next() // a different configuration has its own process
	shut(t, three)
}

// Closing an extension leaves no process, even if the program ignores signals or has
// children.
//
// SPEC E-09
func TestNoProcessIsLeft(t *testing.T) {
	t.Parallel()
	roll := newDesk(t)
	env := map[string]string{rollVariable: roll.addr}
	kinds := []string{"full", "stubborn", "parent"}
	servers := make([]mcptool.Server, 0, len(kinds))
	for _, kind := range kinds {
		servers = append(servers, child(t, kind, kind, env))
	}
	e := open(t, quick(mcptool.Options{Grace: 100 * time.Millisecond}), servers...)
	var processes []*line
	for range kinds {
		processes = append(processes, roll.next())
	}
	for _, s := range e.Servers() {
		if s.State != mcptool.StateReady {
			t.Errorf("status = %+v", s)
		}
	}
	shut(t, e)
	for _, p := range processes {
		p.ended(t)
	}
	roll.none()
	if got := names(e); len(got) > 0 {
		t.Errorf("a closed extension has tools: %v", got)
	}
	if _, err := e.Add(child(t, "late", "full", nil)); err == nil {
		t.Error("a closed extension takes servers")
	}
}

// hintOf returns the line that an extension adds to the prompt.
func hintOf(e belay.PromptExtension) string {
	_, hint := e.Prompt(belay.AgentConfig{})
	return hint
}

// Add adds servers, and closing its lease removes them.
//
// SPEC T-12
func TestServersComeAndGo(t *testing.T) {
	t.Parallel()
	roll := newDesk(t)
	e := open(t, quick(mcptool.Options{}))
	if got, hint := names(e), hintOf(e); len(got) > 0 || hint != "" {
		t.Errorf("without servers there are tools %v and the hint %q", got, hint)
	}
	lease, err := e.Add(child(t, "test", "full", map[string]string{rollVariable: roll.addr}))
	if err != nil {
		t.Fatal(err)
	}
	await(t, e, "test", inState(mcptool.StateReady))
	if !contains(names(e), "test__echo") {
		t.Errorf("tools = %v", names(e))
	}
	echo := tool(t, e, "test__echo")
	for range 2 {
		if err := lease.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := names(e); len(got) > 0 {
		t.Errorf("tools = %v, want none", got)
	}
	roll.next().ended(t)
	r, err := echo.Call(t.Context(), &belay.Invocation{Input: json.RawMessage(`{}`)})
	if err != nil || r.Class != belay.ClassUnavailable {
		t.Errorf("a tool that is gone: result = %+v, %v", r, err)
	}
}

// SPEC E-09, C-05
func TestEnvironment(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	host := []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "LANG=C", "LC_ALL=C", "TOKEN=tok", "OTHER=secret", "GITHUB_TOKEN=secret"}
	e := open(t, quick(mcptool.Options{Environ: host, Dir: dir}), child(t, "test", "full", map[string]string{"MINE": "a${TOKEN}b", "FALLBACK": "${UNSET:-none}", "PLAIN": "$TOKEN"}))
	got := strings.Split(call(t, e, "test__environ", `{}`).Text, "\n")
	for _, want := range []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "LANG=C", "LC_ALL=C", "MINE=atokb", "FALLBACK=none", "PLAIN=$TOKEN", serverVariable + "=full", raceVariable + "=" + noPause, "cwd " + dir} {
		if !contains(got, want) {
			t.Errorf("the environment lacks %q: %v", want, got)
		}
	}
	if len(got) != 10 {
		t.Errorf("the environment = %v, want those 9 variables alone", got)
	}
}
