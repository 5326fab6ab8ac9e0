// Package vendorhooktest tests the hooks of a vendor with real commands: it asks them about
// an event, and compares what they read and what Belay understood.
package vendorhooktest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/phasejson"
)

// Case is one event and one command.
type Case struct {
	// Event and Matcher are the vendor's. Hook are more keys of the hook, as JSON, such as
	// "async": true.
	Event, Matcher, Hook string
	// Phase and Input are Belay's. PROJECT in the input is the project.
	Phase, Input string
	// Script is a shell script. Its standard input is kept.
	Script string
	// Stdin are fields that the script must have read, as JSON. PROJECT is the project.
	Stdin string
	// Want is the answer of the hook at the phase, as JSON. If the hook failed, it is the
	// decision of the phase.
	Want string
	// Why is a part of the reason why the hook did not run, or how it failed.
	Why string
	// Silent means that the script must not run.
	Silent bool
}

// Read reads a hook file of the vendor.
type Read func(t *testing.T, project string, file []byte) []*declare.Declaration

// Run runs the cases.
func Run(t *testing.T, read Read, cases map[string]Case) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.run(t, read)
		})
	}
}

func (c *Case) run(t *testing.T, read Read) {
	t.Helper()
	project, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\ncat > stdin.json\n" + c.Script + "\n"
	if err := os.WriteFile(filepath.Join(project, "hook.sh"), []byte(script), 0o700); err != nil { // a program
		t.Fatal(err)
	}
	extra := ""
	if c.Hook != "" {
		extra = ", " + c.Hook
	}
	file := fmt.Sprintf(`{"hooks": {%q: [{"matcher": %q, "hooks": [{"type": "command", "command": "./hook.sh"%s}]}]}}`, c.Event, c.Matcher, extra)
	x := Ask(t, read(t, project, []byte(file)), project, c.Phase, strings.ReplaceAll(c.Input, "PROJECT", project))
	text, err := os.ReadFile(filepath.Join(project, "stdin.json"))
	if ran := err == nil; ran == c.Silent {
		t.Fatalf("the hook ran: %t. Explanation: %+v", ran, x)
	}
	if c.Stdin != "" {
		wantFields(t, text, strings.ReplaceAll(c.Stdin, "PROJECT", project))
	}
	why, said := "", ""
	for _, e := range x.Entries {
		why += e.Why
		said += string(e.Said)
	}
	if said == "" {
		said = string(x.Merged)
	}
	if c.Why != "" && !strings.Contains(why, c.Why) || c.Why == "" && !c.Silent && why != "" {
		t.Errorf("why is %q, want %q", why, c.Why)
	}
	if got := strings.ReplaceAll(said, project, "PROJECT"); !Same(got, c.Want) {
		t.Errorf("the answer is\n%s\nwant\n%s", got, c.Want)
	}
}

// Ask asks hooks about an input of a phase.
func Ask(t *testing.T, hooks []*declare.Declaration, project, phase, input string) hook.Explanation {
	t.Helper()
	set, err := declare.New(hooks, hook.Origin{Kind: hook.OriginHost}, &declare.Options{Project: project})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() }) // Close returns no error
	rt, err := hook.NewRuntime(belay.Phases(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Install(set.Subscriptions()...); err != nil {
		t.Fatal(err)
	}
	wire, err := phasejson.New(phase)
	if err != nil {
		t.Fatal(err)
	}
	snap := rt.Snapshot()
	defer func() { _ = snap.Release(t.Context()) }() // nothing is recorded
	x, err := wire.Explain(t.Context(), snap, hook.Scope{Session: "s1", Turn: "t1", Step: 1, Agent: "main"}, json.RawMessage(input))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func wantFields(t *testing.T, text []byte, want string) {
	t.Helper()
	var got, wanted map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("stdin is not JSON: %v\n%s", err, text)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatalf("want: %v\n%s", err, want)
	}
	for key, value := range wanted {
		if fmt.Sprint(got[key]) != fmt.Sprint(value) {
			t.Errorf("stdin: %s is %v, want %v", key, got[key], value)
		}
	}
}

// Same reports whether two texts are the same JSON. No text is an empty object.
func Same(a, b string) bool {
	decode := func(s string) string {
		v := map[string]any{}
		if json.Unmarshal([]byte(s), &v) != nil && s != "" {
			return "not JSON: " + s
		}
		return fmt.Sprint(v)
	}
	return decode(a) == decode(b)
}
