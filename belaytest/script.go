package belaytest

import (
	"github.com/belay-run/belay/provider/scripted"
)

// Script returns a model that plays one step for each request. It does not stream: each
// answer arrives as a whole. For a model that streams, fails or reads its steps from a
// file, use package scripted.
func Script(steps ...scripted.Step) *scripted.Model {
	return scripted.New(steps, &scripted.Options{Pace: scripted.Pace{Chunk: scripted.Whole}})
}

// Says returns a step that ends the turn with a text.
func Says(text string) scripted.Step { return scripted.Step{Text: text} }

// Calls returns a step that calls a tool, and more tools in the same response. The input is
// JSON text, or a value that is encoded as JSON. nil means {}.
func Calls(tool string, input any, more ...scripted.Call) scripted.Step {
	return scripted.Step{Calls: append([]scripted.Call{{Tool: tool, Input: input}}, more...)}
}
