//go:build unix

package space_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/space"
)

// If a worker does not start, the agent still runs. The worker's gates deny and say why,
// and its other hooks do not run. Hooks of other workers run, even if they are ordered
// after hooks that do not run.
//
// SPEC H-10, W-01
func TestAWorkerThatDoesNotStart(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("manifest.json", `{"id": "acme"}`)
	p.put("hooks/steady.sh", steady)
	p.put("hooks/bad.sh", "#!/bin/sh\necho 'no such library' >&2\nexit 1\n")
	p.put("hooks/a.yaml", `hooks:
  - {id: gate, phase: tool.pre, worker: [./bad.sh], match: {tools: [write]}}
  - {id: mild, phase: tool.pre, worker: [./bad.sh], failure: open, match: {tools: [read]}}
  - {id: shadow, phase: tool.pre, worker: [./bad.sh], shadow: true}
  - {id: good, phase: tool.pre, worker: [./steady.sh], after: [gate, shadow], match: {tools: [edit]}}
  - {id: look, phase: tool.post, worker: [./bad.sh]}
  - {id: missing, phase: tool.post, worker: [belay-has-no-such-program], before: [look]}
  - {id: rest, phase: tool.post, action: log, after: [look, missing]}
`)
	agent := p.newAgent(nil)
	lease := agent.install(t, p.trusted(hook.OriginSpace))
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "")
	wantVerdict(t, agent.ask(t, "read"), belay.ToolPass, "")
	wantVerdict(t, agent.ask(t, "edit"), belay.ToolDeny, "the worker says no")
	for id, closed := range map[string]bool{"gate": true, "mild": false, "shadow": false, "look": false, "missing": false} {
		if n := noteAbout(t, lease.Notes(), "acme/"+id); n.Closed != closed || !strings.Contains(n.Reason, "its worker does not start: ") {
			t.Errorf("noted as %+v", n)
		}
	}
	if n := noteAbout(t, lease.Notes(), "acme/gate"); !strings.Contains(n.Reason, "no such library") {
		t.Errorf("the reason is %q: it lacks what the worker said", n.Reason)
	}
	var off []string
	for _, sub := range agent.target.Hooks.Subscriptions() {
		if sub.Options().Disabled {
			off = append(off, sub.ID())
		}
	}
	if got := strings.Join(off, " "); got != "acme/shadow acme/look acme/missing" {
		t.Errorf("off are %s", got)
	}
	if n := len(lease.Notes()); n != 5 {
		t.Errorf("%d notes: %+v", n, lease.Notes())
	}
}

// If the context ends while workers start, Install fails.
func TestAnInterruptedInstallFails(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("hooks/deaf.sh", "#!/bin/sh\nexec cat > /dev/null\n")
	p.put("hooks/a.yaml", "hooks:\n  - {id: deaf, phase: tool.post, worker: [./deaf.sh]}\n")
	agent := p.newAgent(nil)
	s := p.trusted(hook.OriginProject)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if lease, err := agent.host.Install(ctx, s, agent.target); err == nil {
		t.Error("it was installed")
		_ = lease.Unload(t.Context())
	}
}

// Watch ends when the lease is unloaded, whether or not files change.
//
// SPEC W-01, W-02
func TestUnloadWhileItIsWatched(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]bool{"files stay": false, "files change": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 {
				p := newPlace(t)
				p.put("manifest.json", `{"id": "acme"}`)
				p.put("hooks/a.yaml", "hooks:\n  - {id: no, phase: tool.pre, action: {deny: first}}\n")
				agent := p.newAgent(&space.Options{Every: 100 * time.Microsecond})
				lease, err := agent.host.Install(t.Context(), p.load(hook.OriginSpace), agent.target)
				if err != nil {
					t.Fatal(err)
				}
				var watching sync.WaitGroup
				watching.Go(func() { lease.Watch(context.Background(), func(error) {}) })
				if change {
					p.put("hooks/a.yaml", "hooks:\n  - {id: no, phase: tool.pre, action: {deny: second}}\n")
				}
				if err := lease.Unload(t.Context()); err != nil {
					t.Fatal(err)
				}
				watching.Wait()
				if got := agent.trace(t); got != "" {
					t.Fatalf("there is still %s", got)
				}
			}
		})
	}
}
