package declare_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/internal/filetest"
)

// place is a directory with hook files.
type place struct {
	t   testing.TB
	dir string
}

func newPlace(t testing.TB) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &place{t, dir}
}

// put writes a file. A file that begins with #! becomes executable.
func (p *place) put(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	mode := os.FileMode(0o600)
	if strings.HasPrefix(text, "#!") {
		mode = 0o700
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		p.t.Fatal(err)
	}
	filetest.AwaitForks() // hooks execute it
	return path
}

// load writes text to hooks.yaml and loads it.
func (p *place) load(text string) []*declare.Declaration {
	p.t.Helper()
	declared, err := declare.Load(p.dir, p.put("hooks.yaml", text))
	if err != nil {
		p.t.Fatal(err)
	}
	return declared
}

// set makes a set from hooks.yaml. The set is closed when the test ends.
func (p *place) set(text string, opts *declare.Options) *declare.Set {
	p.t.Helper()
	set, err := declare.New(p.load(text), hook.Origin{Kind: hook.OriginOperator}, opts)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := set.Close(); err != nil {
			p.t.Error(err)
		}
	})
	return set
}

func only(t testing.TB, set *declare.Set) hook.Subscription {
	t.Helper()
	subs := set.Subscriptions()
	if len(subs) != 1 {
		t.Fatalf("%d subscriptions, want 1", len(subs))
	}
	return subs[0]
}

// gate returns a hook file with one hook at tool.pre, which has the given lines.
func gate(lines ...string) string {
	return "hooks:\n  - id: gate\n    phase: tool.pre\n    " + strings.Join(lines, "\n    ") + "\n"
}

// write is the input of tool.pre for a call of the tool write.
const write = `{"id": "call-1", "tool": "write", "input": {"path": "/srv/prod/a.txt"}}`

type toolTrial = hooktest.Trial[belay.ToolCall, belay.ToolVerdict]

// try runs the only hook of a set for a tool call.
func try(t testing.TB, set *declare.Set, input string) *toolTrial {
	t.Helper()
	return hooktest.Try(t, belay.ToolPre, only(t, set), hooktest.Input(t, belay.ToolPre, input), &hooktest.Options{Timeout: time.Minute})
}

// sh runs a gate whose command is the given script.
func sh(t testing.TB, script string) *toolTrial {
	t.Helper()
	p := newPlace(t)
	p.put("check.sh", "#!/bin/sh\n"+script+"\n")
	return try(t, p.set(gate("command: [./check.sh]", "timeout: 30s"), nil), write) // a long timeout, because the machine may be busy
}

func code(trial *toolTrial) codes.Code {
	if len(trial.Diagnostics) == 0 {
		return ""
	}
	return trial.Diagnostics[0].Code
}

// wantFault fails the test unless err has exactly one fault, at the given line, with the
// text.
func wantFault(t testing.TB, err error, line int, text string) {
	t.Helper()
	faults := declare.Faults(err)
	if len(faults) != 1 || faults[0].Line != line || !strings.Contains(faults[0].Message, text) {
		t.Errorf("err = %v, want one fault at line %d with %q in it", err, line, text)
	}
}

var errUntrusted = errors.New("run belay trust")

func (p *place) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, filepath.FromSlash(name)))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

func (p *place) removeAll() {
	p.t.Helper()
	if err := os.RemoveAll(p.dir); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) has(name string) bool {
	_, err := os.Lstat(filepath.Join(p.dir, filepath.FromSlash(name)))
	return err == nil
}

var operator = hook.Origin{Kind: hook.OriginOperator}

// envelope has the fields of an envelope that tests use.
type envelope struct {
	V       int    `json:"v"`
	Phase   string `json:"phase"`
	Session string `json:"session"`
	Input   struct {
		Tool string `json:"tool"`
	} `json:"input"`
}
