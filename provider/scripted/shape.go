package scripted

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
)

// words lists the allowed values of the types that are enumerations.
var words = map[reflect.Type][]string{
	reflect.TypeFor[belay.StopReason](): {
		string(belay.StopEnd), string(belay.StopToolUse), string(belay.StopMaxTokens), string(belay.StopRefusal),
	},
	reflect.TypeFor[belay.ModelErrorKind](): {
		string(belay.ModelRateLimited), string(belay.ModelOverloaded), string(belay.ModelServer), string(belay.ModelNetwork),
		string(belay.ModelTooLong), string(belay.ModelInvalid), string(belay.ModelAuth), string(belay.ModelEmpty),
	},
}

// required has the required key of a type.
var required = map[reflect.Type]string{
	reflect.TypeFor[file](): "steps",
	reflect.TypeFor[Call](): "tool",
}

// checkShape checks a script against the Go types into which it is decoded. The YAML
// library would also check the script. But its errors contain Go types, and it reports
// only one mistake.
func checkShape(name string, root ast.Node) error {
	s := shape{name: name}
	s.check(root, reflect.TypeFor[file](), "the script")
	return errors.Join(s.problems...)
}

type shape struct {
	name     string
	problems []error
}

func (s *shape) reportf(node ast.Node, format string, args ...any) {
	s.problems = append(s.problems, fmt.Errorf("%s:%d: %s", s.name, line(node), fmt.Sprintf(format, args...)))
}

// check checks the value of a key.
func (s *shape) check(node ast.Node, t reflect.Type, key string) {
	switch n := node.(type) {
	case *ast.AnchorNode:
		s.check(n.Value, t, key)
		return
	case *ast.TagNode:
		s.check(n.Value, t, key)
		return
	case *ast.AliasNode:
		return // the definition of the anchor is checked
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case node.Type() == ast.NullType:
		s.reportf(node, "%s has no value: write a value or remove the key", key)
	case t.Kind() == reflect.Interface: // Call.Input
		if !isMapping(node) && !isText(node) {
			s.reportf(node, "%s must be a mapping, or a text that is sent unchanged", key)
		}
	case t.Kind() == reflect.Struct:
		s.mapping(node, t, key)
	case t.Kind() == reflect.Slice:
		list, ok := node.(*ast.SequenceNode)
		if !ok {
			s.reportf(node, "%s must be a list", key)
			return
		}
		for _, item := range list.Values {
			s.check(item, t.Elem(), "an entry of "+key)
		}
	default:
		s.scalar(node, t, key)
	}
}

func (s *shape) mapping(node ast.Node, t reflect.Type, key string) {
	m, ok := node.(ast.MapNode)
	if !ok {
		s.reportf(node, "%s must be a mapping", key)
		return
	}
	known := keysOf(t)
	var seen []string
	for entries := m.MapRange(); entries.Next(); {
		if entries.Key().IsMergeKey() {
			seen = append(seen, required[t]) // the merged mapping may have the required key
			continue
		}
		k := entries.Key().GetToken().Value
		seen = append(seen, k)
		i := slices.IndexFunc(known, func(f field) bool { return f.key == k })
		if i < 0 {
			s.reportf(entries.Key(), "unknown key %q%s", k, suggestion(k, names(known)))
			continue
		}
		s.check(entries.Value(), known[i].t, k)
	}
	if want := required[t]; want != "" && !slices.Contains(seen, want) {
		s.reportf(node, "%s must have the key %q", key, want)
	}
}

func (s *shape) scalar(node ast.Node, t reflect.Type, key string) {
	text := node.String()
	if n, ok := node.(ast.ScalarNode); ok {
		text = fmt.Sprint(n.GetValue())
	}
	switch allowed := words[t]; {
	case allowed != nil:
		if !slices.Contains(allowed, text) {
			s.reportf(node, "unknown %s %q%s", key, text, suggestion(text, allowed))
		}
	case t == reflect.TypeFor[time.Duration]():
		if d, err := time.ParseDuration(text); err != nil || d < 0 || !isText(node) {
			s.reportf(node, "%s must be a duration with a unit, such as 300ms or 2s, not %s", key, text)
		}
	case t.Kind() == reflect.Bool:
		if node.Type() != ast.BoolType {
			s.reportf(node, "%s must be true or false, not %s", key, text)
		}
	case t.Kind() == reflect.Int:
		if node.Type() != ast.IntegerType {
			s.reportf(node, "%s must be a whole number, not %s", key, text)
		}
	case t.Kind() == reflect.Float64:
		if node.Type() != ast.IntegerType && node.Type() != ast.FloatType {
			s.reportf(node, "%s must be a number, not %s", key, text)
		}
	default:
		if !isText(node) {
			s.reportf(node, "%s must be a text: put it in quotes", key)
		}
	}
}

func isMapping(node ast.Node) bool {
	_, ok := node.(ast.MapNode)
	return ok
}

func isText(node ast.Node) bool {
	return node.Type() == ast.StringType || node.Type() == ast.LiteralType
}

// field is a key of a mapping and the type of its value.
type field struct {
	key string
	t   reflect.Type
}

// keysOf lists the keys of a struct, from its YAML tags or else its JSON tags.
func keysOf(t reflect.Type) []field {
	var fields []field
	for f := range t.Fields() {
		if f.Anonymous {
			fields = append(fields, keysOf(f.Type)...)
			continue
		}
		tag, ok := f.Tag.Lookup("yaml")
		if !ok {
			tag = f.Tag.Get("json")
		}
		if key, _, _ := strings.Cut(tag, ","); key != "" && key != "-" {
			fields = append(fields, field{key, f.Type})
		}
	}
	return fields
}

func names(fields []field) []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.key
	}
	return all
}
