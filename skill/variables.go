package skill

import (
	"strings"
)

// Variables are the values of {{name}} in the body of a skill with triggers:
//
//	{{project_name}} {{project_path}} {{language}} {{framework}} {{agent_id}} {{mode}} {{task}}
//
// Spaces within the braces are ignored.
type Variables struct {
	ProjectName, ProjectPath string
	Language, Framework      string
	AgentID, Mode, Task      string
}

var variableNames = []string{"project_name", "project_path", "language", "framework", "agent_id", "mode", "task"}

// value returns the value of the variable with the given name.
func (v Variables) value(name string) (string, bool) {
	switch name {
	case "project_name":
		return v.ProjectName, true
	case "project_path":
		return v.ProjectPath, true
	case "language":
		return v.Language, true
	case "framework":
		return v.Framework, true
	case "agent_id":
		return v.AgentID, true
	case "mode":
		return v.Mode, true
	case "task":
		return v.Task, true
	}
	return "", false
}

// Expand replaces the variables in a template by their values. Unknown names stay
// unchanged. Variables inside a value are not expanded, so a user's text cannot insert
// one.
func (v Variables) Expand(template string) string {
	var b strings.Builder
	at := 0
	for name, place := range variablesOf(template) {
		value, ok := v.value(name)
		if !ok {
			continue
		}
		b.WriteString(template[at:place.start])
		b.WriteString(value)
		at = place.end
	}
	b.WriteString(template[at:])
	return b.String()
}

type span struct{ start, end int }

// variablesOf yields the variables in a template with their positions.
func variablesOf(template string) func(yield func(string, span) bool) {
	return func(yield func(string, span) bool) {
		for at := 0; ; {
			open := strings.Index(template[at:], "{{")
			if open < 0 {
				return
			}
			start := at + open
			rest := template[start+2:]
			inner := strings.TrimLeft(rest, " \t")
			n := 0
			for n < len(inner) && (inner[n]|0x20 >= 'a' && inner[n]|0x20 <= 'z' || inner[n] == '_' || n > 0 && inner[n] >= '0' && inner[n] <= '9') {
				n++
			}
			name, behind := inner[:n], strings.TrimLeft(inner[n:], " \t")
			if n == 0 || !strings.HasPrefix(behind, "}}") {
				at = start + 1 // in {{{a}} the variable begins one character later
				continue
			}
			at = len(template) - len(behind) + 2
			if !yield(name, span{start, at}) {
				return
			}
		}
	}
}

// unknownVariables returns the unknown variables in a template, with their lines counted
// from 1.
func unknownVariables(template string) (names []string, lines []int) {
	var none Variables
	line, counted := 1, 0
	for name, place := range variablesOf(template) {
		if _, ok := none.value(name); !ok {
			line += strings.Count(template[counted:place.start], "\n")
			counted = place.start
			names, lines = append(names, name), append(lines, line)
		}
	}
	return names, lines
}
