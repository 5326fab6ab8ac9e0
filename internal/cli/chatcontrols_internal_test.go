package cli

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/chat"
)

// Terminals paste the paths of files in several ways.
func TestPathWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"look at a.png":                "look|at|a.png",
		"@shots/a.png please":          "shots/a.png|please",
		`'/tmp/my shot.png' "b c.jpg"`: "/tmp/my shot.png|b c.jpg",
		`/tmp/my\ shot.png`:            "/tmp/my shot.png",
		"file:///tmp/a.png":            "/tmp/a.png",
		"it isn't a path":              "it|isn't|a|path",
		"one\ntwo\tthree  ":            "one|two|three",
		"":                             "",
	} {
		if got := strings.Join(pathWords(text), "|"); got != want {
			t.Errorf("%q has the words %q, want %q", text, got, want)
		}
	}
}

// A message sends the images that it names, and says why it does not send one.
//
// SPEC U-02
func TestAttachments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"a.png": png, "b c.PNG": png, "text.png": []byte("no image"), "large.png": append(slices.Clone(png), make([]byte, mostImageBytes)...), "notes.md": []byte("x")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "dir.png"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		text  string
		parts int
		said  string
	}{
		{"see a.png", 1, "attached a.png"},
		{"see @a.png and 'b c.PNG'", 2, "attached a.png|attached b c.PNG"},
		{"see " + filepath.Join(dir, "a.png"), 1, "attached " + filepath.Join(dir, "a.png")},
		{"see text.png", 0, "text.png is not attached: it is not an image, but text/plain; charset=utf-8"},
		{"see large.png", 0, "large.png is not attached: it is larger than 5 MB"},
		{"see dir.png", 0, "dir.png is not attached: it is not a file"},
		{"see notes.md and nowhere.png", 0, ""},
		{strings.Repeat("a.png ", mostImages+3), mostImages, strings.TrimSuffix(strings.Repeat("attached a.png|", mostImages), "|")},
	} {
		parts, said := attachments(dir, test.text)
		if len(parts) != test.parts || strings.Join(said, "|") != test.said {
			t.Errorf("%q: %d parts and %q, want %d and %q", test.text, len(parts), said, test.parts, test.said)
		}
		for _, part := range parts {
			if part.Media == nil || part.Media.MIME != "image/png" {
				t.Errorf("%q: the part is %+v", test.text, part)
			}
		}
	}
}

// place opens a chat without a terminal in the project of a desk.
func (d *desk) place(script string) (*chatPlace, *chat.Controls) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, "s.yaml"), []byte(script), 0o600); err != nil {
		d.t.Fatal(err)
	}
	a := &app{in: strings.NewReader(""), out: &d.out, err: &d.err, width: plainWidth, dir: d.dir, userDir: filepath.Join(d.dir, "user"), environ: []string{"BELAY_MODEL=scripted/s.yaml", "BELAY_MODE=standard"}}
	settings, err := a.settings()
	if err != nil {
		d.t.Fatal(err)
	}
	o := &runOptions{resumes: true}
	w, err := a.begin(d.t.Context(), settings, o, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = w.Close() })
	at := &chatPlace{w: w, id: "one", session: w.Agent.Session("one")}
	c := a.chatControls(at)
	return at, &c
}

