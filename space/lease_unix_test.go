//go:build unix

package space_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/subagent"
)

// steady is the script of a worker.
const steady = `#!/bin/sh
read hello
echo '{"jsonrpc":"2.0","id":1,"result":{"v":1}}'
n=1
while read call; do
  n=$((n + 1))
  case $call in
  *'"method":"cancel"'*) n=$((n - 1)) ;;
  *) echo '{"jsonrpc":"2.0","id":'$n',"result":{"decision":"deny","reason":"the worker says no"}}' ;;
  esac
done
`

// whole writes a space with content of every kind.
func (p *place) whole(reason string) {
	p.t.Helper()
	p.put("manifest.json", `{"id": "acme", "name": "Acme", "version": "1.0.0", "description": "everything"}`)
	p.put("hooks/gate.yaml", `hooks:
  - id: no
    phase: tool.pre
    match: { tools: [write] }
    run: ./no.sh
  - id: steady
    phase: tool.pre
    match: { tools: [edit] }
    worker: [./steady.sh]
    after: [no]
`)
	p.put("hooks/no.sh", "#!/bin/sh\necho '"+reason+"' >&2\nexit 2\n")
	p.put("hooks/steady.sh", steady)
	p.put("skills/tidy/SKILL.md", "---\nname: tidy\ndescription: tidies\n---\nTidy.\n")
	p.put("agents/reviewer.md", "---\ndescription: reviews\n---\nYou review.\n")
}

// trace returns everything in the agent that comes from a space.
func (a *agent) trace(t testing.TB) string {
	t.Helper()
	var found []string
	for _, s := range a.target.Hooks.Subscriptions() {
		found = append(found, s.ID())
	}
	for _, s := range a.target.Skills.List() {
		found = append(found, "skill "+s.ID)
	}
	for _, s := range a.target.Subagents.List() {
		found = append(found, "agent "+s.Name)
	}
	return strings.Join(found, ", ")
}

const everything = "acme/no, acme/steady, skill acme/tidy, agent reviewer"

// workers returns the living worker processes that this process has started.
func workers(t testing.TB) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-o", "pid=,ppid=,stat=,args=", "-A").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) > 3 && f[1] == strconv.Itoa(os.Getpid()) && strings.Contains(line, "steady.sh") {
			found = append(found, line)
		}
	}
	return found
}

// SPEC W-01
func TestASpaceLeavesNoTrace(t *testing.T) { //nolint:paralleltest // it counts processes
	p := newPlace(t)
	p.whole("closed")
	agent := p.newAgent(nil)
	lease, err := agent.host.Install(t.Context(), p.trusted(hook.OriginSpace), agent.target)
	if err != nil {
		t.Fatal(err)
	}
	if got := agent.trace(t); got != everything {
		t.Errorf("there is %s, want %s", got, everything)
	}
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "closed")
	wantVerdict(t, agent.ask(t, "edit"), belay.ToolDeny, "the worker says no")
	if got, err := agent.target.Skills.Read(t.Context(), "tidy", ""); err != nil || !strings.Contains(got.Text, "Tidy.") {
		t.Errorf("the skill reads %+v, %v", got, err)
	}
	if n := len(workers(t)); n != 1 {
		t.Errorf("%d workers, want 1", n)
	}
	if err := lease.Unload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := agent.trace(t); got != "" {
		t.Errorf("there is still %s", got)
	}
	if left := workers(t); len(left) != 0 {
		t.Errorf("workers are left: %v", left)
	}
	if err := lease.Unload(t.Context()); err != nil {
		t.Errorf("unloading twice: %v", err)
	}
	if err := lease.Reload(t.Context()); !errors.Is(err, space.ErrUnloaded) {
		t.Errorf("reloading what was unloaded: %v", err)
	}
}

