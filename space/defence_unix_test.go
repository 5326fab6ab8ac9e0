//go:build unix

package space_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/space"
)

// If files change and are trusted again, their programs do not run until the directory is
// reloaded, because the loaded hooks do not match the files. Webhooks are not called
// either.
//
// SPEC W-06
func TestFilesThatAreTrustedAgainAreLoadedFirst(t *testing.T) {
	t.Parallel()
	var called atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Add(1) }))
	defer server.Close()
	p := newPlace(t)
	p.put("hooks/gate.yaml", "hooks:\n  - id: gate\n    phase: tool.pre\n    match: {tools: [write]}\n    run: ./check.sh\n  - id: far\n    phase: tool.pre\n    match: {tools: [edit]}\n    webhook: "+server.URL+"/x\n")
	p.put("hooks/check.sh", denies)
	agent := p.newAgent(&space.Options{Declare: declare.Options{Allowlist: []string{server.URL + "/"}}})
	lease := agent.install(t, p.trusted(hook.OriginProject, space.GrantWebhook))
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "not today")
	wantVerdict(t, agent.ask(t, "edit"), belay.ToolPass, "")
	p.put("hooks/check.sh", strings.Replace(denies, "not today", "not tomorrow", 1))
	p.trusted(hook.OriginProject, space.GrantWebhook)
	const why = "have changed since they were loaded"
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, why)
	wantVerdict(t, agent.ask(t, "edit"), belay.ToolDeny, why)
	if n := called.Load(); n != 1 {
		t.Errorf("the webhook was called %d times, want once, before the files changed", n)
	}
	if err := lease.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "not tomorrow")
	wantVerdict(t, agent.ask(t, "edit"), belay.ToolPass, "")
}

// If a file of a space cannot be read, the space is not trusted, even if it was trusted
// before.
//
// SPEC W-06
func TestFilesThatCannotBeReadAreNotTrusted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("hooks/gate.yaml", gateAndLog)
	p.put("hooks/check.sh", denies)
	agent := p.newAgent(nil)
	lease := agent.install(t, p.trusted(hook.OriginProject))
	if err := syscall.Mkfifo(filepath.Join(p.dir, "hooks", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "cannot read the files of project, so they are not trusted: ")
	if !lease.Changed() {
		t.Error("the files count as what was installed")
	}
	if err := lease.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "the loaded version stays") {
		t.Errorf("reload: %v", err)
	}
}

// A revoked grant has an effect at once, before the space is reloaded.
//
// SPEC W-05, W-06
func TestAGrantThatIsTakenBack(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	p := newPlace(t)
	p.put("hooks/gate.yaml", "hooks:\n  - id: far\n    phase: tool.pre\n    webhook: "+server.URL+"/x\n")
	agent := p.newAgent(&space.Options{Declare: declare.Options{Allowlist: []string{server.URL + "/"}}})
	lease := agent.install(t, p.trusted(hook.OriginProject, space.GrantWebhook))
	wantVerdict(t, agent.ask(t, "write"), belay.ToolPass, "")
	p.trusted(hook.OriginProject) // trusts the directory without the grant
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "the grant webhook is missing")
	if !lease.Changed() {
		t.Error("nobody would notice that the grant is gone")
	}
}

