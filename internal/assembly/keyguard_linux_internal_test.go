package assembly

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/sandbox"
)

const hiddenKey = "sk-hidden-0123456789"

// keyRoom returns a room with two key files of providers, and with the file of a token for a
// server. One key file is in the user's settings directory, through a link. The other files are
// in the project.
func keyRoom(t *testing.T) (r *room, files []string) {
	t.Helper()
	r = newRoom(t, "token_file: token\nproviders:\n  work: {url: 'http://127.0.0.1:9/v1', key_file: key}\n  second: {url: 'http://127.0.0.1:9/v1', key_file: ../../project/key}\n", map[string]string{
		"peek.sh": "#!/bin/sh\ncat \"$@\"\necho changed > \"$1\"\ncat key\ntrue\n",
		"key":     hiddenKey,
		"token":   hiddenKey,
		"plain":   "plain",
	}).sandboxed(sandbox.Hiding)
	user := filepath.Dir(r.floor.settings.UserFile)
	if err := os.WriteFile(filepath.Join(user, "real"), []byte(hiddenKey), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(user, "key")); err != nil {
		t.Fatal(err)
	}
	return r, []string{filepath.Join(user, "key"), filepath.Join(user, "real"), filepath.Join(r.floor.settings.Project, "key"), filepath.Join(r.floor.settings.Project, "token")}
}

// unchanged fails the test if a key file has changed.
func unchanged(t *testing.T, files []string) {
	t.Helper()
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || string(text) != hiddenKey {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
}

// A program of the project cannot read or change the key files of providers, wherever they
// are, nor the file of a token.
//
// SPEC P-12, V-05
func TestKeyFilesAreHiddenFromCommands(t *testing.T) {
	t.Parallel()
	r, files := keyRoom(t)
	list := strings.Join(files, "\n")
	if err := os.WriteFile(filepath.Join(r.floor.settings.Project, "list"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	_, result := r.run(`xargs ./peek.sh < list; cat plain`)
	if strings.Contains(result.Text, "0123456789") || !strings.Contains(result.Text, "plain") {
		t.Errorf("%s: %s", result.Class, result.Text)
	}
	unchanged(t, files)
}

// Commands of hooks cannot read or change key files either.
//
// SPEC P-12
func TestKeyFilesAreHiddenFromHooks(t *testing.T) {
	t.Parallel()
	r, files := keyRoom(t)
	e := &declare.Execution{Argv: append([]string{filepath.Join(r.floor.settings.Project, "peek.sh")}, append(files, "plain")...)}
	if err := New(nil).confineHook(t.Context(), r.floor.settings)(t.Context(), nil, e); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), e.Argv[0], e.Argv[1:]...)
	command.Dir = r.floor.settings.Project
	output, err := command.CombinedOutput()
	if err != nil || strings.Contains(string(output), "0123456789") || !strings.Contains(string(output), "plain") {
		t.Errorf("%v: %s", err, output)
	}
	unchanged(t, files)
}
