package visible

import "strings"

// mostLines is how many lines of a failed hook's output are shown. The last lines are
// the most useful.
const mostLines = 40

// HookFailure describes a failed hook: its name, the phase, what happened, and below that
// the hook's output, if it has more than one line. Both happened and said can be empty.
func HookFailure(hook, phase, happened, said string) string {
	lines := strings.Split(strings.TrimSpace(Clean(said)), "\n")
	text := "hook " + OneLine(hook) + " failed at " + OneLine(phase)
	if happened = OneLine(happened); happened != "" {
		text += ": " + happened
	}
	if happened == "" || len(lines) == 1 {
		if first := strings.TrimSpace(lines[0]); first != "" {
			text += ": " + first
		}
		lines = lines[1:]
	}
	if len(lines) > mostLines {
		lines = append([]string{"…"}, lines[len(lines)-mostLines:]...)
	}
	return strings.Join(append([]string{text}, lines...), "\n")
}

// OneLine returns a text as one line: white space becomes one space, and control characters become visible.
func OneLine(text string) string { return strings.Join(strings.Fields(All(text)), " ") }
