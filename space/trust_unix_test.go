//go:build unix

package space_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/space"
)

const gateAndLog = `hooks:
  - id: no-prod
    phase: tool.pre
    run: ./check.sh
  - id: witness
    phase: tool.post
    run: ./check.sh
`

const denies = "#!/bin/sh\necho 'not today' >&2\nexit 2\n"

// SPEC W-05, W-06
func TestACommandOfAProjectNeedsTrust(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("hooks/gate.yaml", gateAndLog)
	p.put("hooks/check.sh", denies)
	agent := p.newAgent(nil)
	lease := agent.install(t, p.load(hook.OriginProject))
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "not trusted yet: check them, then run `belay trust`")
	if n := noteAbout(t, lease.Notes(), "project/no-prod"); !n.Closed || n.Line != 2 {
		t.Errorf("the gate is noted as %+v", n)
	}
	if n := noteAbout(t, lease.Notes(), "project/witness"); n.Closed {
		t.Errorf("the other is noted as %+v", n)
	}
	if plan, err := agent.target.Hooks.Plan("tool.post"); err != nil || len(plan.Entries) != 0 || len(plan.Disabled) != 1 {
		t.Errorf("the plan of tool.post is %+v, %v: what is not trusted takes no part", plan, err)
	}

	p.trusted(hook.OriginProject)
	if !lease.Changed() {
		t.Error("trust has come, and it has not changed")
	}
	if err := lease.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "not today")
	if notes := lease.Notes(); len(notes) != 0 {
		t.Errorf("notes: %+v", notes)
	}

	// After any change of the script, the gate denies.
	p.put("hooks/check.sh", "#!/bin/sh\nexit 0\n")
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "have changed since they were trusted: run `belay trust --diff`")
	if err := lease.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "have changed since they were trusted")

	p.put("hooks/check.sh", denies)
	if err := lease.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "not today")

	if had, err := p.trust.Remove(p.dir); err != nil || !had {
		t.Fatal(had, err)
	}
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "not trusted yet")
}

// Any change that could make another program run revokes trust. Changes of files that hooks
// write do not.
//
// SPEC W-06
func TestWhatTakesTrustAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, p *place)
		stays  bool
	}{
		"a script":      {func(_ *testing.T, p *place) { p.put("hooks/check.sh", denies+"#\n") }, false},
		"a new file":    {func(_ *testing.T, p *place) { p.put("hooks/lib/more.py", "x = 1\n") }, false},
		"a declaration": {func(_ *testing.T, p *place) { p.put("hooks/gate.yaml", gateAndLog+"    timeout: 1s\n") }, false},
		"an agent":      {func(_ *testing.T, p *place) { p.put("agents/a.md", "---\ndescription: d\n---\nx\n") }, false},
		"a file gone": {func(t *testing.T, p *place) {
			if err := os.Remove(filepath.Join(p.dir, "hooks", "data.txt")); err != nil {
				t.Fatal(err)
			}
		}, false},
		"a mode": {func(t *testing.T, p *place) {
			if err := os.Chmod(filepath.Join(p.dir, "hooks", "data.txt"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, false},
		"the same size and time": {func(t *testing.T, p *place) {
			file := filepath.Join(p.dir, "hooks", "check.sh")
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			p.put("hooks/check.sh", strings.Replace(denies, "exit 2", "exit 0", 1))
			if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}, false},
		"another file in its place": {func(t *testing.T, p *place) {
			if err := os.Rename(p.put("hooks/other", strings.Replace(denies, "exit 2", "exit 0", 1)), filepath.Join(p.dir, "hooks", "check.sh")); err != nil {
				t.Fatal(err)
			}
		}, false},
		"what save_json writes": {func(_ *testing.T, p *place) { p.put("hooks/log/calls.jsonl", "{}\n") }, true},
		"a skill":               {func(_ *testing.T, p *place) { p.put("skills/x.md", "text") }, true},
		"something else":        {func(_ *testing.T, p *place) { p.put("belay.db", "text") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.put("hooks/gate.yaml", gateAndLog+"  - id: log\n    phase: tool.post\n    action: {save_json: log/calls.jsonl}\n")
			p.put("hooks/check.sh", denies)
			p.put("hooks/data.txt", "data")
			agent := p.newAgent(nil)
			lease := agent.install(t, p.trusted(hook.OriginProject))
			wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "not today")
			test.change(t, p)
			reason := "have changed since they were trusted"
			if test.stays {
				reason = "not today"
			}
			wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, reason)
			if lease.Changed() == test.stays {
				t.Errorf("changed: %t", lease.Changed())
			}
		})
	}
}

// If a directory is trusted as a project, it is not trusted as a space, and vice versa.
//
// SPEC W-06
func TestTrustIsNotPassedOn(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("manifest.json", `{"id": "acme"}`)
	p.put("hooks/gate.yaml", gateAndLog)
	p.put("hooks/check.sh", denies)
	p.trusted(hook.OriginSpace)
	agent := p.newAgent(nil)
	agent.install(t, p.load(hook.OriginProject))
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "not trusted yet")
}

