package frontmatter

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// depth limits how deep values may be nested.
const depth = 16

// intricacy limits a sum: the number of lines of a text, plus the number of characters that
// can begin a nested value, such as [ and -.
const intricacy = 4096

// readYAML reads any YAML mapping. line is the number of its first line in the file.
func readYAML(head string, line int) (fields []Field, err error) {
	defer func() {
		if p := recover(); p != nil { // a panic of the library must not end the process
			fields, err = nil, fail(line, "the YAML cannot be read: %v", p)
		}
	}()
	head = strings.TrimSuffix(strings.ReplaceAll(head, "\r\n", "\n"), "\r")
	if at := strings.IndexFunc(head, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }); at >= 0 {
		return nil, fail(line+strings.Count(head[:at], "\n"), "there is a control character, %U: remove it", rune(head[at]))
	}
	if tooIntricate(head) {
		return nil, fail(line, "the YAML is too complex: its lines, brackets and list items are more than %d together: move long parts into the body", intricacy)
	}
	file, err := parser.ParseBytes([]byte(head), 0)
	if err != nil {
		return nil, located(err, line)
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			return nil, fail(lineOf(doc.Body, line), "a second document begins here: remove one of them")
		}
		root = doc.Body
	}
	if root == nil || root.Type() == ast.NullType || root.Type() == ast.CommentType {
		return nil, nil
	}
	c := conversion{line - 1}
	value, err := c.value(root, 0)
	if err != nil {
		return nil, err
	}
	if value.Kind != Map {
		return nil, fail(value.Line, "the YAML is %s: write a mapping, key: value", value.Kind)
	}
	return value.Map, nil
}

// Fits reports whether a text is small and simple enough for [ParseYAML].
func Fits(text string) bool { return len(text) <= Limit && !tooIntricate(text) }

func tooIntricate(head string) bool {
	n := strings.Count(head, "\n")
	for i := range len(head) {
		if strings.IndexByte("[{&*!?", head[i]) >= 0 || head[i] == '-' && (i == 0 || head[i-1] <= ' ') {
			n++
		}
	}
	return n > intricacy
}

// located converts an error of the library to an *Error. It leaves out the excerpt that the
// library adds.
func located(err error, line int) error {
	if e, ok := errors.AsType[yaml.Error](err); ok && e.GetToken() != nil {
		at := line - 1 + e.GetToken().Position.Line
		message := e.GetMessage()
		if strings.Contains(message, "already defined at [") { // do not repeat the line number in the message: the library counts differently
			return fail(at, "the key %q occurs twice: remove one of them", e.GetToken().Value)
		}
		if strings.Contains(message, "character '\t'") || strings.Contains(message, "tab character") {
			message = "YAML does not allow tabs for indentation: use spaces"
		}
		return fail(at, "%s", message)
	}
	return fail(line, "%v", err)
}

func lineOf(node ast.Node, line int) int {
	if node == nil || node.GetToken() == nil {
		return line
	}
	return line - 1 + node.GetToken().Position.Line
}

// conversion converts nodes of the library to values.
type conversion struct {
	above int // how many lines of the file are above the text
}

func (c conversion) line(node ast.Node) int { return lineOf(node, c.above+1) }

func (c conversion) value(node ast.Node, level int) (Value, error) {
	if level > depth {
		return Value{}, fail(c.line(node), "values are nested more than %d levels deep: use fewer levels", depth)
	}
	v := Value{Line: c.line(node)}
	switch n := node.(type) {
	case nil, *ast.NullNode:
		return v, nil
	case *ast.StringNode:
		v.Kind, v.Text = String, n.Value
	case *ast.LiteralNode:
		v.Kind, v.Text = String, n.Value.Value
	case *ast.BoolNode:
		v.Kind, v.Text = Bool, n.GetToken().Value
	case *ast.IntegerNode:
		v.Kind, v.Text = Int, n.GetToken().Value
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		v.Kind, v.Text = Float, node.GetToken().Value
	case *ast.SequenceNode:
		v.Kind = List
		for _, item := range n.Values {
			value, err := c.value(item, level+1)
			if err != nil {
				return v, err
			}
			v.List = append(v.List, value)
		}
	case *ast.MappingNode:
		return c.mapping(v, n.Values, level)
	case *ast.MappingValueNode:
		return c.mapping(v, []*ast.MappingValueNode{n}, level)
	case *ast.TagNode:
		return v, fail(v.Line, "the tag %s is not supported: remove it, and put quotes around a value that must be text", n.GetToken().Value)
	case *ast.AnchorNode, *ast.AliasNode:
		return v, fail(v.Line, "anchors and aliases are not supported here: write the value out")
	default:
		return v, fail(v.Line, "a %s is not supported: write a text, a list or a mapping", strings.ToLower(node.Type().String()))
	}
	return v, nil
}

func (c conversion) mapping(v Value, values []*ast.MappingValueNode, level int) (Value, error) {
	v.Kind = Map
	if len(values) > 0 {
		v.Line = c.line(values[0].Key)
	}
	seen := make(map[string]bool, len(values))
	for _, entry := range values {
		field := Field{Line: c.line(entry.Key)}
		switch key := entry.Key.(type) {
		case *ast.StringNode:
			field.Key = key.Value
		case *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode, *ast.NullNode:
			field.Key = key.GetToken().Value
		case *ast.MergeKeyNode:
			return v, fail(field.Line, "the merge key << is not supported: write the values out")
		default:
			return v, fail(field.Line, "the key is not plain text: write key: value")
		}
		if seen[field.Key] {
			return v, fail(field.Line, "the key %q occurs twice: remove one of them", field.Key)
		}
		seen[field.Key] = true
		var err error
		if field.Value, err = c.value(entry.Value, level+1); err != nil {
			return v, err
		}
		v.Map = append(v.Map, field)
	}
	return v, nil
}

// quoteColons puts quotes around top-level values that contain a colon, such as
// "description: Use when: ...". YAML rejects such values. quoteColons also returns the
// line numbers of these values. It joins a value of several lines and adds empty lines,
// so that later lines keep their numbers.
func quoteColons(head string, line int) (text string, at []int) {
	lines := strings.Split(strings.ReplaceAll(head, "\r\n", "\n"), "\n")
	for i := range lines {
		key, value, found := strings.Cut(lines[i], ": ")
		value = strings.Trim(value, " ")
		if !found || key == "" || strings.ContainsAny(key[:1], " \t#-'\"[{?&*!|>%@`") || value == "" ||
			strings.IndexByte("'\"[{|>&*!", value[0]) >= 0 {
			continue
		}
		end := i + 1
		for end < len(lines) && strings.HasPrefix(lines[end], " ") && strings.TrimSpace(lines[end]) != "" {
			value += " " + strings.TrimSpace(lines[end])
			end++
		}
		if !strings.Contains(value, ": ") && !strings.HasSuffix(value, ":") {
			continue
		}
		lines[i] = key + `: "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
		for j := i + 1; j < end; j++ {
			lines[j] = ""
		}
		at = append(at, line+i)
	}
	return strings.Join(lines, "\n"), at
}
