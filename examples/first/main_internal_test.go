package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The example program runs without a key and without a network. It prints events as they
// happen.
func Example() {
	main()
	// Output:
	// I publish the notes.
	//   write: Denied by "no-prod": production is off limits
	// Do not repeat this call. Reach the goal in another way, or tell the user what you need.
	// Then as a draft.
	//   write: written
	// The notes are in drafts, for you to publish.
}

// The first program must be short.
func TestProgramIsShort(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(source)) {
		if !strings.Contains(line, "// docs:") { // do not count the comments that mark regions for the docs
			lines++
		}
	}
	if lines > 45 {
		t.Errorf("main.go has %d lines, want at most 45", lines)
	}
}

// The first program has few dependencies, because a program depends only on the packages
// of Belay that it imports.
func TestProgramIsLight(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if .Module}}{{.Module.Path}}{{end}}", ".")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := slices.Compact(slices.Sorted(strings.FieldsSeq(string(out))))
	want := []string{"github.com/belay-run/belay", "github.com/goccy/go-yaml", "github.com/google/jsonschema-go"}
	if !slices.Equal(modules, want) {
		t.Errorf("the program is built of the modules %q, want %q: the root package and the scripted model bring nothing else", modules, want)
	}
}
