package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// "store check" reports a damaged file and what to do. It does not show zero for what it
// cannot count.
func TestStoreCheckOfADamagedFile(t *testing.T) {
	t.Parallel()
	for page, says := range map[int64][]string{
		3: {"the file is damaged", ".recover"}, // this page has the version of the tables
		4: {"damaged", "unknown", ".recover"},
	} {
		d := newDesk(t, map[string]string{"s.yaml": "steps: [{text: hello}]\n"})
		d.must("run", d.model(), "a task")
		file, err := os.OpenFile(filepath.Join(d.dir, ".belay", "belay.db"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(bytes.Repeat([]byte{0xa5}, 4096), (page-1)*4096); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if code := d.run("store", "check"); code != exitFailed {
			t.Errorf("page %d: exit code %d", page, code)
		}
		told := d.out.String() + d.err.String()
		contains(t, told, says...)
		if strings.Contains(told, "0 sessions") || strings.Contains(told, "version table") {
			t.Errorf("page %d: it says:\n%s", page, told)
		}
		d.run("store", "check", "--json")
		if strings.Contains(d.out.String(), `"sessions"`) {
			t.Errorf("page %d: it says:\n%s", page, &d.out)
		}
	}
}

// The docs show the same explanation that the command prints.
func TestExplanationInTheDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "belay permit explain -- git push --force\n```\n\n```text\n")
	shown, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("the docs have no such example")
	}
	d := newDesk(t, nil)
	d.must("permit", "explain", "--", "git", "push", "--force")
	if got := d.out.String(); !strings.Contains(got, "without a sandbox") && got != shown { // without a sandbox the zones are higher
		t.Errorf("the command prints\n%s\nand the docs have\n%s", got, shown)
	}
	_, pattern, _ := strings.Cut(shown, "a pattern for such calls: ")
	pattern, _, _ = strings.Cut(pattern, "\n")
	contains(t, d.out.String(), "a pattern for such calls: "+pattern+"\n")
}
