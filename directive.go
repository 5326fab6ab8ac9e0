package belay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/belay-run/belay/internal/scan"
)

// Directive is a name that users type with a slash in front, such as /compact, and
// what it does. It counts anywhere in a message where it stands between spaces.
type Directive struct {
	// Name is what follows the slash: an ASCII letter, then letters, digits, _ and
	// -. Case counts.
	Name string
	// Description says in a line what it does, for those who list directives.
	Description string
	// Run does it, each time a message has the name, before the message is stored
	// and the model is asked. An error ends the turn, and nothing of the message is
	// stored.
	Run func(ctx context.Context, use *DirectiveUse) (DirectiveOutcome, error)
}

// DirectiveUse is a directive in a message.
type DirectiveUse struct {
	Name string
	// Typed is what the user typed, as user.prompt.submit left it.
	Typed string
	// Text is the same with [Placeholder]s for the names in it, as the directives
	// before this one left it.
	Text string
	// Rest is what was typed behind the name, without the space around it.
	Rest string
	// Parts are the images and files of the message.
	Parts []Part
	// Controls are good until Run returns.
	Controls *Controls

	more bool // other names are still to be answered to
}

// Alone reports whether nothing is left to do once the directive is done: the message
// says nothing besides names, none of them is a skill's, and this one is the last. It
// is then time for a Reply.
func (u *DirectiveUse) Alone() bool {
	return !u.more && len(u.Parts) == 0 && strings.TrimSpace(withoutPlaceholders(u.Text)) == ""
}

// DirectiveOutcome is what a directive makes of a message. The zero value leaves it
// as it is.
type DirectiveOutcome struct {
	// Text replaces the text for everything that comes after; empty counts.
	Text *string
	// Reply answers in the model's place. The message and the answer are stored,
	// and the directives and skills behind this one are not asked.
	Reply *Reply
}

// Reply is an answer in the model's place, which ends the turn.
type Reply struct {
	// Text is the answer.
	Text string
	// Reason is how the turn ends: not parked, and not aborted. Defaults to EndTurn.
	Reason EndReason
	// Why says more, for a reason that needs it. Defaults to nothing.
	Why string
	// Usage is what the answer took, for one that something else has worked out.
	// Defaults to nothing.
	Usage Usage
}

// check refuses ends that a turn cannot come to by an answer.
func (r *Reply) check() error {
	switch r.Reason {
	case "", EndTurn, EndMaxSteps, EndBudget, EndRefused, EndBlocked, EndStuck, EndError:
		return nil
	default:
		return fmt.Errorf("its reply ends the turn with %q: a turn that is answered is neither parked nor aborted", r.Reason)
	}
}

const (
	placeholderStart = "[invoked_extension__"
	directiveKind    = "hook"
	nameKind         = "skill"
)

// Placeholder is what a stored message has in the place of /name, so that it never
// counts again. Skill says that it is a skill's name and not a directive's.
func Placeholder(name string, skill bool) string {
	kind := directiveKind
	if skill {
		kind = nameKind
	}
	return placeholderStart + kind + "_" + name + "]"
}

// withoutPlaceholders takes placeholders out of a text.
func withoutPlaceholders(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, placeholderStart)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		kind, name, ok := strings.Cut(rest, "_")
		if n := scan.NameLength(name); ok && (kind == directiveKind || kind == nameKind) && n > 0 && strings.HasPrefix(name[n:], "]") {
			text = name[n+1:]
			continue
		}
		b.WriteString(placeholderStart)
		text = rest
	}
}

// Define adds directives, all or none, and returns the lease that takes them back.
// Messages see both from the next one on.
func (a *Agent) Define(directives ...Directive) (*Lease, error) {
	a.changing.Lock()
	defer a.changing.Unlock()
	all := maps.Clone(*a.directives.Load())
	var problems []error
	var added []*Directive
	for _, d := range directives {
		switch {
		case !scan.Valid(d.Name):
			problems = append(problems, fmt.Errorf("directive %q: nobody can type that name: want an ASCII letter, then letters, digits, _ and -", d.Name))
		case all[d.Name] != nil:
			problems = append(problems, fmt.Errorf("directive %q: the agent has another of that name", d.Name))
		case d.Run == nil:
			problems = append(problems, fmt.Errorf("directive %q: it has nothing to run", d.Name))
		}
		all[d.Name] = &d
		added = append(added, &d)
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("define directives: %w", errors.Join(problems...))
	}
	a.directives.Store(&all)
	return NewLease(func() { a.undefine(added) }), nil
}

func (a *Agent) undefine(gone []*Directive) {
	a.changing.Lock()
	defer a.changing.Unlock()
	left := maps.Clone(*a.directives.Load())
	maps.DeleteFunc(left, func(_ string, d *Directive) bool { return slices.Contains(gone, d) })
	a.directives.Store(&left)
}