// If a space cannot be installed completely, nothing of it is installed.
//
// SPEC W-01
func TestAllOrNothing(t *testing.T) { //nolint:paralleltest // it counts processes
	p := newPlace(t)
	p.whole("closed")
	s := p.trusted(hook.OriginSpace)
	for name, meddle := range map[string]func(t *testing.T, a *agent) (undo func()){ //nolint:paralleltest // it counts processes
		"an agent of that name": func(t *testing.T, a *agent) func() {
			l, err := a.target.Subagents.Add(subagent.Subagent{Name: "reviewer", Factory: subagent.Canned(func(context.Context, string) (string, error) { return "", nil })})
			if err != nil {
				t.Fatal(err)
			}
			return func() { _ = l.Close() }
		},
		"a hook of that id": func(t *testing.T, a *agent) func() {
			l, err := a.target.Hooks.Install(belay.ToolPre.On("acme/no", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Pass, nil }, nil))
			if err != nil {
				t.Fatal(err)
			}
			return func() { _ = l.Close() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			agent := p.newAgent(nil)
			undo := meddle(t, agent)
			before := agent.trace(t)
			if _, err := agent.host.Install(t.Context(), s, agent.target); err == nil {
				t.Fatal("it was installed")
			}
			if got := agent.trace(t); got != before {
				t.Errorf("there is %s, want %s", got, before)
			}
			if left := workers(t); len(left) != 0 {
				t.Errorf("workers are left: %v", left)
			}
			undo()
			agent.install(t, s)
		})
	}
}

// SPEC W-02
func TestAReloadThatFailsKeepsTheOldOneWorking(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(t *testing.T, p *place){
		"a mistake":  func(_ *testing.T, p *place) { p.put("hooks/gate.yaml", "hooks:\n  - id: no\n    phase: tool.per\n") },
		"another id": func(_ *testing.T, p *place) { p.put("manifest.json", `{"id": "other"}`) },
		"a bad worker": func(_ *testing.T, p *place) {
			p.put("hooks/gate.yaml", "hooks:\n  - id: w\n    phase: tool.pre\n    worker: [./no.sh]\n")
			p.trusted(hook.OriginSpace)
		},
		"a clash": func(_ *testing.T, p *place) {
			p.put("agents/taken.md", "---\ndescription: reviews\n---\nYou review.\n")
			p.trusted(hook.OriginSpace)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.whole("closed")
			p.put("hooks/gate.yaml", "hooks:\n  - id: no\n    phase: tool.pre\n    action: {deny: as before}\n")
			agent := p.newAgent(nil)
			if _, err := agent.target.Subagents.Add(subagent.Subagent{Name: "taken", Factory: subagent.Canned(nil)}); err != nil {
				t.Fatal(err)
			}
			lease := agent.install(t, p.trusted(hook.OriginSpace))
			before := agent.trace(t)
			harm(t, p)
			if err := lease.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "the loaded version stays") {
				t.Fatalf("the error is %v", err)
			}
			if got := agent.trace(t); got != before {
				t.Errorf("there is %s, want %s", got, before)
			}
			wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "as before")
		})
	}
}

