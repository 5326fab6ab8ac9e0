package visible

import "strings"

// mostLines limits how many lines of a failed hook's output are shown. The last lines are
// shown, because they are the most useful.
const mostLines = 40

// HookFailure describes a failed hook: its name, the phase and what happened. Output of
// several lines is below that. happened and said can be empty.
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

// OneLine returns a text as one line. White space becomes one space, and control characters
// become visible.
func OneLine(text string) string { return strings.Join(strings.Fields(All(text)), " ") }