// A directory has its grants until its last lease is unloaded. Unloading a lease twice
// counts once.
//
// SPEC W-05
func TestGrantsHoldUntilTheLastLeaseIsUnloaded(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("manifest.json", `{"id": "acme", "name": "Acme", "version": "1.0.0"}`)
	first := p.newAgent(nil)
	second := *first
	target := *p.newAgent(nil).target // another agent with the same host
	second.target = &target
	acme := hook.Origin{Kind: hook.OriginSpace, Name: "acme"}
	granted := hook.DefaultGrants(acme) | hook.CanRewriteInput
	s := p.trusted(hook.OriginSpace, "rewrite_input")
	one, two := first.install(t, s), second.install(t, s)
	for range 2 {
		if err := one.Unload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := first.host.Grants(acme); got != granted {
		t.Errorf("while it is installed once more acme may %q, want %q", got.Names(), granted.Names())
	}
	if err := two.Unload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := first.host.Grants(acme); got != hook.DefaultGrants(acme) {
		t.Errorf("once it is gone acme may %q", got.Names())
	}
}

// If a reload fails at its last step, the grants, the agents and the hooks do not change.
//
// SPEC W-02, W-05
func TestAReloadThatFailsLateTakesNothingAway(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("manifest.json", `{"id": "acme", "name": "Acme", "version": "1.0.0"}`)
	p.put("hooks/gate.yaml", "hooks:\n  - id: no\n    phase: tool.pre\n    action: {deny: closed}\n")
	p.put("agents/helper.md", "---\ndescription: helps\n---\nHelp.\n")
	agent := p.newAgent(nil)
	lease := agent.install(t, p.trusted(hook.OriginSpace, "rewrite_input"))
	acme := hook.Origin{Kind: hook.OriginSpace, Name: "acme"}
	granted := agent.host.Grants(acme)
	// Another hook already has the id that the changed file uses, so only the last step
	// fails.
	if _, err := agent.target.Hooks.Install(belay.ToolPre.On("acme/taken", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.ToolVerdict{}, nil
	}, nil)); err != nil {
		t.Fatal(err)
	}
	p.put("hooks/gate.yaml", "hooks:\n  - id: no\n    phase: tool.pre\n    action: {deny: closed}\n  - id: taken\n    phase: tool.pre\n    action: {deny: twice}\n")
	p.put("agents/helper.md", "---\ndescription: helps otherwise\n---\nHelp.\n")
	p.trusted(hook.OriginSpace) // trusts the directory without the grant
	if err := lease.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "the loaded version stays") {
		t.Fatalf("reload: %v", err)
	}
	if got := agent.host.Grants(acme); got != granted {
		t.Errorf("acme may %q, want %q as before", got.Names(), granted.Names())
	}
	wantVerdict(t, agent.ask(t, "x"), belay.ToolDeny, "closed")
	if all := agent.target.Subagents.List(); len(all) != 1 || all[0].Description != "helps" {
		t.Errorf("the agents are %+v, want the one of before", all)
	}
}

// The grants of a space apply only to the files that were trusted. If files have changed,
// the space has no grants, both after Install and after Reload.
//
// SPEC W-05, W-06
func TestChangedFilesHaveNoGrants(t *testing.T) {
	t.Parallel()
	acme := hook.Origin{Kind: hook.OriginSpace, Name: "acme"}
	none, granted := hook.DefaultGrants(acme), hook.DefaultGrants(acme)|hook.CanRewriteInput
	for _, reload := range []bool{false, true} {
		p := newPlace(t)
		p.put("manifest.json", `{"id": "acme", "name": "Acme", "version": "1.0.0"}`)
		p.put("hooks/gate.yaml", "hooks:\n  - id: no\n    phase: tool.pre\n    action: {deny: closed}\n")
		agent, trusted := p.newAgent(nil), p.trusted(hook.OriginSpace, "rewrite_input")
		var lease *space.Lease
		if reload {
			lease = agent.install(t, trusted)
			if got := agent.host.Grants(acme); got != granted {
				t.Fatalf("before the change acme may %q, want %q", got.Names(), granted.Names())
			}
		}
		p.put("hooks/gate.yaml", "hooks:\n  - id: no\n    phase: tool.pre\n    action: {deny: changed}\n")
		if reload {
			if err := lease.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
		} else {
			agent.install(t, p.load(hook.OriginSpace))
		}
		wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "changed")
		if got := agent.host.Grants(acme); got != none {
			t.Errorf("after the change acme may %q, want %q", got.Names(), none.Names())
		}
	}
}
