package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/belay-run/belay/internal/label"
)

// plainJSON is JSON as it was meant: what was escaped for the sake of HTML is
// written as itself.
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
		b.WriteString(text[i : i+2]) // a backslash keeps what follows
		i++
	}
	return b.String()
}

var unescapedHTML = map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"}

// about says in a line what a call is about.
func about(input json.RawMessage) string {
	text := label.Of(input)
	if text == string(input) {
		text = plainJSON(input)
	}
	return oneLine(text)
}

// inputLines shows an input to whoever must decide about it: a command as it
// would be typed, a change as a diff, all else as JSON.
func inputLines(s style, input json.RawMessage) []string {
	var in struct {
		Command     *string `json:"command"`
		Path        string  `json:"path"`
		Content     *string `json:"content"`
		Old         *string `json:"old_string"`
		New         *string `json:"new_string"`
		Description string  `json:"description"`
	}
	if json.Unmarshal(input, &in) != nil {
		return []string{visible(string(input))}
	}
	var lines []string
	switch {
	case in.Command != nil:
		if in.Description != "" {
			lines = append(lines, s.dim("# "+oneLine(in.Description)))
		}
		for i, line := range strings.Split(visible(*in.Command), "\n") {
			prompt := "$ "
			if i > 0 {
				prompt = "  "
			}
			lines = append(lines, s.dim(prompt)+line)
		}
	case in.Old != nil && in.New != nil:
		lines = append(lines, s.bold(visible(in.Path)))
		lines = append(lines, marked(*in.Old, "- ", s.red)...)
		lines = append(lines, marked(*in.New, "+ ", s.green)...)
	case in.Content != nil:
		lines = append(lines, s.bold(visible(in.Path)))
		lines = append(lines, marked(*in.Content, "+ ", s.green)...)
	default:
		var pretty bytes.Buffer
		if json.Indent(&pretty, input, "", "  ") != nil {
			return []string{visible(string(input))}
		}
		lines = strings.Split(visible(plainJSON(pretty.Bytes())), "\n")
	}
	return lines
}

func marked(text, mark string, dress func(string) string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(visible(text), "\n"), "\n") {
		lines = append(lines, dress(mark+line))
	}
	return lines
}

// clipped keeps the first and last lines of many, and says how many it left out.
func clipped(lines []string, most int, left func(string) string) []string {
	if len(lines) <= most {
		return lines
	}
	head, tail := most*2/3, most-most*2/3
	kept := append([]string{}, lines[:head]...)
	kept = append(kept, left(fmt.Sprintf("… %d lines left out", len(lines)-head-tail)))
	return append(kept, lines[len(lines)-tail:]...)
}
