package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/config"
)

// Memory is off by default, and its file is beside the user's settings. A project can only
// restrict it.
func TestMemory(t *testing.T) {
	t.Parallel()
	o := files(t, "", "")
	if l := load(t, o); l.Memory != (config.Memory{Mode: "off", File: filepath.Join(o.UserDir, "belay", "memory.db")}) {
		t.Errorf("%+v, want that it is off, and beside the user's settings", l.Memory)
	}
	o = files(t, "memory: {mode: on}\n", "memory: {mode: read}\n")
	if l := load(t, o); l.Memory.Mode != "read" {
		t.Errorf("the mode is %q, want what the project says, which is less", l.Memory.Mode)
	}
	o.Environ = []string{"BELAY_MEMORY_MODE=propose", "BELAY_MEMORY_FILE=m.db"}
	if l := load(t, o); l.Memory != (config.Memory{Mode: "propose", File: filepath.Join(o.Dir, "m.db")}) {
		t.Errorf("%+v, want what the variables say", l.Memory)
	}
	for _, test := range []struct{ rule, user, project, want string }{
		{"a project cannot switch it on", "", "memory: {mode: read}", "stricter"},
		{"a project cannot have more than the user gives", "memory: {mode: read}", "memory: {mode: propose}", "stricter"},
		{"a project cannot say where it is", "memory: {mode: on}", "memory: {file: m.db}", "where memories are kept"},
		{"there are no other modes", "memory: {mode: proposed}", "", `did you mean "propose"`},
		{"there are no other keys", "memory: {mod: off}", "", `did you mean "mode"`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(files(t, test.user+"\n", test.project+"\n"))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q in it", err, test.want)
			}
		})
	}
}
