//go:build unix

package mcptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
)

// Replace switches to the new servers when they are ready. The old server ends after its
// running calls. If the new servers conflict with other servers, Replace changes nothing.
//
// SPEC E-03, E-09
func TestReplace(t *testing.T) {
	t.Parallel()
	roll, said := newDesk(t), newDesk(t)
	e := open(t, quick(mcptool.Options{}))
	other, err := e.Add(child(t, "other", "full", nil))
	if err != nil {
		t.Fatal(err)
	}
	old, err := e.Replace(t.Context(), nil, child(t, "one", "full", map[string]string{rollVariable: roll.addr}))
	if err != nil {
		t.Fatal(err)
	}
	first := roll.next()
	waiting := tool(t, e, "one__wait") // Replace has waited until the server was ready
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := waiting.Call(ctx, &belay.Invocation{Tool: "one__wait", Input: json.RawMessage(`{"text":"` + said.addr + `"}`)})
		ended <- err
	}()
	said.next()

	if _, err := e.Replace(t.Context(), old, child(t, "one", "full", nil), child(t, "other", "full", nil)); err == nil || !strings.Contains(err.Error(), `"other": two servers have this name`) {
		t.Errorf("a name that is taken: %v", err)
	}
	if got := serverNames(e); !slices.Equal(got, []string{"other", "one"}) {
		t.Errorf("after that there are %q", got)
	}
	next, err := e.Replace(t.Context(), old, child(t, "one", "full", map[string]string{rollVariable: roll.addr, "MORE": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	second := roll.next()
	if r := call(t, e, "one__echo", `{"text":"from the second"}`); r.Text != "from the second" {
		t.Errorf("%+v", r)
	}
	if err := old.Close(); err != nil || len(serverNames(e)) != 2 {
		t.Errorf("closing a lease that was replaced: %v, there are %q", err, serverNames(e))
	}
	first.alive(t)
	enough := errors.New("enough")
	cancel(enough)
	if err := <-ended; !errors.Is(err, enough) {
		t.Errorf("the call under way: %v", err)
	}
	if err := errors.Join(other.Close(), e.Drain(t.Context())); err != nil {
		t.Error(err)
	}
	first.ended(t)
	second.alive(t)
	if err := errors.Join(next.Close(), e.Drain(t.Context())); err != nil || len(serverNames(e)) != 0 {
		t.Errorf("%v, there are %q", err, serverNames(e))
	}
	second.ended(t)
}

func serverNames(e *mcptool.Extension) []string {
	var all []string
	for _, s := range e.Servers() {
		all = append(all, s.Server.Name)
	}
	return all
}

// At each start, Prepare can replace the program of a server or prevent the start.
// Environ limits the variables that the server can use.
//
// SPEC E-09
func TestPrepare(t *testing.T) {
	t.Parallel()
	server := child(t, "test", "full", map[string]string{"WORD": "${KNOWN}", "NONE": "${SECRET:-none}"})
	server.Environ = []string{"KNOWN=yes"}
	asked := make(chan []string, 8)
	refuse := errors.New("not yet")
	server.Prepare = func(_ context.Context, argv []string) ([]string, error) {
		asked <- argv
		if len(asked) == 1 {
			return nil, refuse
		}
		return argv, nil
	}
	opts := quick(mcptool.Options{Wait: -1})
	opts.Environ = append(opts.Environ, "SECRET=hunter2")
	e := open(t, opts, server)
	await(t, e, "test", inState(mcptool.StateReady))
	first, second := <-asked, <-asked
	if !slices.Equal(first, second) || first[0] != server.Command {
		t.Errorf("asked about %q and %q", first, second)
	}

	// Servers with different values of Apart do not share a process.
	apart := server
	apart.Name, apart.Apart, apart.Prepare = "apart", "another", func(context.Context, []string) ([]string, error) { return nil, refuse }
	if _, err := e.Add(apart); err != nil {
		t.Fatal(err)
	}
	if s := await(t, e, "apart", inState(mcptool.StateDown)); !errors.Is(s.Err, refuse) && !strings.Contains(s.Err.Error(), "not yet") {
		t.Errorf("%+v", s)
	}
}

// A subagent shares the servers of its parent, but does not close them.
//
// SPEC E-09
func TestShared(t *testing.T) {
	t.Parallel()
	e := open(t, quick(mcptool.Options{}), child(t, "test", "full", nil))
	shared := e.Shared()
	if _, closes := shared.(belay.CloseExtension); closes {
		t.Error("it is closed with the agent that has it")
	}
	tools := shared.(belay.StepToolExtension).StepTools("")
	if !slices.Equal(tools, e.StepTools("")) || len(tools) == 0 {
		t.Errorf("it has %d tools", len(tools))
	}
	if got := hintOf(shared.(belay.PromptExtension)); got != hintOf(e) || shared.Name() != e.Name() || len(shared.(belay.HookExtension).Hooks()) != len(e.Hooks()) {
		t.Errorf("the hint is %q", got)
	}
	if _, line := shared.(belay.ScopeExtension).Narrow(belay.AgentConfig{}, []string{"test"}); !strings.Contains(line, "test") {
		t.Errorf("the scope is %q", line)
	}
}
