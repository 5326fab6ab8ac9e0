package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/sandbox"
)

func newFloor(dir string, sandboxed bool) (*permit.Floor, error) {
	floor, err := permit.New(filepath.Join(dir, "project"), &permit.Options{
		Mode: permit.Build, Sandboxed: sandboxed,
		Tools: map[string]permit.Profile{"search": {Zone: permit.ZoneSafe}},
	})
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	return floor, nil
}

var commands = []string{
	"go test ./...",
	"X=rm; $X -rf docs",
	"git push origin main",
	"sh -c 'belay approvals approve ap-1'",
	"rm -rf /",
}

// floor shows what the floor decides about commands. It also shows how the sandbox confines
// a command that the floor cannot analyse.
func (t *Tour) floor(ctx context.Context) {
	t.Heading("After the hooks, every call must pass the floor. What the floor decides about commands, in build mode")
	box := sandbox.Find(ctx, nil)
	floor, err := newFloor(t.dir, box.Kind() != sandbox.None)
	if t.Failed(err) {
		return
	}
	for _, command := range commands {
		input, err := json.Marshal(map[string]string{"command": command})
		if t.Failed(err) {
			return
		}
		e := floor.Explain(ctx, "shell", input)
		word := string(e.Decision)
		if word == "" {
			word = "pass"
		}
		t.Sayf("  %-36s  zone %d %-9s  %-4s  %s", command, e.Zone, e.Zone, word, e.By)
	}
	if box.Kind() == sandbox.None {
		t.Heading("The floor only reads a command, a sandbox confines it. This machine has no sandbox, so commands are one zone higher")
		return
	}
	t.Heading("The floor only reads a command, the sandbox confines it: " + string(box.Kind()))
	t.contain(ctx, box)
}

// contain runs a program of the project that tries to write outside the project.
func (t *Tour) contain(ctx context.Context, box *sandbox.Sandbox) {
	project, outside := filepath.Join(t.dir, "project"), filepath.Join(t.dir, "outside.txt")
	script := fmt.Sprintf("echo 1.2 > version.txt\necho hello > %s\n", outside)
	if t.Failed(os.WriteFile(filepath.Join(project, "tidy.sh"), []byte(script), 0o600)) {
		return
	}
	argv, err := box.Command(sandbox.Policy{Write: []string{project}}, []string{"sh", "tidy.sh"})
	if t.Failed(err) {
		return
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the sandbox says how
	cmd.Dir = project
	said, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Failed(err)
		return
	}
	t.Sayf("  ran       sh tidy.sh: the command itself does not show what the script does")
	t.Sayf("  inside    version.txt: %s", t.there(filepath.Join(project, "version.txt")))
	t.Sayf("  outside   outside.txt: %s", t.there(outside))
	t.Sayf("  said      %s", strings.TrimSpace(strings.ReplaceAll(string(said), t.dir+string(filepath.Separator), "")))
}

// there returns whether a file was written, in words.
func (t *Tour) there(name string) string {
	_, err := os.Stat(name)
	switch {
	case err == nil:
		return "written"
	case errors.Is(err, fs.ErrNotExist):
		return "not written"
	default:
		t.Failed(err)
		return "unknown"
	}
}
