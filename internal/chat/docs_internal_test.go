package chat

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/chat.md and docs/chat-output.md show screens of a real terminal. docs/chat.md names every
// command and key.
func TestDocs(t *testing.T) {
	t.Parallel()
	page := pageOf(t, "chat.md")
	for name, text := range map[string]string{"chat.md": page, "chat-output.md": pageOf(t, "chat-output.md")} {
		screens := regexp.MustCompile("(?s)<!-- screen: ([a-z]+) -->\n```text\n(.*?)```\n").FindAllStringSubmatch(text, -1)
		if len(screens) == 0 {
			t.Errorf("docs/%s has no screens", name)
		}
		for _, screen := range screens {
			want, err := os.ReadFile(filepath.Join("testdata", screen[1]+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			if screen[2] != string(want) {
				t.Errorf("docs/%s: the screen %q is stale: put testdata/%s.txt there", name, screen[1], screen[1])
			}
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

func pageOf(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
