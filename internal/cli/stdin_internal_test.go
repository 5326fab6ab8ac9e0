package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
)

const oneAnswer = "steps:\n  - text: done\n"

// A task comes from the argument, from standard input, or from both. Without a command,
// "belay" runs it.
//
// SPEC U-04
func TestTasks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		args     []string
		want     string // the user's message
	}{
		{"an argument", "", []string{"run", "tidy up"}, "tidy up"},
		{"standard input", "tidy up\n", []string{"run", "-"}, "tidy up\n"},
		{"only standard input", "tidy up\n", []string{"run"}, "tidy up\n"},
		{"both", "+ a line\n", []string{"run", "review this"}, "review this\n\nStandard input:\n\n+ a line\n"},
		{"no command", "", []string{"tidy up"}, "tidy up"},
		{"no command, and standard input", "+ a line\n", []string{"review this"}, "review this\n\nStandard input:\n\n+ a line\n"},
		{"no command, only standard input", "tidy up\n", nil, "tidy up\n"},
		{"standard input with only spaces", " \n", []string{"run", "tidy up"}, "tidy up"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, map[string]string{"s.yaml": oneAnswer})
			d.in = c.in
			d.must(append([]string{"-m", "scripted/" + d.dir + "/s.yaml"}, c.args...)...)
			contains(t, d.out.String(), "done")
			d.in = ""
			d.must("sessions", "--json")
			var s struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal(d.out.Bytes(), &s); err != nil {
				t.Fatal(err)
			}
			d.must("store", "export", s.ID)
			if want, err := json.Marshal(c.want); err != nil || !strings.Contains(d.out.String(), string(want)) {
				t.Errorf("the session has no message %s: %s", want, &d.out)
			}
		})
	}
}

// What cannot be a task is an error that says what to do, and nothing runs.
//
// SPEC U-04
func TestNoTasks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		args     []string
		want     string
	}{
		{"nothing", "", []string{"run"}, "there is no task"},
		{"an empty argument", "", []string{"run", " "}, "the task is empty"},
		{"an empty file", "", []string{"run", "-"}, "standard input had nothing to read"},
		{"a word is a misspelled command", "", []string{"chatt"}, `unknown command "chatt" for "belay" (did you mean "chat"?)`},
		{"two texts", "", []string{"tidy up", "then stop"}, "unknown command"},
		{"not text", "\xff\xfe", []string{"run", "review this"}, "standard input is not text"},
		{"too much", strings.Repeat("x", mostPiped+1), []string{"run", "review this"}, "more than 1 MiB"},
		{"an unknown format", "", []string{"run", "--output-format", "jsom", "tidy up"}, `there is no output format "jsom"`},
		{"two formats", "", []string{"run", "--json", "--output-format", "json", "tidy up"}, "exclude each other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, map[string]string{"s.yaml": oneAnswer})
			d.in = c.in
			if code := d.run(append(c.args, d.model())...); code != exitUsage {
				t.Errorf("exit code %d: %s", code, &d.err)
			}
			contains(t, d.err.String(), c.want)
			if d.out.Len() > 0 {
				t.Errorf("something ran: %s", &d.out)
			}
		})
	}
	d := newDesk(t, nil)
	d.must()
	contains(t, d.out.String(), "USAGE") // without a terminal and without input
}

// A pipe that stays open and empty does not stop a task.
//
// SPEC U-04
func TestSilentPipe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, other := io.Pipe()
		var said bytes.Buffer
		a := &app{in: in, out: io.Discard, err: &said}
		task, err := a.task(t.Context(), &runOptions{}, []string{"tidy up"})
		if task != "tidy up" || err != nil {
			t.Errorf("the task is %q, %v", task, err)
		}
		contains(t, said.String(), "nothing came from standard input for 3s")
		_ = other.Close() // ends the reader
		synctest.Wait()
	})
}

// The terminal and /dev/null are no input for a task.
//
// SPEC U-04
func TestInputs(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	for _, c := range []struct {
		name string
		a    *app
		want bool
	}{
		{"a terminal", &app{in: strings.NewReader("x"), inTerminal: true}, false},
		{"/dev/null", &app{in: null}, false},
		{"a pipe", &app{in: strings.NewReader("x")}, true},
	} {
		if got := c.a.hasInput(); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// --output-format json prints one object, and stream-json prints every event.
//
// SPEC U-04
func TestOutputFormats(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": oneAnswer})
	d.must("run", "--output-format", "json", d.model(), "tidy up")
	var end belay.Event
	if err := json.Unmarshal(d.out.Bytes(), &end); err != nil || end.Kind != belay.EventTurnEnd || end.End == nil || end.End.Text != "done" {
		t.Errorf("the output is %s, %v", &d.out, err)
	}
	d.must("run", "--output-format", "stream-json", d.model(), "tidy up")
	if lines := strings.Count(d.out.String(), "\n"); lines < 3 || !strings.Contains(d.out.String(), `"type":"turn_start"`) {
		t.Errorf("the output has %d lines: %s", lines, &d.out)
	}
}

// A backup is a whole store in a new file. An existing file is never replaced.
//
// SPEC U-04
func TestStoreBackup(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": oneAnswer})
	d.must("run", "--as", "kept", d.model(), "tidy up")
	copied := filepath.Join(d.dir, "copy.db")
	d.must("store", "backup", copied)
	contains(t, d.out.String(), "copy.db: ")
	d.must("--store", copied, "show", "kept")
	contains(t, d.out.String(), "tidy up", "done")
	if code := d.run("store", "backup", copied); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	contains(t, d.err.String(), "exists already: name a new file")
}
