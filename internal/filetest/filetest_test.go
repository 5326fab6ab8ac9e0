package filetest_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/internal/probetest"
)

func TestCopies(t *testing.T) {
	t.Parallel()
	made := 0
	file := filetest.Copies("f", func(path string) error {
		made++
		return os.WriteFile(path, []byte("content"), 0o600)
	})
	one, two := file(t), file(t)
	if one == two || made != 1 {
		t.Errorf("the file was made %d times, and the copies are %s and %s", made, one, two)
	}
	if err := os.WriteFile(one, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(two); string(content) != "content" {
		t.Errorf("the second copy has %q, %v", content, err)
	}
}

// If the file cannot be made, every test that asks for it fails.
func TestCopiesOfWhatIsBroken(t *testing.T) {
	t.Parallel()
	file := filetest.Copies("f", func(string) error { return errors.New("it is broken") })
	for range 2 {
		p := probetest.Run(t, func(t testing.TB) { file(t) })
		if got := p.Failures(); len(got) != 1 || !strings.Contains(got[0], "it is broken") {
			t.Errorf("it failed with %q, want that it is broken", got)
		}
	}
}
