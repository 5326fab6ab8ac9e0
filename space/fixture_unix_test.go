//go:build unix

package space_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/subagent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a directory for a test, with its own trust records.
type place struct {
	t     testing.TB
	dir   string
	trust *space.Trust
}

func newPlace(t testing.TB) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &place{t, dir, space.OpenTrust(filepath.Join(t.TempDir(), "trust"))}
}

// put writes a file. If the text begins with #!, the file is executable.
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

func (p *place) load(kind hook.OriginKind) *space.Space {
	p.t.Helper()
	s, err := space.Load(p.dir, kind)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// trusted loads the directory and records trust in it.
func (p *place) trusted(kind hook.OriginKind, grants ...string) *space.Space {
	p.t.Helper()
	s := p.load(kind)
	if _, err := p.trust.Add(s, "a person", grants...); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// agent is a host with a target for spaces.
type agent struct {
	host   *space.Host
	target *space.Target
}

// newAgent returns an agent. The host uses the trust records of the place.
func (p *place) newAgent(opts *space.Options) *agent {
	p.t.Helper()
	if opts == nil {
		opts = new(space.Options)
	}
	opts.Trust = p.trust
	host := space.NewHost(opts)
	runtime, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Grants: host.Grants})
	if err != nil {
		p.t.Fatal(err)
	}
	subagents, err := subagent.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return &agent{host, &space.Target{
		Hooks: runtime, Skills: skill.NewCatalog(p.t.Context()), Subagents: subagents,
		Build: func(context.Context, *subagent.Task, *subagent.Declaration, belay.Extension) (*belay.Agent, error) {
			panic("not called")
		},
	}}
}

// install installs a space. It is unloaded when the test ends.
func (a *agent) install(t testing.TB, s *space.Space) *space.Lease {
	t.Helper()
	lease, err := a.host.Install(t.Context(), s, a.target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lease.Unload(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return lease
}

// ask dispatches tool.pre for a call without arguments.
func (a *agent) ask(t testing.TB, tool string) belay.ToolVerdict {
	t.Helper()
	snapshot := a.target.Hooks.Snapshot()
	call := hooktest.Input(t, belay.ToolPre, `{"id":"call-1","tool":"`+tool+`","input":{}}`)
	outcome, err := belay.ToolPre.Dispatch(context.Background(), snapshot, call)
	if err = errors.Join(err, snapshot.Release(context.Background())); err != nil {
		t.Fatal(err)
	}
	verdict := outcome.Output
	if len(verdict.Input) == 0 && string(outcome.Input.Input()) != "{}" {
		verdict.Input = outcome.Input.Input()
	}
	return verdict
}

// wantVerdict asserts the decision and a part of the reason.
func wantVerdict(t testing.TB, got belay.ToolVerdict, want belay.ToolDecision, reason string) {
	t.Helper()
	if got.Decision != want || !strings.Contains(got.Reason, reason) {
		t.Fatalf("the verdict is %q, %q; want %q with %q", got.Decision, got.Reason, want, reason)
	}
}

func noteAbout(t testing.TB, notes []space.Note, id string) space.Note {
	t.Helper()
	for _, n := range notes {
		if n.ID == id {
			return n
		}
	}
	t.Fatalf("there is no note about %s in %+v", id, notes)
	return space.Note{}
}