const rewrites = `hooks:
  - id: careful
    phase: tool.pre
    run: ./careful.sh
    capabilities: [block, rewrite_input]
  - id: polish
    phase: tool.post
    run: ./careful.sh
    capabilities: [rewrite_output]
`

// SPEC W-05, H-15
func TestRewritingNeedsAGrantByName(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("manifest.json", `{"id": "acme"}`)
	p.put("hooks/careful.yaml", rewrites)
	p.put("hooks/careful.sh", "#!/bin/sh\necho '{\"input\": {\"dry\": true}}'\n")
	s := p.trusted(hook.OriginSpace)
	if needs := strings.Join(s.Needs(), " "); needs != "rewrite_input rewrite_output" {
		t.Errorf("it needs %s", needs)
	}
	agent := p.newAgent(nil)
	lease := agent.install(t, s)
	if v := agent.ask(t, "write"); v.Decision != belay.ToolDeny || len(v.Input) != 0 {
		t.Fatalf("without a grant the verdict is %+v: a gate that answers beyond its grants is closed", v)
	}
	if n := noteAbout(t, lease.Notes(), "acme/careful"); n.Closed || !n.Limited || !strings.Contains(n.Reason, "the grant rewrite_input is missing") || !strings.Contains(n.Reason, "--grant rewrite_input") {
		t.Errorf("noted as %+v", n)
	}
	if n := noteAbout(t, lease.Notes(), "acme/polish"); n.Closed {
		t.Errorf("noted as %+v", n)
	}
	if _, err := p.trust.Add(s, "a person", "rewrite_inputs"); err == nil || !strings.Contains(err.Error(), `did you mean "rewrite_input"?`) {
		t.Errorf("a grant that there is not: %v", err)
	}
	p.trusted(hook.OriginSpace, "rewrite_input")
	if err := lease.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := agent.ask(t, "write"); v.Decision != belay.ToolPass || !strings.Contains(string(v.Input), `"dry"`) {
		t.Fatalf("with the grant the verdict is %+v, input %s", v, v.Input)
	}
	if notes := lease.Notes(); len(notes) != 1 || notes[0].ID != "acme/polish" {
		t.Errorf("one grant is not another: %+v", notes)
	}
}

// SPEC W-05
func TestAWebhookNeedsAGrant(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("hooks/hook.yaml", "hooks:\n  - id: out\n    phase: tool.pre\n    webhook: http://127.0.0.1:9/\n")
	agent := p.newAgent(nil)
	lease := agent.install(t, p.load(hook.OriginProject))
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "the grant webhook is missing") // trust alone would not help
	p.trusted(hook.OriginProject)
	if err := lease.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "the grant webhook is missing")
	p.trusted(hook.OriginProject, space.GrantWebhook)
	if err := lease.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The hook has the grant now, but the URL is not on the allowlist, so the gate denies.
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "add 127.0.0.1:9 to hooks.webhook_allowlist")
	if n := noteAbout(t, lease.Notes(), "project/out"); !n.Closed || !strings.Contains(n.Reason, "not on the operator's allowlist") {
		t.Errorf("noted as %+v", n)
	}
}

// If a webhook is a gate and its URL is not on the allowlist, the gate denies, even if it
// is set to fail open. Other webhooks with such a URL are not called.
//
// SPEC W-05, W-07
func TestAWebhookOffTheAllowlist(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("hooks/hook.yaml", `hooks:
  - {id: gate, phase: tool.pre, webhook: "https://other.example.com/", failure: open, match: {tools: [write]}}
  - {id: tell, phase: tool.post, webhook: "https://other.example.com/"}
  - {id: fine, phase: tool.post, webhook: "https://example.com/", after: [tell]}
`)
	agent := p.newAgent(&space.Options{Declare: declare.Options{Allowlist: []string{"example.com"}}})
	lease := agent.install(t, p.load(hook.OriginOperator))
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "not on the operator's allowlist")
	if n := noteAbout(t, lease.Notes(), "gate"); !n.Closed {
		t.Errorf("noted as %+v", n)
	}
	if n := noteAbout(t, lease.Notes(), "tell"); n.Closed {
		t.Errorf("noted as %+v", n)
	}
	for _, sub := range agent.target.Hooks.Subscriptions() {
		if off := sub.Options().Disabled; off != (sub.ID() == "tell") {
			t.Errorf("%s: off is %t", sub.ID(), off)
		}
	}
}

// SPEC W-05
func TestTheOperatorNeedsNobodysTrust(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("hooks/careful.yaml", rewrites)
	p.put("hooks/careful.sh", "#!/bin/sh\necho '{\"input\": {\"dry\": true}}'\n")
	agent := p.newAgent(nil)
	lease := agent.install(t, p.load(hook.OriginOperator))
	if v := agent.ask(t, "write"); v.Decision != belay.ToolPass || !strings.Contains(string(v.Input), `"dry"`) || len(lease.Notes()) != 0 {
		t.Fatalf("the verdict is %+v, notes %+v", v, lease.Notes())
	}
}

