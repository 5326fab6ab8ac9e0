package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/label"
	"github.com/belay-run/belay/internal/visible"
)

// plainJSON replaces the escapes of <, > and & by these characters.
func plainJSON(input json.RawMessage) string {
	var b strings.Builder
	text := string(input)
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		if i+6 <= len(text) {
			if as, ok := unescapedHTML[strings.ToLower(text[i:i+6])]; ok {
				b.WriteString(as)
				i += 5
				continue
			}
		}
		b.WriteString(text[i : i+2]) // copy any other escape unchanged
		i++
	}
	return b.String()
}

var unescapedHTML = map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"}

// about describes the input of a call in one line.
func about(input json.RawMessage) string {
	text := label.Of(input)
	if text == string(input) {
		text = plainJSON(input)
	}
	return oneLine(text)
}

// inputLines shows the whole input of a call to the person who decides. It shows a command
// as in a shell, a change of a file as a diff, and everything else as JSON.
func inputLines(s style, input json.RawMessage) []string {
	fields, ok := label.Fields(input)
	if !ok {
		return []string{visible.All(string(input))}
	}
	text := make(map[string]string)
	for _, f := range fields {
		if f.Text {
			text[f.Key] = f.Value
		}
	}
	has := func(keys ...string) bool {
		return !slices.ContainsFunc(keys, func(key string) bool { _, there := text[key]; return !there })
	}
	var lines, shown []string
	switch {
	case has("command"):
		shown = []string{"command"}
		if has("description") {
			shown = append(shown, "description")
			lines = append(lines, s.dim("# "+oneLine(text["description"])))
		}
		for i, line := range strings.Split(visible.All(text["command"]), "\n") {
			prompt := "$ "
			if i > 0 {
				prompt = "  "
			}
			lines = append(lines, s.dim(prompt)+line)
		}
	case has("path", "old_string", "new_string"):
		shown = []string{"path", "old_string", "new_string"}
		lines = append(lines, s.bold(visible.All(text["path"])))
		lines = append(lines, marked(text["old_string"], "- ", s.red)...)
		lines = append(lines, marked(text["new_string"], "+ ", s.green)...)
	case has("path", "content"):
		shown = []string{"path", "content"}
		lines = append(lines, s.bold(visible.All(text["path"])))
		lines = append(lines, marked(text["content"], "+ ", s.green)...)
	default:
		var pretty bytes.Buffer
		if json.Indent(&pretty, input, "", "  ") != nil {
			return []string{visible.All(string(input))}
		}
		return strings.Split(visible.All(plainJSON(pretty.Bytes())), "\n")
	}
	for _, f := range fields {
		if slices.Contains(shown, f.Key) && f.Value == text[f.Key] {
			continue
		}
		value := f.Value
		if !f.Text {
			value = plainJSON(json.RawMessage(value))
		}
		lines = append(lines, s.dim(visible.All(f.Key)+": ")+visible.All(value))
	}
	return lines
}

func marked(text, mark string, dress func(string) string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(visible.All(text), "\n"), "\n") {
		lines = append(lines, dress(mark+line))
	}
	return lines
}

// clipped keeps the first and the last lines if there are too many, and says how many it
// left out.
func clipped(lines []string, most int, left func(string) string) []string {
	if len(lines) <= most {
		return lines
	}
	head, tail := most*2/3, most-most*2/3
	kept := append([]string{}, lines[:head]...)
	kept = append(kept, left(fmt.Sprintf("… %d lines left out", len(lines)-head-tail)))
	return append(kept, lines[len(lines)-tail:]...)
}
