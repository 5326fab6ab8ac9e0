package main

import (
	"os"
	"strings"
	"testing"

	"github.com/belay-run/belay/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}

func TestContained(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := show(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"shell: hello", `write: deniedDenied by "protection `, `shell: denied`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in what was shown:\n%s", want, out.String())
		}
	}
}
