package visible

import "strings"

// mostLines is how many lines are shown of what a failed hook said. The end says most.
const mostLines = 40

// HookFailure says that a hook failed: who, at which phase, what happened, and below that
// what the hook said, if it is more than a line. Either of the two may be empty.
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
