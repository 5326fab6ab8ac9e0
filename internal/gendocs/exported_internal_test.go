package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const package1 = `// Package one is an example.
package one

import "io"

// Limit is a limit.
const Limit, hidden = 1, 2

// A Kind is a word on the wire.
type Kind string

// KindRead reads.
const KindRead Kind = "read"

// Name is the name that a service knows.
const Name = "one" + "-two"

// Default is made by a function.
var Default = newInput(map[string][]io.Reader{})

func newInput[T any](v T) *Options { return nil }

type input[T any] struct {
	Depth int // hidden by the field of the outer struct
	Value T "json:\"value\" doc:\"text for people\""
	data  T
}

// Fields returns the fields.
func (i input[T]) Fields() T { return i.data }

// A Call has the fields and methods of what it embeds.
type Call struct {
	input[Kind]
	*Options
	Depth int "json:\"depth,omitempty\""
}

// A Verdict is made only here.
type Verdict interface {
	// Allows reports something.
	Allows() bool
	sealed()
}

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
	io.Closer
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
	put(t, root, "go.mod", "module example.com/all\n\ngo 1.26\n")
	put(t, root, "one/one.go", package1)
	put(t, root, "one/one_test.go", "package one\n\nfunc InTest() {}\n")
	put(t, root, "internal/two/two.go", "package two\n\nfunc Inside() {}\n\ntype Part struct{ Size int }\n\nfunc (p Part) Next() *Other { return nil }\n\ntype Other struct{ Text string }\n\ntype Unused int\n")
	put(t, root, "three/three.go", "package three\n\nimport \"example.com/all/internal/two\"\n\nfunc Parts() []two.Part { return nil }\n")
	put(t, root, "trial/trial.go", "// Package trial is new.\n//\n// Experimental: it is new.\npackage trial\n\nfunc New() {}\n")
	e, err := readExported(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"pkg internal/two, func (Part) Next() *internal/two.Other",
		"pkg internal/two, type Other struct, Text string",
		"pkg internal/two, type Part struct, Size int",
		"pkg internal/two, type internal/two.Other struct",
		"pkg internal/two, type internal/two.Part struct",
		`pkg one, const KindRead Kind = "read"`,
		`pkg one, const Limit = 1`,
		`pkg one, const Name = "one-two"`,
		"pkg one, func (*Options) Each(f func(n int) bool)",
		"pkg one, func (Call) Fields() Kind",
		"pkg one, func Open(name string, options *Options) (io.Closer, error)",
		`pkg one, type Call struct`,
		`pkg one, type Call struct, Depth int json:"depth,omitempty"`,
		`pkg one, type Call struct, Value Kind json:"value"`,
		`pkg one, type Call struct, embeds *Options`,
		"pkg one, type Kind string",
		"pkg one, type Options struct",
		"pkg one, type Options struct, Depth int",
		"pkg one, type Options struct, Size int",
		"pkg one, type Options struct, embeds io.Writer",
		"pkg one, type Source interface { Close() error; Next() (int, error) }",
		"pkg one, type Verdict interface { unexported methods }",
		"pkg one, type Verdict interface, Allows() bool",
		"pkg one, var Default *Options",
		"pkg three, func Parts() []internal/two.Part",
	}
	if diff := cmp.Diff(want, e.lines); diff != "" {
		t.Errorf("the names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][2]string{{"one.Trial", "nobody has used it."}, {"one.Draft", "its fields will change."}, {"trial", "it is new."}}, e.experimental); diff != "" {
		t.Errorf("the experimental names (-want +got):\n%s", diff)
	}
}
