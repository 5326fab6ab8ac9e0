//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/belay-run/belay/internal/filetest"
)

// put writes a file into a project.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	filetest.WriteProgram(t, file, text)
}

const (
	soundHook  = "hooks:\n  - id: no\n    phase: tool.pre\n    action: {deny: not here}\n"
	brokenHook = "hooks:\n  - id: no\n    phase: tool.pre\n    acton: {deny: not here}\n"
)

// While "belay run" runs, it shows changed files that cannot be loaded: the file, the line,
// the mistake, and which version is active. It also shows that the files can be loaded
// again.
//
// SPEC C-13, W-02
func TestReloadsAreShown(t *testing.T) {
	t.Parallel()
	const manifest = `{"id": "acme", "name": "Acme", "version": "1.0.0", "description": "d"}`
	for _, test := range []struct {
		rule, file            string
		sound, broken, mended string
		space                 bool
		want                  []string
	}{
		{
			"a hook file of the project", ".belay/hooks/gate.yaml", soundHook, brokenHook, soundHook + "    priority: 1\n", false,
			[]string{"warning: changed files of the project cannot be loaded: the version that was loaded before stays active until you correct them\n", "    .belay/hooks/gate.yaml:4: ", `"acton" (did you mean "action"?)`},
		},
		{
			"a hook file that is restored", ".belay/hooks/gate.yaml", soundHook, "hooks: [\n", soundHook, false,
			[]string{"warning: changed files of the project cannot be loaded", "    .belay/hooks/gate.yaml:"},
		},
		{
			"the MCP servers of the project", ".belay/mcp.json", `{"mcpServers": {}}`, `{"mcpServers": {"a": {"comand": "x"}}}`, `{"mcpServers": { }}`, false,
			[]string{"warning: changed files of the project cannot be loaded", "    .belay/mcp.json:1: "},
		},
		{
			"the manifest of a space", "acme/manifest.json", manifest, strings.Replace(manifest, "version", "verzion", 1), strings.Replace(manifest, "Acme", "Acme & Co", 1), true,
			[]string{"warning: changed files of space acme cannot be loaded", "    acme/manifest.json:1: "},
		},
		{
			"an agent of a space", "acme/agents/helper.md", "---\ndescription: helps\n---\nHelp.\n", "---\ndescription: helps\ntool: [list]\n---\nHelp.\n", "---\ndescription: helps a lot\n---\nHelp.\n", true,
			[]string{"warning: changed files of space acme cannot be loaded", "    acme/agents/helper.md:3: "},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			dir := project(t, map[string]string{"s.yaml": hangs})
			put(t, dir, test.file, test.sound)
			if test.space {
				put(t, dir, "acme/manifest.json", manifest)
				if _, stderr, code := belay(t, dir, "space", "load", "acme"); code != 0 {
					t.Fatal(stderr)
				}
			}
			c := start(t, dir, "run", "--model", "scripted/s.yaml", "a task")
			c.await(c.stdout, "Let me look.")
			put(t, dir, test.file, test.broken)
			seen := c.await(c.stderr, test.want[len(test.want)-1])
			for _, want := range test.want {
				if !strings.Contains(seen, want) {
					t.Errorf("there is no %q in:\n%s", want, seen)
				}
			}
			put(t, dir, test.file, test.mended)
			if seen := c.await(c.stderr, "are loaded again and active"); strings.Contains(seen, "warning:") {
				t.Errorf("there are more warnings:\n%s", seen)
			}
			c.signal(syscall.SIGINT)
			c.ended()
		})
	}
}

// Belay reports at once that a hook no longer runs because its files changed.
//
// SPEC W-06
func TestLostTrustIsShown(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"s.yaml": hangs})
	put(t, dir, ".belay/hooks/gate.yaml", "hooks:\n  - {id: no, phase: tool.pre, run: ./no.sh}\n  - {id: seen, phase: tool.post, run: ./no.sh}\n")
	put(t, dir, ".belay/hooks/no.sh", "#!/bin/sh\n")
	if _, stderr, code := belay(t, dir, "trust", "--yes"); code != 0 {
		t.Fatal(stderr)
	}
	c := start(t, dir, "run", "--model", "scripted/s.yaml", "a task")
	c.await(c.stdout, "Let me look.")
	put(t, dir, ".belay/hooks/no.sh", "#!/bin/sh\nexit 0\n")
	seen := c.await(c.stderr, "hook project/seen does not run")
	for _, want := range []string{"  warning: hook project/no is closed (it denies): its files have changed since they were trusted: run `belay trust --diff`", "  warning: hook project/seen does not run: "} {
		if !strings.Contains(seen, want) {
			t.Errorf("there is no %q in:\n%s", want, seen)
		}
	}
	c.signal(syscall.SIGINT)
	c.ended()
}
