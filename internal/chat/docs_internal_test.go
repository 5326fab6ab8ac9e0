package chat

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/chat.md shows screens of a real terminal. It names every command and key.
func TestDocs(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "chat.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	screens := regexp.MustCompile("(?s)<!-- screen: ([a-z]+) -->\n```text\n(.*?)```\n").FindAllStringSubmatch(page, -1)
	if len(screens) == 0 {
		t.Error("docs/chat.md has no screens")
	}
	for _, screen := range screens {
		want, err := os.ReadFile(filepath.Join("testdata", screen[1]+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if screen[2] != string(want) {
			t.Errorf("docs/chat.md: the screen %q is stale: put testdata/%s.txt there", screen[1], screen[1])
		}
	}
	for _, d := range own {
		if !strings.Contains(page, "| `/"+d.Name+"` |") {
			t.Errorf("docs/chat.md does not tell of /%s", d.Name)
		}
	}
	for _, d := range keyHelp {
		if !strings.Contains(page, "| "+d.Name+" |") {
			t.Errorf("docs/chat.md does not tell of the key %s", d.Name)
		}
	}
}
