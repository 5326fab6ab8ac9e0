package toolbox

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
)

// Directives are the stock directives of an agent, for its Options.Directives:
//
//	/help           list what can be typed with a slash in front
//	/compact        sum the conversation up, to make room
//	/model NAME     have another model answer from now on; - is the agent's own again; without a name, tell which one does
//	/stop           end the turn without asking the model
//
// They count at the beginning of a message: elsewhere they are words like others. In
// front of a longer message /compact and /model do their work and the message goes on; a
// message that is nothing else is answered without the model.
func Directives() []belay.Directive {
	return []belay.Directive{
		{Name: "help", Description: "list what can be typed with a slash in front", Run: leading(help)},
		{Name: "compact", Description: "sum the conversation up, to make room", Run: leading(compact)},
		{Name: "model", Description: "have another model answer from now on: /model NAME, or - for the agent's own again", Run: leading(model)},
		{Name: "stop", Description: "end the turn without asking the model", Run: leading(stop)},
	}
}

// leading makes a directive count at the beginning of a message, behind other names at
// most. Elsewhere the name is put back as it was typed.
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

// onlyNames reports whether a text has nothing but placeholders in it.
func onlyNames(text string) bool {
	for word := range strings.FieldsSeq(text) {
		if !strings.HasPrefix(word, "[invoked_extension__") {
			return false
		}
	}
	return true
}

// reply answers in the model's place.
func reply(format string, args ...any) belay.DirectiveOutcome {
	return belay.DirectiveOutcome{Reply: &belay.Reply{Text: fmt.Sprintf(format, args...)}}
}

func help(_ context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
	var b strings.Builder
	for _, d := range use.Controls.TypedNames() {
		fmt.Fprintf(&b, "/%s: %s\n", d.Name, cmp.Or(d.Description, "(it says nothing about itself)"))
	}
	return reply("%s", strings.TrimSuffix(b.String(), "\n")), nil
}

func stop(context.Context, *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
	return reply("Stopped: the model was not asked."), nil
}

func compact(ctx context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
	empty := true
	for _, err := range use.Controls.Messages(ctx) {
		if err != nil {
			return belay.DirectiveOutcome{}, err
		}
		empty = false
		break
	}
	switch {
	case empty && use.Alone():
		return reply("There is nothing to sum up yet."), nil
	case empty:
		return belay.DirectiveOutcome{}, nil
	}
	if err := use.Controls.Compact(); err != nil {
		return belay.DirectiveOutcome{}, err
	}
	if use.Alone() {
		return reply("The conversation was summed up."), nil
	}
	return belay.DirectiveOutcome{}, nil
}

func model(ctx context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
	name, _, _ := strings.Cut(strings.Join(strings.Fields(use.Rest), " "), " ")
	if name == "" || strings.HasPrefix(name, "/") {
		return reply("%s answers. Another one: /model NAME", cmp.Or(use.Controls.Model().Name, "A model without a name")), nil
	}
	wanted := name
	if wanted == "-" {
		wanted = "" // the agent's own
	}
	next, err := use.Controls.FindModel(ctx, wanted)
	if err != nil {
		return belay.DirectiveOutcome{}, err
	}
	if r, ok := next.(belay.ReachModel); ok && wanted != "" {
		if err := r.Reach(ctx); err != nil { // it would be kept, and fail turn after turn
			return belay.DirectiveOutcome{}, fmt.Errorf("model %q: %w", name, err)
		}
	}
	if err := use.Controls.KeepModel(next); err != nil {
		return belay.DirectiveOutcome{}, err
	}
	use.Text = withoutWord(use.Text, belay.Placeholder(use.Name, false), name)
	if use.Alone() {
		return reply("%s answers from now on.", use.Controls.Model().Name), nil
	}
	return belay.DirectiveOutcome{Text: &use.Text}, nil
}

// withoutWord takes a word away that stands behind another, in the first place where
// it does.
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
