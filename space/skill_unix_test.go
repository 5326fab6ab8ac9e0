//go:build unix

package space_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/space"
)

// badSkills returns functions that write an invalid skill into a space.
func badSkills() map[string]func(t *testing.T, p *place) {
	file := func(name, text string) func(*testing.T, *place) {
		return func(_ *testing.T, p *place) { p.put(name, text) }
	}
	return map[string]func(t *testing.T, p *place){
		"front matter that is never closed": file("skills/bad/SKILL.md", "---\nname: bad\n"),
		"a key given twice":                 file("skills/bad/SKILL.md", "---\nname: bad\nname: worse\n---\nText.\n"),
		"a trigger that does not compile":   file("skills/bad/SKILL.md", "---\nname: bad\ntriggers:\n  - type: regex\n    pattern: (\n---\nText.\n"),
		"bytes that are no text":            file("skills/bad/SKILL.md", "\xff\xfe"),
		"a name that cannot be used":        file("skills/bad/SKILL.md", "---\nname: \"a\\nb\"\n---\nText.\n"),
		"a directory in place of the file":  file("skills/bad/SKILL.md/x", ""),
		"a YAML file without a text":        file("skills/bad.yaml", "name: bad\n"),
		"a SKILL.md beside the others":      file("skills/SKILL.md", "---\nname: bad\n"),
		"a pipe":                            func(t *testing.T, p *place) { t.Helper(); p.put("skills/bad/x", ""); p.pipe(t, "skills/bad/SKILL.md") },
		"a link out": func(t *testing.T, p *place) {
			t.Helper()
			p.link(t, filepath.Join(t.TempDir(), "elsewhere"), "skills/bad.md")
		},
		"a section that is a link out": func(t *testing.T, p *place) {
			t.Helper()
			elsewhere := filepath.Join(t.TempDir(), "elsewhere.md")
			if err := os.WriteFile(elsewhere, []byte("Text."), 0o600); err != nil {
				t.Fatal(err)
			}
			p.link(t, elsewhere, "skills/tidy/bad.md")
		},
	}
}

// If a skill of a space is invalid, the rest of the space is installed, above all its
// gates. The problem is reported with its path.
//
// SPEC K-06
func TestABadSkillDoesNotRefuseTheRestOfASpace(t *testing.T) {
	t.Parallel()
	for rule, spoil := range badSkills() {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.whole("closed")
			p.put("hooks/gate.yaml", "hooks:\n  - {id: no, phase: tool.pre, match: {tools: [write]}, action: {deny: closed}}\n")
			spoil(t, p)
			s, err := space.Load(p.dir, hook.OriginSpace)
			if err != nil {
				t.Fatalf("the space is refused: %v", err)
			}
			found := s.SkillProblems()
			if len(found) != 1 || found[0].Kind != skill.NotLoaded || !strings.HasPrefix(found[0].Path, filepath.Join(p.dir, "skills")) {
				t.Errorf("problems = %+v, want one that names the file", found)
			}
			if _, err := p.trust.Add(s, "a person"); err != nil {
				t.Errorf("the space cannot be trusted: %v", err)
			}
			agent := p.newAgent(nil)
			agent.install(t, s)
			if got, want := agent.trace(t), "acme/no, skill acme/tidy, agent reviewer"; got != want {
				t.Errorf("there is %s, want %s", got, want)
			}
			wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "closed")
		})
	}
}

// If skills is not a directory, there are no skills, but the rest of the space is loaded.
//
// SPEC K-06
func TestSkillsThatAreNoDirectoryDoNotRefuseASpace(t *testing.T) {
	t.Parallel()
	for rule, spoil := range map[string]func(t *testing.T, p *place){
		"a file": func(_ *testing.T, p *place) { p.put("skills", "") },
		"a link": func(t *testing.T, p *place) { t.Helper(); p.link(t, t.TempDir(), "skills") },
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.put("manifest.json", `{"id": "acme"}`)
			p.put("hooks/gate.yaml", "hooks:\n  - {id: no, phase: tool.pre, action: {deny: closed}}\n")
			spoil(t, p)
			s := p.load(hook.OriginSpace)
			if found := s.SkillProblems(); len(found) != 1 || found[0].Path != filepath.Join(p.dir, "skills") {
				t.Errorf("problems = %+v, want one about skills", found)
			}
			agent := p.newAgent(nil)
			agent.install(t, s)
			wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "closed")
		})
	}
}

// If a skill of an installed space becomes invalid, Reload still loads a new gate.
//
// SPEC K-06, W-02
func TestABadSkillDoesNotKeepASpaceFromBeingReloaded(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("manifest.json", `{"id": "acme"}`)
	p.put("skills/tidy/SKILL.md", "---\nname: tidy\ndescription: tidies\n---\nTidy.\n")
	agent := p.newAgent(nil)
	lease := agent.install(t, p.load(hook.OriginSpace))
	p.put("skills/tidy/SKILL.md", "---\nname: tidy\n")
	p.put("hooks/gate.yaml", "hooks:\n  - {id: no, phase: tool.pre, action: {deny: closed}}\n")
	if err := lease.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, agent.ask(t, "write"), belay.ToolDeny, "closed")
}
