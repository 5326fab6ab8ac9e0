package toolbox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
)

// Directives returns the standard slash commands, for an agent's Options.Directives:
//
//	/help           list the available commands
//	/compact        summarize the conversation to free space
//	/model NAME     use another model from now on; - returns to the agent's own; without a name, show the current one
//	/sh COMMAND     run a command yourself; the model sees it and its output in the next turn
//	/stop           end the turn without calling the model
//
// They work only at the beginning of a message. Elsewhere they are plain text. If more
// text follows, /compact and /model do their work, and then the text is sent to the
// model. If no text follows, the command answers without the model.
func Directives() []belay.Directive {
	return []belay.Directive{
		{Name: "help", Description: "list the available commands", Run: leading(help)},
		{Name: "compact", Description: "summarize the conversation to free space", Run: leading(compact)},
		{Name: "model", Description: "use another model: /model NAME, or - for the agent's own", Run: leading(model)},
		{Name: "sh", Description: "run a command yourself: /sh COMMAND", Run: leading(runCommand)},
		{Name: "stop", Description: "end the turn without calling the model", Run: leading(stop)},
	}
}

// leading makes a directive work only at the beginning of a message, or directly after
// other directives. Elsewhere the name stays in the text as the user typed it.
func leading(run func(context.Context, *belay.DirectiveUse) (belay.DirectiveOutcome, error)) func(context.Context, *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
	return func(ctx context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
		own := belay.Placeholder(use.Name, false)
		before, after, found := strings.Cut(use.Text, own)
		if !found || onlyNames(before) {
			return run(ctx, use)
		}
		text := before + "/" + use.Name + after
		return belay.DirectiveOutcome{Text: &text}, nil
	}
}

// onlyNames reports whether a text contains only placeholders.
func onlyNames(text string) bool {
	for word := range strings.FieldsSeq(text) {
		if !strings.HasPrefix(word, "[invoked_extension__") {
			return false
		}
	}
	return true
}

// reply ends the turn with an answer that is not from the model.
func reply(format string, args ...any) belay.DirectiveOutcome {
	return belay.DirectiveOutcome{Reply: &belay.Reply{Text: fmt.Sprintf(format, args...)}}
}

func help(_ context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
	var b strings.Builder
	for _, d := range use.Controls.TypedNames() {
		fmt.Fprintf(&b, "/%s: %s\n", d.Name, cmp.Or(d.Description, "(no description)"))
	}
	return reply("%s", strings.TrimSuffix(b.String(), "\n")), nil
}

func stop(context.Context, *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
	return reply("Stopped: the model was not called."), nil
}

// runCommand runs a command of the user with the tool shell. So the floor and the hooks check it,
// and the user may be asked, as for a command of the model.
func runCommand(_ context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
	command := strings.TrimSpace(use.Rest)
	if command == "" {
		return reply("To run a command: /sh COMMAND"), nil
	}
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return belay.DirectiveOutcome{}, fmt.Errorf("command: %w", err)
	}
	result, err := use.Controls.RunTool("shell", input)
	if err != nil {
		return belay.DirectiveOutcome{}, err
	}
	text := strings.TrimRight(result.Text, "\n")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return reply("%s\n%s\n%s", fence, text, fence), nil
}

func compact(ctx context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
	before, err := stored(ctx, use.Controls)
	if err == nil {
		err = use.Controls.Compact()
	}
	if err != nil || !use.Alone() {
		return belay.DirectiveOutcome{}, err
	}
	after, err := stored(ctx, use.Controls)
	if err == nil && after == before { // no summary was stored
		return reply("There is nothing to summarize yet."), nil
	}
	return reply("The conversation was summarized."), err
}

// stored returns how many messages the session has.
func stored(ctx context.Context, c *belay.Controls) (n int, err error) {
	for _, err := range c.Messages(ctx) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

func model(ctx context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
	name, _, _ := strings.Cut(strings.Join(strings.Fields(use.Rest), " "), " ")
	if name == "" || strings.HasPrefix(name, "/") {
		return reply("The current model is %s. To change it: /model NAME", cmp.Or(use.Controls.Model().Name, "a model without a name")), nil
	}
	wanted := name
	if wanted == "-" {
		wanted = "" // the agent's own model
	}
	next, err := use.Controls.FindModel(ctx, wanted)
	if err != nil {
		return belay.DirectiveOutcome{}, err
	}
	if r, ok := next.(belay.ReachModel); ok && wanted != "" {
		if err := r.Reach(ctx); err != nil { // otherwise the model would be kept, and every later turn would fail
			return belay.DirectiveOutcome{}, fmt.Errorf("model %q: %w", name, err)
		}
	}
	if err := use.Controls.KeepModel(next); err != nil {
		return belay.DirectiveOutcome{}, err
	}
	use.Text = withoutWord(use.Text, belay.Placeholder(use.Name, false), name)
	if use.Alone() {
		return reply("The model is %s from now on.", use.Controls.Model().Name), nil
	}
	return belay.DirectiveOutcome{Text: &use.Text}, nil
}

// withoutWord removes a word if it directly follows a certain text.
func withoutWord(text, behind, word string) string {
	for at := 0; ; {
		i := strings.Index(text[at:], behind)
		if i < 0 {
			return text
		}
		at += i + len(behind)
		rest := strings.TrimLeft(text[at:], " \t\r\n\v\f\u0085\u00a0")
		if after, ok := strings.CutPrefix(rest, word); ok {
			return text[:at] + after
		}
	}
}
