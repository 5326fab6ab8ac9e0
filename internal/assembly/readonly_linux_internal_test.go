package assembly

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/sandbox"
)

// A program with a harmless name can be harmful: here a script replaces ls. The project
// still does not change. The same script under the name touch shows that the script would
// change the project.
//
// SPEC P-13
func TestHarmlessCommandsCannotChangeTheProject(t *testing.T) {
	programs := outside(t)
	for _, name := range []string{"ls", "touch"} {
		script := "#!/bin/sh\necho \"$0\" > changed; echo x > \"$TMPDIR/belay-readonly-$PPID\" && rm \"$TMPDIR/belay-readonly-$PPID\" && echo temporary\n"
		filetest.WriteProgram(t, filepath.Join(programs, name), script)
	}
	t.Setenv("TMPDIR", os.TempDir())
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	r := newRoom(t, "", nil).sandboxed()
	changed := filepath.Join(r.floor.settings.Project, "changed")

	a, result := r.run("ls")
	if _, err := os.Lstat(changed); err == nil || a.Decision != belay.ToolPass {
		t.Errorf("a command of zone 0 changed the project: %+v, %s", a, result.Text)
	}
	if !strings.Contains(result.Text, "temporary") || !strings.Contains(result.Text, "Read-only file system") && !strings.Contains(result.Text, "denied") {
		t.Errorf("want temporary files to work and the project not: %s", result.Text)
	}
	if _, result = r.run("touch x"); result.IsError {
		t.Errorf("%s", result.Text)
	}
	if _, err := os.Lstat(changed); err != nil {
		t.Errorf("the control did not change the project: %v", err)
	}
}

// In read-only mode no command can change the project, whatever its zone. The test runs
// denied commands too, as if the floor had made a mistake.
//
// SPEC P-13
func TestReadOnlyModeKeepsTheProject(t *testing.T) {
	t.Parallel()
	files := map[string]string{"change.sh": "#!/bin/sh\necho x > changed\n", "roots/a": ""}
	for _, test := range []struct {
		mode, command string
		changes       bool
	}{
		{"read-only", "./change.sh", false},
		{"read-only", "touch changed", false},
		{"read-only", "cp change.sh changed", false},
		{"build", "./change.sh", true},
		{"build", "cp change.sh changed", true},
	} {
		r := newRoomIn(t, test.mode, "", files).sandboxed()
		a, result := r.run(test.command)
		_, err := os.Lstat(filepath.Join(r.floor.settings.Project, "changed"))
		if changed := err == nil; changed != test.changes || result.IsError == test.changes {
			t.Errorf("%s in %s mode: changed %t (%+v): %s", test.command, test.mode, changed, a, result.Text)
		}
	}
}

// The policy of a harmless command protects the project and the roots, wherever they are.
//
// SPEC P-13
func TestPolicyOfHarmlessCommands(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r := newRoom(t, "permit: {roots: ["+root+"]}\nsandbox: {write: ["+t.TempDir()+"]}\n", nil).sandboxed()
	for command, harmless := range map[string]bool{"ls": true, "git status": true, "cat go.mod | wc -l": true, "touch x": false, "go build ./...": false, "echo x > y": false} {
		e := r.floor.Explain(t.Context(), "shell", []byte(`{"command":"`+command+`"}`))
		p := r.floor.policy(e)
		for _, dir := range []string{r.floor.settings.Project, root} {
			if kept := below(dir, p.Protect) || !below(dir, p.Write); kept != harmless {
				t.Errorf("%s: zone %d: %s is kept: %t, want %t: %+v", command, e.Zone, dir, kept, harmless, p)
			}
		}
		if len(p.Write) == 0 || p.Bounds.Memory == 0 || p.Bounds.Processes != defaultProcesses || p.Bounds.CPUTime == 0 {
			t.Errorf("%s: %+v", command, p)
		}
	}
	if e := (&permit.Explanation{Zone: permit.ZoneBuild, Mode: permit.ReadOnly}); !readsOnly(e) {
		t.Error("read-only mode lets the project be changed")
	}
}

// A command that exceeds a limit ends with a tool error that names the limit and the
// setting. With a larger limit the same script succeeds.
//
// SPEC P-13
func TestBoundsEndAsErrorsOfTheTool(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"bomb.sh": "i=0; while [ $i -lt 150 ]; do sleep $1 & i=$((i+1)); done; echo started; wait\n",
		"hog.sh":  "head -c 300000000 /dev/zero | tail -n 1 | (sleep $1; wc -c)\n",
		"loop.sh": "i=0; while [ $i -lt $1 ]; do i=$((i+1)); done; echo ended\n",
	}
	tight := newRoom(t, "sandbox: {memory: 100MB, processes: 50, cpu_time: 1s}\n", files).sandboxed()
	wide := newRoom(t, "", files)
	for _, test := range []struct{ script, long, short, says, ends string }{
		{"bomb.sh", "200", "1", "it had more than 50 processes and threads: the setting sandbox.processes changes this bound", "started"},
		{"hog.sh", "200", "1", "it used more than 100 MB of memory: the setting sandbox.memory changes this bound", "300000000"},
		{"loop.sh", "1000000000", "1000000", "it used more than 1s of CPU time: the setting sandbox.cpu_time changes this bound", "ended"},
	} {
		if _, result := tight.run("sh " + test.script + " " + test.long); !result.IsError || result.Class != belay.ClassFailed || !strings.Contains(result.Text, test.says) {
			t.Errorf("%s: %s: %s", test.script, result.Class, result.Text)
		}
		if _, result := wide.run("sh " + test.script + " " + test.short); result.IsError || !strings.Contains(result.Text, test.ends) {
			t.Errorf("the control of %s: %s: %s", test.script, result.Class, result.Text)
		}
	}
	if !tight.floor.box.Holds(sandbox.Usage) {
		t.Log("NOT COVERED: this sandbox does not hold bounds for all processes")
	}
}