// Directives are those that the agent has now, by name.
func (a *Agent) Directives() []Directive {
	all := *a.directives.Load()
	list := make([]Directive, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	return list
}

// TypedName is a name that users can type with a slash in front.
type TypedName struct {
	Name, Description string
	// From is the extension that answers to it; empty for a directive.
	From string
}

// TypedNames are what users can type with a slash in front now: the directives, by
// name, and then the names of extensions that list them. One that a directive, or an
// earlier extension, has too is not among them.
func (a *Agent) TypedNames() []TypedName {
	var names []TypedName
	taken := make(map[string]bool)
	for _, d := range a.Directives() {
		names = append(names, TypedName{Name: d.Name, Description: d.Description})
		taken[d.Name] = true
	}
	for _, e := range a.opts.Extensions {
		lister, ok := e.(NameListExtension)
		if !ok {
			continue
		}
		for _, n := range lister.TypedNames(a.opts.Name) {
			if !taken[n.Name] {
				n.From = e.Name()
				names = append(names, n)
			}
			taken[n.Name] = true
		}
	}
	return names
}

// boundName is a name in a message with who answers to it.
type boundName struct {
	scan.Token
	directive *Directive
	extension int // of the agent's, if there is no directive
}

// bindNames finds out who answers to the names in a text: directives, and then the
// extensions in their order. What nobody answers to stays as it was typed. Extensions are
// asked once for each name, however often the text has it.
func (a *Agent) bindNames(text string) []boundName {
	tokens := scan.Tokens(text)
	if len(tokens) == 0 {
		return nil
	}
	directives := *a.directives.Load()
	owners := make(map[string]int)
	var bound []boundName
	for _, token := range tokens {
		if d := directives[token.Name]; d != nil {
			bound = append(bound, boundName{Token: token, directive: d})
			continue
		}
		owner, asked := owners[token.Name]
		if !asked {
			owner = slices.IndexFunc(a.opts.Extensions, func(e Extension) bool {
				n, ok := e.(NameExtension)
				return ok && n.Binds(a.opts.Name, token.Name)
			})
			owners[token.Name] = owner
		}
		if owner >= 0 {
			bound = append(bound, boundName{Token: token, extension: owner})
		}
	}
	return bound
}

// expand does what users type: directives first, in the order in which the message
// has them, then the extensions that look at messages. The text is looked through
// once.
func (t *turn) expand(said *submitted) EndReason {
	defer t.gatherWishes() // of the children of directives and skills
	typed := said.text
	bound := t.agent.bindNames(typed)
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
		if err := t.direct(said, &bound[i], use); err != nil {
			if len(done) > 0 {
				err = fmt.Errorf("%w (what %s did before it stands)", err, strings.Join(done, ", "))
			}
			return t.failed(err)
		}
		if said.reply != nil {
			return ""
		}
		done = append(done, "/"+bound[i].Name)
	}
	return t.expandFurther(said, typed, bound)
}

// direct runs one directive. What of its use depends on the whole message is filled in.
func (t *turn) direct(said *submitted, b *boundName, use *DirectiveUse) error {
	t.emit(Event{Kind: EventHookInvoked, Text: b.Name, Invoked: &Invoked{Name: b.Name, Source: SourceUser}})
	use.Name, use.Text, use.Parts, use.Controls = b.Name, said.text, slices.Clone(said.parts), &Controls{turn: t, said: said}
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

// run calls a directive, which is not ours and may panic.
func run(ctx context.Context, d *Directive, use *DirectiveUse) (outcome DirectiveOutcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return d.Run(ctx, use)
}

// expandFurther lets the extensions look at what users type.
func (t *turn) expandFurther(said *submitted, typed string, bound []boundName) EndReason {
	for i, e := range t.agent.opts.Extensions {
		in, ok := e.(InputExtension)
		if !ok {
			continue
		}
		s := Submission{
			Session: t.scope.Session, Turn: t.scope.Turn, Agent: t.scope.Agent, Text: said.text, Typed: typed,
			Controls: &Controls{turn: t, said: said},
		}
		for _, b := range bound {
			if b.directive == nil && b.extension == i {
				s.Names = append(s.Names, b.Name)
			}
		}
		x, err := in.Expand(t.ctx, s)
		s.Controls.close()
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
			return t.failed(fmt.Errorf("extension %q: %w", e.Name(), err))
		}
		if x.Text != nil {
			said.text = *x.Text
		}
		said.injected = append(said.injected, x.Injected...)
		if x.Reply != nil {
			said.answer(x.Reply, e.Name())
			return ""
		}
	}
	return ""
}