// A running turn keeps the worker that it began with. After the turn the worker ends.
//
// SPEC W-02, W-01
func TestAReloadDoesNotDisturbTurns(t *testing.T) { //nolint:paralleltest // it counts processes
	p := newPlace(t)
	p.whole("first")
	agent := p.newAgent(nil)
	lease := agent.install(t, p.trusted(hook.OriginSpace))
	turn := agent.target.Hooks.Snapshot()
	p.whole("second")
	p.trusted(hook.OriginSpace)
	if err := lease.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "second")
	if n := len(workers(t)); n != 2 {
		t.Errorf("%d workers, want the old one and the new one", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lease.Unload(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("unloading while a turn holds it: %v", err)
	}
	if got := agent.trace(t); got != "" {
		t.Errorf("there is still %s", got)
	}
	if err := turn.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := lease.Unload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := workers(t); len(left) != 0 {
		t.Errorf("workers are left: %v", left)
	}
}

// SPEC W-01, W-02, H-14
func TestAThousandTimesWithTurnsRunning(t *testing.T) { //nolint:paralleltest // it counts processes
	p := newPlace(t)
	p.whole("closed")
	s := p.trusted(hook.OriginSpace)
	agent := p.newAgent(nil)
	ctx := t.Context()
	var turns sync.WaitGroup
	asked, due := 0, make(chan struct{}, 1)
	turns.Go(func() {
		for range due {
			tool := "edit"
			if asked%20 == 0 { // this tool starts a process
				tool = "write"
			}
			if v := agent.ask(t, tool); v.Decision != belay.ToolPass && v.Decision != belay.ToolDeny {
				t.Errorf("the verdict is %+v", v)
			}
			asked++
		}
	})
	const rounds = 1000
	for i := range rounds {
		select {
		case due <- struct{}{}: // a turn begins while the space is installed, used or unloaded
		default:
		}
		lease, err := agent.host.Install(ctx, s, agent.target)
		if err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			if err := lease.Reload(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := lease.Unload(ctx); err != nil {
			t.Fatal(err)
		}
	}
	close(due)
	turns.Wait()
	if got := agent.trace(t); got != "" {
		t.Errorf("there is still %s", got)
	}
	if left := workers(t); len(left) != 0 {
		t.Errorf("workers are left: %v", left)
	}
	if asked < rounds/10 {
		t.Errorf("%d turns were taken meanwhile", asked)
	}
}

// SPEC W-02
func TestChangedFilesAreNoticed(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("hooks/gate.yaml", "hooks:\n  - id: no\n    phase: tool.pre\n    action: {deny: first}\n")
	agent := p.newAgent(&space.Options{Every: time.Millisecond})
	lease := agent.install(t, p.load(hook.OriginProject))
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan error)
	var watching sync.WaitGroup
	watching.Go(func() {
		lease.Watch(ctx, func(err error) {
			select {
			case told <- err:
			case <-ctx.Done():
			}
		})
	})
	defer watching.Wait()
	defer cancel()
	p.put("hooks/gate.yaml", "hooks:\n  - id: no\n    phase: tool.pre\n    action: {deny: second}\n")
	for { // Watch may first see a half-written file
		if err := <-told; err == nil && agent.ask(t, "x").Reason == "second" {
			break
		}
	}
	p.put("hooks/gate.yaml", "hooks: [\n")
	if err := <-told; err == nil || !strings.Contains(err.Error(), "gate.yaml:") {
		t.Errorf("told: %v", err)
	}
	wantVerdict(t, agent.ask(t, "x"), belay.ToolDeny, "second")
	p.put("hooks/gate.yaml", "hooks:\n  - id: no\n    phase: tool.pre\n    action: {deny: second}\n") // the installed text again
	for {                                                                                             // Watch may first see a half-written file
		if err := <-told; err == nil {
			break
		}
	}
	p.put("hooks/gate.yaml", "hooks: [\n")
	<-told
	// If a gate is removed, the reload fails until the change is trusted.
	if err := os.RemoveAll(filepath.Join(p.dir, "hooks")); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err == nil || !strings.Contains(err.Error(), "the gate tool.pre project/no was removed, and this change is not trusted") {
		t.Errorf("told: %v", err)
	}
	wantVerdict(t, agent.ask(t, "x"), belay.ToolDeny, "second")
	p.put("agents/a.md", "---\ndescription: something to trust\n---\nx\n")
	p.trusted(hook.OriginProject)
	for agent.ask(t, "x").Decision != belay.ToolPass {
		<-told
	}
}

// If a trusted gate is removed or has no effect any more, Reload and Install report that.
//
// SPEC W-06
func TestAGateThatIsGoneIsMissed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"gone":     "hooks:\n  - {id: other, phase: tool.pre, action: log}\n",
		"disabled": "hooks:\n  - {id: no, phase: tool.pre, action: deny, enabled: false}\n",
		"shadow":   "hooks:\n  - {id: no, phase: tool.pre, action: deny, shadow: true}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.put("hooks/gate.yaml", "hooks:\n  - {id: no, phase: tool.pre, action: deny}\n")
			agent := p.newAgent(nil)
			lease := agent.install(t, p.trusted(hook.OriginProject))
			p.put("hooks/gate.yaml", text)
			if err := lease.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "tool.pre project/no") {
				t.Errorf("reloading: %v", err)
			}
			wantVerdict(t, agent.ask(t, "x"), belay.ToolDeny, "")
			again := p.newAgent(nil)
			if _, err := again.host.Install(t.Context(), p.load(hook.OriginProject), again.target); err == nil || !strings.Contains(err.Error(), "was trusted with the gate tool.pre project/no, but this gate no longer exists") {
				t.Errorf("starting again: %v", err)
			}
			p.trusted(hook.OriginProject)
			if err := lease.Reload(t.Context()); err != nil {
				t.Errorf("after a person has accepted it: %v", err)
			}
		})
	}
}