// SPEC W-07, P-11
func TestSwitches(t *testing.T) {
	t.Parallel()
	const hooks = gateAndLog + `  - id: ask-me
    phase: tool.pre
    match: { tools: [shell] }
    action: approve
  - id: off-limits
    phase: tool.pre
    match: { tools: [edit] }
    action: deny
`
	p := newPlace(t)
	p.put("hooks/gate.yaml", hooks)
	p.put("hooks/check.sh", denies)
	t.Run("disable", func(t *testing.T) {
		t.Parallel()
		agent := p.newAgent(&space.Options{Disable: true})
		agent.install(t, p.load(hook.OriginOperator))
		wantVerdict(t, agent.ask(t, "write"), belay.ToolPass, "")
		wantVerdict(t, agent.ask(t, "edit"), belay.ToolPass, "")
		wantVerdict(t, agent.ask(t, "shell"), belay.ToolAsk, "")
	})
	t.Run("disable by id", func(t *testing.T) {
		t.Parallel()
		agent := p.newAgent(&space.Options{DisableIDs: []string{"no-prod", "ask-me"}})
		lease := agent.install(t, p.load(hook.OriginOperator))
		wantVerdict(t, agent.ask(t, "write"), belay.ToolPass, "")
		wantVerdict(t, agent.ask(t, "edit"), belay.ToolDeny, "")
		wantVerdict(t, agent.ask(t, "shell"), belay.ToolAsk, "")
		if n := noteAbout(t, lease.Notes(), "ask-me"); !strings.Contains(n.Reason, "it stays") {
			t.Errorf("noted as %+v", n)
		}
	})
	t.Run("no commands", func(t *testing.T) {
		t.Parallel()
		agent := p.newAgent(&space.Options{NoCommands: true})
		lease := agent.install(t, p.load(hook.OriginOperator))
		wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "switched off all commands")
		if n := noteAbout(t, lease.Notes(), "witness"); n.Closed {
			t.Errorf("noted as %+v", n)
		}
	})
}

func TestChangesSinceTrust(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("hooks/gate.yaml", gateAndLog)
	p.put("hooks/check.sh", denies)
	p.put("hooks/old.txt", "old\n")
	s := p.trusted(hook.OriginProject)
	r, err := p.trust.Lookup(s.Dir)
	if err != nil || r == nil || r.By != "a person" {
		t.Fatal(r, err)
	}
	if changes := s.Changes(r); len(changes) != 0 {
		t.Errorf("nothing has changed, and there is %+v", changes)
	}
	p.put("hooks/check.sh", "#!/bin/sh\nexit 0\n")
	p.put("hooks/new.txt", "new\n")
	if err := os.Remove(filepath.Join(p.dir, "hooks", "old.txt")); err != nil {
		t.Fatal(err)
	}
	changes := p.load(hook.OriginProject).Changes(r)
	if len(changes) != 3 || changes[0].Name != "hooks/check.sh" || changes[0].Before != denies || changes[0].After != "#!/bin/sh\nexit 0\n" ||
		changes[1].Name != "hooks/new.txt" || !changes[1].New || changes[2].Name != "hooks/old.txt" || !changes[2].Gone || changes[2].Before != "old\n" {
		t.Errorf("the changes are %+v", changes)
	}
	if all := s.Changes(nil); len(all) != 3 || !all[0].New {
		t.Errorf("without a record: %+v", all)
	}
	if records, err := p.trust.Records(); err != nil || len(records) != 1 || records[0].Dir != s.Dir {
		t.Errorf("records: %+v, %v", records, err)
	}
}

// If a trust record is damaged, gates deny and Install fails.
func TestDamagedTrust(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("hooks/gate.yaml", gateAndLog)
	p.put("hooks/check.sh", denies)
	dir := t.TempDir()
	p.trust = space.OpenTrust(dir)
	s := p.trusted(hook.OriginProject)
	agent := p.newAgent(nil)
	agent.install(t, s)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "is damaged: remove it")
	if _, err := agent.host.Install(t.Context(), s, agent.target); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("installing with damaged trust: %v", err)
	}
}

// An origin may contribute only what was granted to its directory. This also applies to
// hooks that the host did not install.
//
// SPEC W-05
func TestGrantsOfAnOrigin(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("manifest.json", `{"id": "acme", "name": "Acme", "version": "1.0.0"}`)
	agent := p.newAgent(nil)
	acme, other := hook.Origin{Kind: hook.OriginSpace, Name: "acme"}, hook.Origin{Kind: hook.OriginSpace, Name: "other"}
	least := hook.DefaultGrants(acme)
	lease := agent.install(t, p.trusted(hook.OriginSpace, "rewrite_input"))
	if got := agent.host.Grants(acme); got != least|hook.CanRewriteInput {
		t.Errorf("acme may %q", got.Names())
	}
	if got := agent.host.Grants(other); got != least {
		t.Errorf("another may %q", got.Names())
	}
	if err := lease.Unload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := agent.host.Grants(acme); got != least {
		t.Errorf("once it is gone acme may %q", got.Names())
	}
}
