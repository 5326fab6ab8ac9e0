package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/belay-run/belay/internal/near"
)

// reading is the state while a settings file is read.
type reading struct {
	into     *Loaded
	file     string
	kind     string
	only     string // the only key at the top of the file that is allowed; "" for all
	problems []error
}

// readFile reads a settings file. The error has all mistakes, each with its line.
func (l *Loaded) readFile(path, kind string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return l.readData(&reading{into: l, file: path, kind: kind}, data)
}

// ReplaceRules replaces the rules and guards of the floor by those of a file. The file has
// the form of a settings file with nothing but the key permit. name is the file's name in
// errors. An error names every mistake with its line.
func (l *Loaded) ReplaceRules(name string, data []byte) error {
	l.Permit.Rules, l.Permit.Guards = nil, nil
	if err := l.readData(&reading{into: l, file: name, kind: "user", only: "permit"}, data); err != nil {
		return err
	}
	return l.checkRules()
}

// readData reads the content of a settings file.
func (l *Loaded) readData(r *reading, data []byte) error {
	path := r.file
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		if e, ok := errors.AsType[yaml.Error](err); ok && e.GetToken() != nil {
			return fmt.Errorf("%s:%d: %s", path, e.GetToken().Position.Line, e.GetMessage())
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(parsed.Docs) > 1 {
		return fmt.Errorf("%s:%d: a second document begins here: the file must have only one", path, lineOf(parsed.Docs[1].Body))
	}
	if len(parsed.Docs) == 1 && parsed.Docs[0].Body != nil {
		r.mapping("", parsed.Docs[0].Body)
	}
	return errors.Join(r.problems...)
}

func (r *reading) refusef(node ast.Node, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s:%d: "+format, append([]any{r.file, lineOf(node)}, args...)...))
}

// mapping reads the settings below a path.
func (r *reading) mapping(below string, node ast.Node) {
	if _, ok := node.(*ast.NullNode); ok {
		return // all keys are commented out
	}
	m, ok := node.(ast.MapNode)
	if !ok {
		r.refusef(node, "%s: expected keys with values", cmp.Or(below, "the file"))
		return
	}
	for pairs := m.MapRange(); pairs.Next(); {
		key := pairs.Key().String()
		path := strings.TrimPrefix(below+"."+key, ".")
		switch {
		case below == "" && r.only != "" && key != r.only:
			r.refusef(pairs.Key(), "only the key %q is allowed here", r.only)
		case slices.Contains(Paths(), path):
			r.leaf(path, pairs.KeyValue())
		case slices.Contains(groups(), path):
			r.mapping(path, pairs.Value())
		case below == "" && renamed(path) != "":
			r.readRenamed(path, pairs.KeyValue(), m)
		case below == "" && isKeyItself(key):
			r.refusef(pairs.Key(), "%s: %w", path, errKeyItself)
		default:
			r.refusef(pairs.Key(), "unknown key %q%s", path, suggest(below, key))
		}
	}
}

// leaf reads the value of a setting.
func (r *reading) leaf(path string, pair *ast.MappingValueNode) {
	if _, ok := pair.Value.(*ast.NullNode); ok {
		return // the setting has no value
	}
	from := r.source(pair.Key)
	err := r.into.set(path, from, func(into any) error {
		if r.structured(pair.Value, into) {
			return nil
		}
		if err := decode(pair.Value, into); err != nil {
			return err
		}
		r.userPaths(path, into)
		return nil
	})
	if err != nil {
		r.refusef(pair.Key, "%s: %w", path, err)
	}
}

// source returns the file and line of a node.
func (r *reading) source(node ast.Node) Source {
	return Source{r.kind, fmt.Sprintf("%s:%d", r.file, lineOf(node))}
}

// decode reads a YAML node into a value. It parses durations and sizes from text.
func decode(node ast.Node, into any) error {
	switch into := into.(type) {
	case *time.Duration, *int64, *int, *float64, *bool:
		if scalar, ok := node.(ast.ScalarNode); ok {
			return assign(into, fmt.Sprint(scalar.GetValue()))
		}
		return errors.New("expected a single value, not a list or a mapping")
	case *[]string:
		var list []string
		if err := yaml.NodeToValue(node, &list, yaml.Strict()); err != nil {
			return errors.New("expected a list: [one, another]")
		}
		*into = append([]string{}, list...)
		return nil
	default:
		switch node.(type) {
		case *ast.StringNode, *ast.LiteralNode:
		default:
			return errors.New("expected text")
		}
		if err := yaml.NodeToValue(node, into, yaml.Strict()); err != nil {
			return errors.New("expected text")
		}
		return nil
	}
}

// groups returns the keys that have keys below them.
func groups() []string {
	var groups []string
	for _, path := range Paths() {
		if group, _, ok := strings.Cut(path, "."); ok && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// suggest returns a hint for an unknown key: a similar key, or all valid keys.
func suggest(below, key string) string {
	var known []string
	for _, path := range append(Paths(), groups()...) {
		rest, ok := strings.CutPrefix(path, strings.TrimPrefix(below+".", "."))
		if ok && !strings.Contains(rest, ".") && !slices.Contains(known, rest) {
			known = append(known, rest)
		}
	}
	if meant := near.Hint(key, known); meant != "" {
		return meant
	}
	return ": use one of " + strings.Join(known, ", ")
}

func lineOf(node ast.Node) int {
	if node == nil || node.GetToken() == nil {
		return 1
	}
	return node.GetToken().Position.Line
}

// userPaths expands ~ in the paths of the user's file. It leaves other values unchanged.
func (r *reading) userPaths(path string, into any) {
	if r.kind != "user" {
		return
	}
	switch path {
	case "store", "memory.file", "token_file":
		word := into.(*string) //nolint:forcetypeassert // it is text
		*word = atHome(*word)
	case "permit.roots", "sandbox.write":
		words := into.(*[]string) //nolint:forcetypeassert // it is a list
		for i, word := range *words {
			(*words)[i] = atHome(word)
		}
	}
}

// atHome replaces a leading ~ by the user's home directory.
func atHome(word string) string {
	rest, ok := strings.CutPrefix(word, "~")
	if !ok || rest != "" && !strings.HasPrefix(rest, "/") {
		return word
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return word
	}
	return filepath.Join(home, rest)
}