// A worker does not start if its hooks are switched off.
func TestWorkersOfHooksThatAreOff(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	mark := filepath.Join(t.TempDir(), "ran")
	p.put("hooks/w.yaml", "hooks:\n  - {id: w, phase: tool.pre, worker: [./w.sh], enabled: false}\n  - {id: v, phase: tool.pre, worker: [./w.sh, x]}\n")
	p.put("hooks/w.sh", "#!/bin/sh\ntouch "+mark+"\nexit 1\n")
	agent := p.newAgent(&space.Options{DisableIDs: []string{"project/v"}})
	agent.install(t, p.trusted(hook.OriginProject))
	if _, err := os.Stat(mark); err == nil {
		t.Error("a worker was started for hooks that are off")
	}
}

// SPEC W-01
func TestAnInterruptedUnloadIsFinal(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.whole("closed")
	agent := p.newAgent(nil)
	lease := agent.install(t, p.trusted(hook.OriginSpace))
	turn := agent.target.Hooks.Snapshot()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lease.Unload(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("unloading while a turn holds it: %v", err)
	}
	if err := lease.Reload(t.Context()); !errors.Is(err, space.ErrUnloaded) {
		t.Errorf("reloading then: %v", err)
	}
	if got := agent.trace(t); got != "" {
		t.Errorf("there is again %s", got)
	}
	if err := turn.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The hooks of an agent can use grants before anything else of their directory is
// installed.
func TestHooksOfAnAgentWithAGrant(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("agents/a.md", "---\ndescription: a\nhooks:\n  onToolCall:\n    - {id: x, run: ./x.sh, capabilities: [rewrite_input]}\n---\nx\n")
	p.put("agents/x.sh", "#!/bin/sh\n")
	s := p.trusted(hook.OriginProject, "rewrite_input")
	agent := p.newAgent(nil)
	own, notes, err := agent.host.AgentHooks(s, "a")
	if err != nil || len(notes) != 0 {
		t.Fatal(notes, err)
	}
	with, ok := own.(belay.HookExtension)
	if !ok {
		t.Fatal("it has no hooks")
	}
	if _, err := agent.target.Hooks.Install(with.Hooks()...); err != nil {
		t.Error(err)
	}
	if err := own.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The hooks of an agent get no grants if another directory has the same origin, and do not change
// the grants of that directory. Closing them ends their grants.
func TestHooksOfAnAgentOfAnotherProject(t *testing.T) {
	t.Parallel()
	first, second := newPlace(t), newPlace(t)
	for _, at := range []*place{first, second} {
		at.put("agents/a.md", "---\ndescription: a\nhooks:\n  onToolCall:\n    - {id: x, run: ./x.sh, capabilities: [rewrite_input]}\n---\nx\n")
		at.put("agents/x.sh", "#!/bin/sh\n")
	}
	second.trust = first.trust
	s, other := first.trusted(hook.OriginProject, "rewrite_input"), second.trusted(hook.OriginProject)
	host := first.newAgent(nil).host
	own, _, err := host.AgentHooks(s, "a")
	if err != nil {
		t.Fatal(err)
	}
	granted := host.Grants(s.Origin)
	if _, _, err := host.AgentHooks(other, "a"); err == nil || !strings.Contains(err.Error(), "use another host") {
		t.Errorf("the hooks of another project give %v", err)
	}
	if got := host.Grants(s.Origin); got != granted || got == hook.DefaultGrants(s.Origin) {
		t.Errorf("the grants are %v, want %v", got, granted)
	}
	for range 2 { // closing twice ends them once
		if err := own.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got := host.Grants(s.Origin); got != hook.DefaultGrants(s.Origin) {
		t.Errorf("after closing, the grants are %v", got)
	}
	own, _, err = host.AgentHooks(other, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// If the directory of an installed space disappears, its gates deny.
func TestASpaceThatVanishes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.whole("closed")
	agent := p.newAgent(nil)
	lease := agent.install(t, p.trusted(hook.OriginSpace))
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "have changed since they were trusted")
	if err := lease.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("the error is %v", err)
	}
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "have changed since they were trusted")
}

func TestTwoSpacesOfOneName(t *testing.T) {
	t.Parallel()
	p, q := newPlace(t), newPlace(t)
	for _, at := range []*place{p, q} {
		at.put("manifest.json", `{"id": "acme"}`)
	}
	agent := p.newAgent(nil)
	agent.install(t, p.load(hook.OriginSpace))
	_, err := agent.host.Install(t.Context(), q.load(hook.OriginSpace), agent.target)
	if err == nil || !strings.Contains(err.Error(), p.dir) || !strings.Contains(err.Error(), q.dir) {
		t.Errorf("the error is %v", err)
	}
}

// An agent cannot avoid a trusted gate by editing the gate's script with a tool.
//
// SPEC W-06
func TestAnAgentCannotEditAGateOutOfItsWay(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("hooks/gate.yaml", "hooks:\n  - id: no-deploy\n    phase: tool.pre\n    match: { tools: [deploy] }\n    run: ./check.sh\n")
	script := p.put("hooks/check.sh", denies)
	s := p.trusted(hook.OriginProject)
	host := space.NewHost(&space.Options{Trust: p.trust})
	deploy := belaytest.NewTool("deploy", "deployed")
	edit := belay.NewTool("edit", "edits a file", func(_ context.Context, _ struct{}) (string, error) {
		err := os.WriteFile(script, []byte("#!/bin/sh\nexit 0\n"), 0o700)
		filetest.AwaitForks()
		return "done", err
	}, nil)
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls("deploy", `{}`), belaytest.Calls("edit", `{}`), belaytest.Calls("deploy", `{}`), belaytest.Says("I give up."),
	), &belay.Options{Tools: []belay.Tool{deploy, edit}, Runtime: &hook.RuntimeOptions{Grants: host.Grants}})
	lease, err := host.Install(t.Context(), s, &space.Target{Hooks: agent.Hooks()})
	if err != nil {
		t.Fatal(err)
	}
	turn := agent.Say("deploy")
	turn.Ended(belay.EndTurn)
	turn.Denied("deploy", "project/no-deploy", "not today")
	turn.Denied("deploy", "project/no-deploy", "have changed since they were trusted")
	deploy.Ran(t)
	if err := lease.Unload(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The hooks that an agent declares apply only to that agent.
//
// SPEC W-03
func TestHooksOfAnAgent(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("manifest.json", `{"id": "acme"}`)
	p.put("agents/careful.md", "---\ndescription: careful\nhooks:\n  onToolCall:\n    - id: no\n      run: ./no.sh\n---\nYou are careful.\n")
	p.put("agents/no.sh", "#!/bin/sh\necho 'not in my house' >&2\nexit 2\n")
	s := p.trusted(hook.OriginSpace)
	host := space.NewHost(&space.Options{Trust: p.trust})
	touch := belaytest.NewTool("touch", "touched")
	subagents, err := subagent.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls(subagent.InvokeTool, `{"name": "careful", "prompt": "touch it"}`), belaytest.Calls("touch", `{}`), belaytest.Says("Done."),
	), &belay.Options{Tools: []belay.Tool{touch}, Extensions: []belay.Extension{subagents}, Runtime: &hook.RuntimeOptions{Grants: host.Grants}})
	inside := belaytest.NewTool("touch", "touched inside")
	lease, err := host.Install(t.Context(), s, &space.Target{
		Hooks: agent.Hooks(), Subagents: subagents,
		Build: func(_ context.Context, task *subagent.Task, d *subagent.Declaration, own belay.Extension) (*belay.Agent, error) {
			return belay.New(scripted.New([]scripted.Step{belaytest.Calls("touch", `{}`), belaytest.Says("I may not.")}, nil), &belay.Options{
				Name: d.Name, Instructions: d.Prompt, Store: task.Store, Tools: []belay.Tool{inside}, Extensions: []belay.Extension{own},
				Runtime: &hook.RuntimeOptions{Grants: host.Grants},
			})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	turn := agent.Say("go")
	turn.Ended(belay.EndTurn)
	inside.Ran(t)
	touch.Ran(t, `{}`)
	if err := lease.Unload(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// SPEC W-03
func TestHooksOfAnAgentMayBeFlat(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("manifest.json", `{"id": "acme"}`)
	p.put("agents/a.json", `{"hooks": {"onToolCall": [{"action": "webhook", "url": "https://example.com/"}, {"action": "approve", "tools": ["write"]}],
		"onComplete": [{"action": "save_json", "path": "log.jsonl"}], "onError": [{"action": "log", "level": "error"}]}}`)
	p.put("agents/b.yaml", "hooks:\n  onToolCall:\n    - { action: approve, tools: [write] }\n  turn.stop: { run: 'true' }\n")
	p.put("agents/c.md", "---\nhooks:\n  onStart:\n    - action: log\n    - { id: mine, action: log }\n---\nx\n")
	s := p.load(hook.OriginSpace)
	for agent, want := range map[string][]string{
		"a": {"tool.pre onToolCall.1 webhook", "tool.pre onToolCall.2 action", "turn.post_turn onComplete.1 action", "error onError.1 action"},
		"b": {"tool.pre onToolCall.1 action", "turn.stop turn.stop.1 command"},
		"c": {"session.start onStart.1 action", "session.start mine action"},
	} {
		var got []string
		for _, d := range s.AgentHooks(agent) {
			got = append(got, d.Phase+" "+d.ID+" "+string(d.Kind))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", agent, got, want)
		}
	}
}

// SPEC W-01, W-04
func TestMistakesInSpaces(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		put  func(t *testing.T, p *place)
		want []string
	}{
		"no manifest":      {func(*testing.T, *place) {}, []string{"manifest.json: this space has no manifest"}},
		"a misspelt key":   {func(_ *testing.T, p *place) { p.put("manifest.json", "{\"id\": \"a\",\n \"vresion\": \"1\"}") }, []string{`manifest.json:2: unknown key "vresion" (did you mean "version"?)`}},
		"a lying type":     {func(_ *testing.T, p *place) { p.put("manifest.json", "{\"id\": \"a\",\n\n \"version\": 1}") }, []string{`manifest.json:3: "version" must be a string`}},
		"null":             {func(_ *testing.T, p *place) { p.put("manifest.json", `{"id": null}`) }, []string{`"id" must be a string`}},
		"twice":            {func(_ *testing.T, p *place) { p.put("manifest.json", `{"id": "a", "id": "b"}`) }, []string{`"id" occurs twice`}},
		"no id":            {func(_ *testing.T, p *place) { p.put("manifest.json", `{"name": "a"}`) }, []string{`"id" is missing`}},
		"a bad id":         {func(_ *testing.T, p *place) { p.put("manifest.json", `{"id": "../a"}`) }, []string{`id "../a" is invalid: use 1 to 64`}},
		"an origin's name": {func(_ *testing.T, p *place) { p.put("manifest.json", `{"id": "operator"}`) }, []string{"is reserved"}},
		"not JSON":         {func(_ *testing.T, p *place) { p.put("manifest.json", "{\"id\": \"a\"\n") }, []string{"is not valid JSON"}},
		"more behind":      {func(_ *testing.T, p *place) { p.put("manifest.json", `{"id": "a"} {}`) }, []string{"there is text after the object"}},
		"100 MiB":          {func(_ *testing.T, p *place) { p.put("manifest.json", strings.Repeat(" ", 100<<20)) }, []string{"the file is too long"}},
		"100 MiB of hooks": {func(_ *testing.T, p *place) {
			p.put("manifest.json", `{"id": "a"}`)
			p.put("hooks/a.yaml", strings.Repeat("#", 100<<20))
		}, []string{"files or 64 MiB"}},
		"a pipe":          {func(t *testing.T, p *place) { p.pipe(t, "manifest.json") }, []string{"manifest.json: it is not a regular file"}},
		"a pipe in hooks": {func(t *testing.T, p *place) { p.put("manifest.json", `{"id": "a"}`); p.pipe(t, "hooks/a.yaml") }, []string{"a.yaml: it is not a regular file"}},
		"hooks is a file": {func(_ *testing.T, p *place) { p.put("manifest.json", `{"id": "a"}`); p.put("hooks", "") }, []string{"hooks: it must be a directory"}},
		"hooks lead out":  {func(t *testing.T, p *place) { p.put("manifest.json", `{"id": "a"}`); p.link(t, t.TempDir(), "hooks") }, []string{"hooks: this link points outside of"}},
		"a script beside": {func(_ *testing.T, p *place) {
			p.put("manifest.json", `{"id": "a"}`)
			p.put("bin/x.sh", "#!/bin/sh\n")
			p.put("hooks/a.yaml", "hooks:\n- {id: x, phase: tool.pre, command: [../bin/x.sh]}\n")
		}, []string{"a.yaml:2: trust does not cover"}},
		"a written place": {func(_ *testing.T, p *place) {
			p.put("manifest.json", `{"id": "a"}`)
			p.put("hooks/d.jsonl/x.sh", "#!/bin/sh\n")
			p.put("hooks/a.yaml", "hooks:\n- {id: x, phase: tool.post, action: {save_json: d.jsonl}}\n- {id: y, phase: tool.pre, command: [./d.jsonl/x.sh]}\n")
		}, []string{"a.yaml:3: this hook runs the file x.sh, which a save_json action can change"}},
		"a dangling link": {func(t *testing.T, p *place) {
			p.put("manifest.json", `{"id": "a"}`)
			p.put("hooks/x/y", "")
			p.link(t, filepath.Join(t.TempDir(), "later"), "hooks/x/later")
		}, []string{"hooks/x/later: the target of this link does not exist"}},
		"a tab": {func(_ *testing.T, p *place) {
			p.put("manifest.json", `{"id": "a"}`)
			p.put("hooks/a.yaml", "hooks:\n\t- id: x\n")
		}, []string{"a.yaml:2"}},
		"CRLF": {func(_ *testing.T, p *place) {
			p.put("manifest.json", `{"id": "a"}`)
			p.put("hooks/x.sh", "#!/bin/sh\r\ntrue\r\n")
			p.put("hooks/a.yaml", "hooks:\n- {id: x, phase: tool.pre, command: [./x.sh]}\n")
		}, []string{"a.yaml:2", "line ends"}},
		"not executable": {func(_ *testing.T, p *place) {
			p.put("manifest.json", `{"id": "a"}`)
			p.put("hooks/x.sh", "true\n")
			p.put("hooks/a.yaml", "hooks:\n- {id: x, phase: tool.pre, command: [./x.sh]}\n")
		}, []string{"a.yaml:2", "executable"}},
		"a script is out": {func(t *testing.T, p *place) {
			p.put("manifest.json", `{"id": "a"}`)
			p.put("hooks/x/y", "")
			p.link(t, "/bin/true", "hooks/x/check")
		}, []string{"hooks/x/check: this link points outside of"}},
		"ids twice": {func(_ *testing.T, p *place) {
			p.put("manifest.json", `{"id": "a"}`)
			p.put("hooks/a.yaml", "hooks:\n- {id: x, phase: tool.pre, action: deny}\n")
			p.put("hooks/b.yaml", "hooks:\n- {id: x, phase: tool.pre, action: deny}\n")
		}, []string{"b.yaml:2:", "a.yaml:2"}},
		"a bad agent": {func(_ *testing.T, p *place) {
			p.put("manifest.json", `{"id": "a"}`)
			p.put("agents/a.yaml", "toolss: [x]\n")
		}, []string{`a.yaml:1:`, `did you mean "tools"?`}},
		"an agent's hook": {func(_ *testing.T, p *place) {
			p.put("manifest.json", `{"id": "a"}`)
			p.put("agents/a.yaml", "description: x\nhooks:\n  onToolCall:\n    - {id: x, run: ./gone.sh}\n")
		}, []string{`a.yaml:4:`, "gone.sh"}},
		"a program written": {func(_ *testing.T, p *place) {
			p.put("manifest.json", `{"id": "a"}`)
			p.put("hooks/x.jsonl", "#!/bin/sh\n")
			p.put("hooks/a.yaml", "hooks:\n- {id: x, phase: tool.pre, action: {save_json: x.jsonl}}\n- {id: y, phase: tool.pre, command: [./x.jsonl]}\n")
		}, []string{"a.yaml:3: this hook runs the file x.jsonl, which a save_json action can change"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			test.put(t, p)
			_, err := space.Load(p.dir, hook.OriginSpace)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v\nwant %s", err, want)
				}
			}
			if len(space.Problems(err)) == 0 {
				t.Errorf("%v has no problems", err)
			}
		})
	}
	if _, err := space.Load(filepath.Join(t.TempDir(), "gone"), hook.OriginSpace); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func (p *place) pipe(t *testing.T, name string) {
	t.Helper()
	p.put(name, "")
	full := filepath.Join(p.dir, name)
	if err := errors.Join(os.Remove(full), syscall.Mkfifo(full, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (p *place) link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(p.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// All hundred hooks of a space get the prefix in their ids and keep their order.
func TestIDsAreTheSpaces(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("manifest.json", `{"id": "acme"}`)
	var text strings.Builder
	text.WriteString("hooks:\n")
	for i := range 100 {
		after := ""
		if i > 0 {
			after = fmt.Sprintf(", after: [h%d]", i-1)
		}
		fmt.Fprintf(&text, "  - {id: h%d, phase: tool.pre, action: log%s}\n", i, after)
	}
	p.put("hooks/many.yaml", text.String())
	agent := p.newAgent(nil)
	agent.install(t, p.load(hook.OriginSpace))
	plan, err := agent.target.Hooks.Plan("tool.pre")
	if err != nil || len(plan.Entries) != 100 {
		t.Fatal(len(plan.Entries), err)
	}
	ids := make([]string, 0, 100)
	for _, e := range plan.Entries {
		ids = append(ids, e.ID)
	}
	if ids[0] != "acme/h0" || ids[99] != "acme/h99" || !slices.Contains(ids, "acme/h50") {
		t.Errorf("the plan is %v", ids)
	}
}
