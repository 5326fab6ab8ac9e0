package hooktest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/hook"
)

// updateVariable makes Descriptor write golden files. It is an environment variable and not
// a flag, because a flag would also appear in every program that links this package.
const updateVariable = "HOOKTEST_UPDATE"

// Descriptor compares the descriptors of subscriptions with a golden file: their ids,
// kinds, versions, phases and capabilities. Recorded work, grants and the configurations of
// users depend on these values. If there is a difference, the test fails and shows the
// lines. With HOOKTEST_UPDATE=1 in the environment, Descriptor rewrites the file instead,
// so that a reviewer sees the change.
//
// The path is relative to the package under test, usually below testdata.
func Descriptor(t testing.TB, golden string, subs ...hook.Subscription) {
	t.Helper()
	encoded, err := json.MarshalIndent(hook.Describe(subs...), "", "  ")
	if err != nil {
		t.Fatalf("hooktest: the descriptors cannot be encoded: %v", err)
	}
	got := string(encoded) + "\n"
	if os.Getenv(updateVariable) == "1" {
		if err := writeGolden(golden, got); err != nil {
			t.Fatalf("hooktest: cannot update the golden file: %v", err)
		}
		return
	}
	stored, err := os.ReadFile(golden)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("hooktest: there is no golden file %s yet: run the test once with %s=1, and commit it:\n%s", golden, updateVariable, got)
	}
	if err != nil {
		t.Fatalf("hooktest: cannot read the golden file: %v", err)
	}
	want := strings.ReplaceAll(string(stored), "\r\n", "\n") // some checkouts convert line ends
	if want != got {
		t.Errorf("the descriptors differ from %s (- golden, + now):\n%sIf the change is intended, accept it by running the test with %s=1.",
			golden, lineDiff(want, got), updateVariable)
	}
}

func writeGolden(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}
