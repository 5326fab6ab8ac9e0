package belay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/belay-run/belay/internal/scan"
)

// expand handles the names that users type. First it runs the directives, in the order of
// the message. Then it calls the extensions that expand messages.
func (t *turn) expand(said *submitted) EndReason {
	defer t.gatherWishes() // collects the wishes of subagents that directives and skills have started
	typed := said.text
	bound := t.agent.bindNames(typed, t.reach())
	if len(bound) > 0 {
		tokens := make([]scan.Token, len(bound))
		for i := range bound {
			tokens[i] = bound[i].Token
		}
		at := 0
		said.text = scan.Replace(typed, tokens, func(token scan.Token) string {
			at++
			return Placeholder(token.Name, bound[at-1].directive == nil)
		})
	}
	names := slices.ContainsFunc(bound, func(b boundName) bool { return b.directive == nil })
	end := len(strings.TrimRightFunc(typed, unicode.IsSpace))
	var done []string
	for i := range bound {
		if bound[i].directive == nil {
			continue
		}
		use := &DirectiveUse{Typed: typed, Rest: strings.TrimSpace(typed[min(bound[i].End, end):end]), more: names || i < len(bound)-1}
		err := t.direct(said, &bound[i], use)
		if end := t.endDirect(said); end != "" {
			return end
		}
		if err != nil {
			if len(done) > 0 {
				err = fmt.Errorf("%w (directives that already ran: %s; their effects are not undone)", err, strings.Join(done, ", "))
			}
			return t.fail(err)
		}
		if said.reply != nil {
			return ""
		}
		done = append(done, "/"+bound[i].Name)
	}
	return t.expandFurther(said, typed, bound)
}

// endDirect returns how the turn ends if a call of RunTool ended it, or "".
func (t *turn) endDirect(said *submitted) EndReason {
	switch {
	case said.failure != nil:
		return t.fail(said.failure)
	case said.halted && t.ctx.Err() == nil:
		return EndBlocked
	default:
		return ""
	}
}

// direct runs one directive. It fills in use from the whole message.
func (t *turn) direct(said *submitted, b *boundName, use *DirectiveUse) error {
	t.emit(Event{Kind: EventHookInvoked, Text: b.Name, Invoked: &InvokedEvent{Name: b.Name, Source: SourceUser}})
	use.Name, use.Text, use.Parts, use.Controls = b.Name, said.text, slices.Clone(said.parts), &Controls{turn: t, said: said, by: "/" + b.Name}
	outcome, err := run(t.ctx, b.directive, use)
	use.Controls.close()
	if err == nil && outcome.Text != nil {
		err = validParts([]Part{Text(*outcome.Text)})
	}
	if err == nil && outcome.Reply != nil {
		err = outcome.Reply.check()
	}
	if err == nil && t.ctx.Err() != nil {
		err = context.Cause(t.ctx)
	}
	if err != nil {
		return fmt.Errorf("directive /%s: %w", b.Name, err)
	}
	if outcome.Text != nil {
		said.text = *outcome.Text
	}
	if outcome.Reply != nil {
		said.answer(outcome.Reply, "/"+b.Name)
	}
	return nil
}

// run calls a directive and recovers from its panic.
func run(ctx context.Context, d *Directive, use *DirectiveUse) (outcome DirectiveOutcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return d.Run(ctx, use)
}

// expandFurther lets the extensions expand the message, until one of them replies.
func (t *turn) expandFurther(said *submitted, typed string, bound []boundName) EndReason {
	for _, extension := range t.agent.composed.Load().extensions {
		e, err := extension.within(t.reach())
		if err != nil {
			return t.fail(err)
		}
		in, ok := e.(InputExtension)
		if !ok {
			continue
		}
		s := Submission{
			Session: t.scope.Session, Turn: t.scope.Turn, Agent: t.scope.Agent, Text: said.text, Typed: typed,
			Controls: &Controls{turn: t, said: said, by: extension.name},
		}
		for _, b := range bound {
			if b.extension == extension {
				s.Names = append(s.Names, b.Name)
			}
		}
		x, err := in.Expand(t.ctx, s)
		s.Controls.close()
		if end := t.endDirect(said); end != "" {
			return end
		}
		for _, injected := range x.Injected {
			err = errors.Join(err, validParts(injected.Parts))
		}
		if x.Text != nil {
			err = errors.Join(err, validParts([]Part{Text(*x.Text)}))
		}
		if x.Reply != nil {
			err = errors.Join(err, x.Reply.check())
		}
		if err != nil {
			return t.fail(fmt.Errorf("extension %q: %w", extension.name, err))
		}
		if x.Text != nil {
			said.text = *x.Text
		}
		said.injected = append(said.injected, x.Injected...)
		if x.Reply != nil {
			said.answer(x.Reply, extension.name)
			return ""
		}
	}
	return ""
}
