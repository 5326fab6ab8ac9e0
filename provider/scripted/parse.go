package scripted

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// file is the YAML form of a script.
type file struct {
	Options `yaml:",inline"`

	Steps []Step `yaml:"steps"`
}

// Load reads a script from a file.
func Load(path string) (*Model, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load a script: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a script. The package comment describes the format. The name of the file is
// used in errors and as the default of Options.Name.
func Parse(name string, data []byte) (*Model, error) {
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, located(name, err)
	}
	if len(parsed.Docs) > 1 {
		return nil, fmt.Errorf("%s:%d: a second YAML document begins here: a file can have only one script", name, line(parsed.Docs[1].Body))
	}
	var root ast.Node
	if len(parsed.Docs) == 1 {
		root = parsed.Docs[0].Body
	}
	if root == nil || root.Type() == ast.NullType {
		return nil, fmt.Errorf("%s:1: the script is empty: it needs the key %q", name, "steps")
	}
	if err := checkShape(name, root); err != nil {
		return nil, err
	}
	var f file
	// The parser has already rejected duplicate keys. AllowDuplicateMapKey is needed for a
	// key that overrides a merged key.
	if err := yaml.NodeToValue(root, &f, yaml.Strict(), yaml.AllowDuplicateMapKey()); err != nil {
		return nil, located(name, err)
	}
	if len(f.Steps) == 0 {
		return nil, fmt.Errorf("%s:%d: the script has no steps: write at least one below %q", name, line(root), "steps")
	}
	nodes := stepNodes(root)
	for i := range f.Steps {
		step := &f.Steps[i]
		step.at = name
		if i < len(nodes) {
			step.at = fmt.Sprintf("%s:%d", name, line(nodes[i]))
		}
		if err := step.Fault.contradiction(); err != nil {
			return nil, fmt.Errorf("%s: step %d: fault: %w", step.at, i+1, err)
		}
	}
	f.Name = cmp.Or(f.Name, "scripted/"+strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
	return New(f.Steps, &f.Options), nil
}

// contradiction returns an error if fields of a fault exclude each other.
func (f *Fault) contradiction() error {
	if f == nil {
		return nil
	}
	ways := 0
	for _, is := range []bool{f.Cut, f.Hang, f.Kind != "" || f.Status != 0 || f.RetryAfter != 0 || f.Message != ""} {
		if is {
			ways++
		}
	}
	if ways > 1 {
		return errors.New("these keys exclude each other: use only cut, only hang, or only the keys of an error (kind, status, retry_after, message)")
	}
	return nil
}

// located puts the file and the line at the front of an error of the YAML library. It
// removes the excerpt of the file that the library adds.
func located(name string, err error) error {
	if e, ok := errors.AsType[yaml.Error](err); ok && e.GetToken() != nil {
		return fmt.Errorf("%s:%d: %s", name, e.GetToken().Position.Line, e.GetMessage())
	}
	return fmt.Errorf("%s: %w", name, err)
}
