package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
)

// desk runs commands in a directory of its own.
type desk struct {
	t        *testing.T
	dir      string
	hooks    []hook.Subscription
	environ  []string
	in       string
	out, err bytes.Buffer
}

func newDesk(t *testing.T, scripts map[string]string) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir()}
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d *desk) run(args ...string) int {
	d.t.Helper()
	return d.runIn(d.t.Context(), args...)
}

func (d *desk) runIn(ctx context.Context, args ...string) int {
	d.t.Helper()
	d.out.Reset()
	d.err.Reset()
	a := &app{in: strings.NewReader(d.in), out: &d.out, err: &d.err, width: plainWidth, hooks: d.hooks, userDir: filepath.Join(d.dir, "user"), environ: append([]string{}, d.environ...)}
	root := a.root()
	root.SetArgs(append([]string{"-C", d.dir}, args...))
	err := root.ExecuteContext(ctx)
	if err != nil {
		d.err.WriteString(err.Error() + "\n")
	}
	return exitCode(err)
}

// must runs a command and fails the test unless the command succeeds.
func (d *desk) must(args ...string) {
	d.t.Helper()
	if code := d.run(args...); code != exitOK {
		d.t.Fatalf("%v: exit code %d: %s", args, code, &d.err)
	}
}

// model returns the flag that makes s.yaml in this directory the model's script.
func (d *desk) model() string { return "--model=scripted/" + filepath.Join(d.dir, "s.yaml") }

// agent makes an agent that uses the same store, as another program would.
func (d *desk) agent(steps []scripted.Step, opts belay.Options) *belay.Agent {
	d.t.Helper()
	path := filepath.Join(d.dir, ".belay", "belay.db")
	if err := assembly.MakeHome(filepath.Dir(path)); err != nil {
		d.t.Fatal(err)
	}
	store, err := sqlite.Open(d.t.Context(), path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	opts.Store = store
	agent, err := belay.New(scripted.New(steps, nil), &opts)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := agent.Close(context.Background()); err != nil {
			d.t.Error(err)
		}
		if err := store.Close(); err != nil {
			d.t.Error(err)
		}
	})
	return agent
}

// contains fails the test for each part that is not in the text.
func contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in:\n%s", want, text)
		}
	}
}
