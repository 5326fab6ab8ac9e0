package guard

import (
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
)

// Row says what an agent's hooks can express at one event. The docs have a table of them.
type Row struct {
	// Event is the vendor's name. Phase is the phase that fires.
	Event, Phase string
	// Installed says that "belay hook install" sets up the event.
	Installed bool
	// Can is what an answer can express. Safer is what Belay does if an answer cannot be
	// expressed.
	Can, Safer string
}

// Rows returns the events of an agent at which Belay runs hooks: first those that are
// installed, then the others by name.
func Rows(agent dialect.Vendor) []Row {
	events := map[dialect.Vendor]map[string]struct {
		phase string
		can   abilities
	}{
		dialect.ClaudeCode: claudeEvents, dialect.Codex: codexEvents, dialect.GeminiCLI: geminiEvents, dialect.Cursor: cursorEvents, dialect.Copilot: copilotEvents,
	}[agent]
	setup, err := SetupOf(agent)
	if err != nil {
		return nil
	}
	names := slices.Clone(setup.events)
	for _, name := range slices.Sorted(maps.Keys(events)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var rows []Row
	for _, name := range names {
		e := events[name]
		rows = append(rows, Row{name, e.phase, slices.Contains(setup.events, name), e.can.words(e.phase), e.can.safer(e.phase)})
	}
	return rows
}

// words lists what an answer can express.
func (c abilities) words(phase string) string {
	var words []string
	add := func(can bool, word string) {
		if can {
			words = append(words, word)
		}
	}
	add(c.deny && phase == belay.TurnStop.Name(), "continue the turn")
	add(c.deny && phase != belay.TurnStop.Name(), "deny")
	add(c.ask, "ask")
	add(c.halt, "end the turn")
	add(c.input, "change the input")
	add(c.result, "change the result")
	add(c.context, "tell the model")
	if len(words) == 0 {
		return "nothing: Belay only records"
	}
	return strings.Join(words, ", ")
}

// safer says what Belay does in place of an answer that cannot be expressed.
func (c abilities) safer(phase string) string {
	var words []string
	switch phase {
	case belay.ToolPre.Name():
		if !c.ask {
			words = append(words, "a question denies, and an approval waits")
		}
		if !c.input {
			words = append(words, "a changed input denies")
		}
		if !c.halt {
			words = append(words, "an end of the turn denies")
		}
	case belay.ToolPost.Name():
		switch {
		case c.result:
		case c.halt:
			words = append(words, "a changed result ends the turn")
		default:
			words = append(words, "a changed result is lost, and standard error says so")
		}
	case belay.UserPromptSubmit.Name():
		if c.deny {
			words = append(words, "a changed message denies")
		} else {
			words = append(words, "a denial is lost, and standard error says so")
		}
	}
	if !c.context && phase != belay.SessionEnd.Name() && phase != belay.SubagentStop.Name() && phase != belay.TurnPreCompaction.Name() && phase != belay.TurnStop.Name() {
		words = append(words, "text for the model is dropped")
	}
	return strings.Join(words, "; ")
}
