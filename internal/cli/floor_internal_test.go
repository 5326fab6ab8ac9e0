package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
)

func TestModes(t *testing.T) {
	t.Parallel()
	// What each mode does with a tool that reads, one that writes, the shell, and one that nobody knows.
	tools := []string{"read", "write", "shell", "fetch"}
	want := map[string]string{
		"read-only":  "pass/deny/deny/deny",
		"strict":     "pass/ask/ask/ask",
		"standard":   "pass/pass/ask/ask",
		"build":      "pass/pass/ask/ask",
		"permissive": "pass/pass/ask/ask",
		"unattended": "pass/pass/deny/deny",
	}
	if len(want) != len(config.Modes()) {
		t.Fatalf("there are %d modes, want %d", len(config.Modes()), len(want))
	}
	for _, mode := range config.Modes() {
		var got []string
		for _, tool := range tools {
			call, err := belay.ToolPre.DecodeInput(hook.Scope{}, fmt.Appendf(nil, `{"id": "1", "tool": %q, "input": {}}`, tool))
			if err != nil {
				t.Fatal(err)
			}
			settings, err := config.Load(&config.Options{Dir: t.TempDir(), UserDir: t.TempDir(), Environ: []string{"BELAY_MODE=" + mode.Name}})
			if err != nil {
				t.Fatal(err)
			}
			a, err := floor{settings}.Authorize(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			word := string(a.Decision)
			if word == "" {
				word = "pass"
			} else if !strings.Contains(a.Reason, tool) || a.By != "mode "+mode.Name {
				t.Errorf("%s in %s mode: by %q for the reason %q: it must say which mode and which tool", tool, mode.Name, a.By, a.Reason)
			}
			got = append(got, word)
		}
		if all := strings.Join(got, "/"); all != want[mode.Name] {
			t.Errorf("%s mode does %s to %v, want %s", mode.Name, all, tools, want[mode.Name])
		}
	}
}

// The table of the modes: auto-run up to, ask up to.
func TestModeTable(t *testing.T) {
	t.Parallel()
	var got []string
	for _, m := range config.Modes() {
		got = append(got, fmt.Sprintf("%s %d/%d", m.Name, m.Auto, m.Ask))
	}
	want := "read-only 0/0, strict 0/5, standard 1/5, build 2/5, permissive 3/5, unattended 2/2"
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("the modes are %s, want %s", all, want)
	}
}
