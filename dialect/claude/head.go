package claude

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// head is the frontmatter of a file, and the text after it.
type head struct {
	*frontmatter.Document

	notes []string
}

// hintLine matches an argument-hint such as [number] [priority], which is usual and no valid
// YAML.
var hintLine = lazyregexp.New(`(?m)^argument-hint:[ \t]*[\[<{@|*&!%#].*$`)

// readHead reads a Markdown file. Claude Code reads frontmatter that is no valid YAML, for
// example a description with colons and quotes in it. So readHead reads such frontmatter line
// by line, and notes that it did. The error says that the file cannot be read at all.
func readHead(text string) (*head, error) {
	text = hintLine.ReplaceAllStringFunc(text, func(line string) string {
		key, value, _ := strings.Cut(line, ":")
		return key + ": '" + strings.ReplaceAll(strings.TrimSpace(value), "'", "''") + "'"
	})
	doc, err := frontmatter.Parse(text)
	if err == nil {
		h := &head{Document: doc}
		for _, n := range doc.Notes {
			h.notes = append(h.notes, fmt.Sprintf("line %d: %s", n.Line, n.Message))
		}
		return h, nil
	}
	wrong, ok := errors.AsType[*frontmatter.Error](err)
	if !ok {
		return nil, err
	}
	top, body, found := cutHead(strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n"))
	if !found {
		return nil, fmt.Errorf("line %d: %s", wrong.Line, wrong.Message)
	}
	doc = &frontmatter.Document{Found: true, Body: body, BodyLine: strings.Count(top, "\n") + 4, Fields: lines(top)}
	return &head{Document: doc, notes: []string{fmt.Sprintf("line %d: the frontmatter is no valid YAML, so it was read line by line (%s)", wrong.Line, wrong.Message)}}, nil
}

var keyLine = lazyregexp.New(`^([A-Za-z][A-Za-z0-9_-]*)[ \t]*:(?:[ \t]+(.*))?$`)

// lines reads frontmatter line by line: a line that begins with a key and a colon begins a
// field, and every other line continues the field above. Lines that begin with a dash are a
// list. Of two fields with the same key, the first is used.
func lines(text string) []frontmatter.Field {
	var fields []frontmatter.Field
	seen := make(map[string]bool)
	skip := false
	for i, line := range strings.Split(text, "\n") {
		if m := keyLine.FindStringSubmatch(line); m != nil {
			if skip = seen[m[1]]; skip {
				continue
			}
			seen[m[1]] = true
			value := strings.TrimSpace(m[2])
			if value == "|" || value == ">" || value == "|-" || value == ">-" {
				value = ""
			}
			fields = append(fields, frontmatter.Field{Key: m[1], Line: i + 2, Value: frontmatter.Value{Kind: frontmatter.String, Text: unquote(value), Line: i + 2}})
			continue
		}
		line = strings.TrimSpace(line)
		if len(fields) == 0 || skip || line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		last := &fields[len(fields)-1].Value
		if item, ok := strings.CutPrefix(line, "- "); ok && (last.Text == "" || last.Kind == frontmatter.List) {
			last.Kind = frontmatter.List
			last.List = append(last.List, frontmatter.Value{Kind: frontmatter.String, Text: unquote(strings.TrimSpace(item)), Line: i + 2})
			continue
		}
		last.Text = strings.TrimSpace(last.Text + "\n" + line)
	}
	return fields
}

// unquote removes quotes around a text.
func unquote(text string) string {
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return text
}

// words returns the names in a value: a list, or a text with commas or spaces between names.
// It does not split inside parentheses.
func words(v *frontmatter.Value) []string {
	if v.Kind == frontmatter.List {
		var all []string
		for i := range v.List {
			all = append(all, words(&v.List[i])...)
		}
		return all
	}
	var all []string
	depth, start := 0, 0
	text := strings.Trim(v.Text, "[]")
	add := func(end int) {
		if word := unquote(strings.TrimSpace(text[start:end])); word != "" {
			all = append(all, word)
		}
		start = end + 1
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth == 0 && strings.IndexByte(", \t\n", c) >= 0:
			add(i)
		}
	}
	start = min(start, len(text))
	add(len(text))
	return all
}

// scalar returns the text of a value. A list or a mapping has none.
func scalar(v *frontmatter.Value) string {
	if v.Kind == frontmatter.List || v.Kind == frontmatter.Map {
		return ""
	}
	return strings.TrimSpace(v.Text)
}

// mostMarkdown is the maximum size of a Markdown file in bytes.
const mostMarkdown = 1 << 20

// readIn reads a file of a directory. A link that leads out of the directory is an error.
func readIn(root *os.Root, name string) (string, error) {
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return "", plain(err)
	case !info.Mode().IsRegular(): // opening a pipe would block
		return "", errors.New("it is not a regular file")
	case info.Size() > mostMarkdown:
		return "", fmt.Errorf("it is longer than %d bytes", mostMarkdown)
	}
	text, err := root.ReadFile(name)
	if err != nil {
		return "", plain(err)
	}
	return string(text), nil
}