// SPEC U-02
// A rewind lists the messages of the user, says what happens to the files, and opens a new session
// with the files as they were, or as they are. The old session stays.
func TestChatRewind(t *testing.T) {
	t.Parallel()
	const script = `
steps:
  - calls: [{tool: write, input: {path: a.txt, content: first}}]
  - text: Done.
  - calls: [{tool: read, input: {path: a.txt}}]
  - calls: [{tool: write, input: {path: a.txt, content: second}}]
  - text: Done again.
`
	for _, keep := range []bool{false, true} {
		d := newDesk(t, nil)
		at, c := d.place(script)
		for _, text := range []string{"write it", "change it"} {
			if _, err := at.session.Turn(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		messages, err := c.Messages(t.Context(), "one")
		if err != nil || len(messages) != 2 || messages[0].Name != "change it" || messages[1].Name != "write it" {
			t.Fatalf("the messages are %+v (%v)", messages, err)
		}
		plan, err := c.RewindPlan(t.Context(), "one", messages[0].ID)
		if err != nil || !strings.Contains(plan, "a.txt") {
			t.Errorf("the plan is %q (%v)", plan, err)
		}
		if err := c.SetMode("one", "build"); err != nil {
			t.Fatal(err)
		}
		next, text, err := c.Rewind(t.Context(), "one", messages[0].ID, keep)
		if err != nil || text != "change it" || next.ID() == "one" || at.id != next.ID() {
			t.Fatalf("a rewind returns %v, %q, %v", next, text, err)
		}
		want := "first"
		if keep {
			want = "second"
		}
		if data, err := os.ReadFile(filepath.Join(d.dir, "a.txt")); err != nil || string(data) != want {
			t.Errorf("with keep %v the file is %q (%v), want %q", keep, data, err, want)
		}
		if got := c.Mode(next.ID()); got != "build" {
			t.Errorf("the new session is in mode %s, want that of the person", got)
		}
		sessions, err := c.Sessions(t.Context())
		if err != nil || len(sessions) != 2 {
			t.Errorf("the sessions are %+v (%v)", sessions, err)
		}
		if _, err := c.RewindPlan(t.Context(), "one", "x"); err == nil {
			t.Error("a message that is no number is accepted")
		}
	}
}

// SPEC U-02
// Another session takes over the mode that the user chose, and files are listed as .gitignore says.
func TestChatControls(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{".gitignore": "*.tmp\n", "x.tmp": "", "main.go": "package main\n"})
	at, c := d.place("repeat: true\nsteps:\n  - text: Done.\n")
	if c.Mode("one") != "standard" {
		t.Errorf("the mode is %s", c.Mode("one"))
	}
	if err := c.SetMode("one", "strict"); err != nil {
		t.Fatal(err)
	}
	next, err := c.Open(t.Context(), "")
	if err != nil || c.Mode(next.ID()) != "strict" || at.id != next.ID() {
		t.Errorf("the next session is %v in mode %s (%v)", next, c.Mode(next.ID()), err)
	}
	if err := c.SetMode(next.ID(), "plan"); err != nil {
		t.Fatal(err)
	}
	if next, err = c.Open(t.Context(), ""); err != nil || c.Mode(next.ID()) != "plan" {
		t.Fatalf("the session after plan mode is in mode %s (%v)", c.Mode(next.ID()), err)
	}
	if after, err := at.w.Floor.LeavePlan(t.Context(), next.ID()); err != nil || after != "strict" {
		t.Errorf("a plan in the next session leads to mode %s (%v), want what the user chose before it", after, err)
	}
	if _, err := c.Open(t.Context(), "nowhere"); err == nil {
		t.Error("a session that does not exist was opened")
	}
	files, err := c.Files(t.Context())
	if err != nil || !slices.Contains(files, "main.go") || slices.Contains(files, "x.tmp") {
		t.Errorf("the files are %q (%v)", files, err)
	}
	other := t.TempDir()
	said, err := c.AddDir(other)
	if err != nil || !strings.Contains(said, "until you quit") {
		t.Errorf("after a directory is added the chat says %q (%v)", said, err)
	}
	if _, err := c.AddDir("/"); err == nil {
		t.Error("the root directory was added")
	}
	if jobs := c.Jobs("one"); len(jobs) != 0 {
		t.Errorf("the jobs are %+v", jobs)
	}
	if err := c.StopJob(context.Background(), "one", "bg_1"); err == nil {
		t.Error("a command that does not exist was stopped")
	}
}
