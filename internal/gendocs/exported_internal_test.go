package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const package1 = `// Package one is an example.
package one

import "io"

// Limit is a limit.
const Limit, hidden = 1, 2

// Open opens.
func Open(name string, // the name
	options *Options) (io.Closer, error) { return nil, nil }

// Options are options.
type Options struct {
	// Size is a size.
	Size, Depth int
	io.Writer
	secret bool
}

// Each calls f.
func (o *Options) Each(f func(n int) bool) {}

func (o *Options) secretly() {}

// Source is a source.
type Source interface {
	// Next returns the next.
	Next() (int, error)
	close()
}

// Draft is not ready.
//
// Experimental: its fields
// will change.
type Draft struct{ Text string }

// Read belongs to it.
func (d *Draft) Read() {}

// Trial is not ready either.
//
// Experimental: nobody has used it.
func Trial() {}
`

// The list has every name that programs can use, in one form, and nothing that they cannot use. Experimental names and the
// methods of experimental types are only in the table.
func TestExportedNames(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, "one/one.go", package1)
	put(t, root, "one/one_test.go", "package one\n\nfunc InTest() {}\n")
	put(t, root, "one/internal/two/two.go", "package two\n\nfunc Inside() {}\n")
	put(t, root, "trial/trial.go", "// Package trial is new.\n//\n// Experimental: it is new.\npackage trial\n\nfunc New() {}\n")
	e, err := readExported(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"pkg one, const Limit",
		"pkg one, func (o *Options) Each(f func(n int) bool)",
		"pkg one, func Open(name string, options *Options) (io.Closer, error)",
		"pkg one, type Options struct",
		"pkg one, type Options struct, Depth int",
		"pkg one, type Options struct, Size int",
		"pkg one, type Options struct, embeds io.Writer",
		"pkg one, type Source interface { Next() (int, error); unexported methods }",
	}
	if diff := cmp.Diff(want, e.lines); diff != "" {
		t.Errorf("the names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][2]string{{"one.Trial", "nobody has used it."}, {"one.Draft", "its fields will change."}, {"trial", "it is new."}}, e.experimental); diff != "" {
		t.Errorf("the experimental names (-want +got):\n%s", diff)
	}
}

// What is gone and what has another type is named. What is new, also a field, is no problem.
func TestRemovedNames(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, "one/one.go", package1)
	before, err := readExported(root)
	if err != nil {
		t.Fatal(err)
	}
	put(t, root, "old.txt", string(before.list()))
	put(t, root, "one/one.go", strings.NewReplacer("const Limit, hidden = 1, 2", "", "Size, Depth int", "Size, Depth, Width int", "f func(n int) bool", "f func(n int64) bool", "close()\n", "Peek() int\n\tclose()\n").Replace(package1))
	var out bytes.Buffer
	err = compare(&out, root, root+"/old.txt")
	want := []string{"pkg one, const Limit", "pkg one, func (o *Options) Each(f func(n int) bool)", "pkg one, type Source interface { Next() (int, error); unexported methods }"}
	if got := slices.Collect(strings.Lines(out.String())); err == nil || cmp.Diff(strings.Join(want, "\n")+"\n", strings.Join(got, "")) != "" {
		t.Errorf("the names are %q, %v", got, err)
	}
	put(t, root, "one/one.go", package1)
	if err := compare(&out, root, root+"/old.txt"); err != nil {
		t.Error(err)
	}
}
