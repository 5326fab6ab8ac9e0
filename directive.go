package belay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/scan"
)

// Directive is a slash command, such as /compact. Users type its name after a slash,
// anywhere in a message. Spaces must separate it from other text.
type Directive struct {
	// Name is the text after the slash: an ASCII letter, then letters, digits, _ and -. The
	// name is case-sensitive.
	Name string
	// Description says in one line what the directive does. Lists of directives show it.
	Description string
	// Run is called for each occurrence of the name in a message, before the message is
	// stored and sent to the model. An error ends the turn, and the message is not stored.
	Run func(ctx context.Context, use *DirectiveUse) (DirectiveOutcome, error)
}

// DirectiveUse is one occurrence of a directive in a message.
type DirectiveUse struct {
	Name string
	// Typed is the user's text, as the hooks of user.prompt.submit left it.
	Typed string
	// Text is the same text, with a [Placeholder] for each name. Directives before this one
	// may have changed it.
	Text string
	// Rest is the text after the name, without leading and trailing space.
	Rest string
	// Parts are the images and files of the message.
	Parts []Part
	// Controls work until Run returns.
	Controls *Controls

	more bool // more directives or skills of the message are still to run
}

// Alone reports whether the message contains nothing but this directive: no other text, no
// image or file, no skill, and no later directive. The directive may then send a Reply.
func (u *DirectiveUse) Alone() bool {
	return !u.more && len(u.Parts) == 0 && strings.TrimSpace(withoutPlaceholders(u.Text)) == ""
}

// DirectiveOutcome is what a directive does with a message. The zero value leaves the
// message as it is.
type DirectiveOutcome struct {
	// Text replaces the message's text, even if Text points to an empty string. Nil keeps
	// the text.
	Text *string
	// Reply answers instead of the model. Belay stores the message and the answer. Later
	// directives and skills do not run.
	Reply *Reply
}

// Reply is an answer that does not come from the model. It ends the turn.
type Reply struct {
	// Text is the answer.
	Text string
	// Parts are further parts of the answer, after the text: texts, images and files.
	// Defaults to none.
	Parts []Part
	// More are further messages after the first one. Each element has the parts of one
	// message. Defaults to none.
	More [][]Part
	// Reason is how the turn ends. It cannot be parked or aborted. Defaults to EndTurn.
	Reason EndReason
	// Why explains Reason. Defaults to nothing.
	Why string
	// Usage is the cost of the answer, if another model produced it. Defaults to nothing.
	Usage Usage
}

// check refuses parts and an end reason that a reply cannot have.
func (r *Reply) check() error {
	for i, parts := range append([][]Part{r.Parts}, r.More...) {
		if err := validParts(parts); err != nil {
			return fmt.Errorf("message %d of its reply: %w", i+1, err)
		}
	}
	switch r.Reason {
	case "", EndTurn, EndMaxSteps, EndBudget, EndRefused, EndBlocked, EndStuck, EndError:
		return nil
	default:
		return fmt.Errorf("the Reply has the end reason %q: a reply cannot park or abort the turn, use another Reason", r.Reason)
	}
}

// messages returns the messages of the reply, at least one, and the text of all of them.
func (r *Reply) messages(by string) ([]*Message, string) {
	first := r.Parts
	if text := validText(r.Text); text != "" {
		first = append([]Part{Text(text)}, r.Parts...)
	}
	var all []*Message
	var texts []string
	for _, parts := range append([][]Part{first}, r.More...) {
		if len(parts) == 0 {
			continue
		}
		m := &Message{Role: RoleAssistant, Kind: KindAssistant, Parts: slices.Clone(parts), StopReason: StopEnd, Model: by}
		if all = append(all, m); m.Text() != "" {
			texts = append(texts, m.Text())
		}
	}
	if len(all) == 0 {
		all = []*Message{{Role: RoleAssistant, Kind: KindAssistant, Parts: []Part{Text("(no answer)")}, StopReason: StopEnd, Model: by}}
	}
	return all, strings.Join(texts, "\n\n")
}

const (
	placeholderStart = "[invoked_extension__"
	directiveKind    = "hook"
	nameKind         = "skill"
)

// Placeholder returns the text that replaces /name in a stored message, so that Belay does
// not run the directive again. If skill is true, the name is the name of a skill.
func Placeholder(name string, skill bool) string {
	kind := directiveKind
	if skill {
		kind = nameKind
	}
	return placeholderStart + kind + "_" + name + "]"
}

// withoutPlaceholders removes placeholders from a text.
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

// Define adds all of the directives or none. Closing the lease removes them. The change
// applies from the next message on.
func (a *Agent) Define(directives ...Directive) (*Lease, error) {
	a.changing.Lock()
	defer a.changing.Unlock()
	all := maps.Clone(*a.directives.Load())
	var problems []error
	var added []*Directive
	for _, d := range directives {
		switch {
		case !scan.Valid(d.Name):
			problems = append(problems, fmt.Errorf("directive %q: invalid name: use an ASCII letter, then letters, digits, _ and -", d.Name))
		case all[d.Name] != nil:
			problems = append(problems, fmt.Errorf("directive %q: the agent already has a directive with this name: rename one of them", d.Name))
		case d.Run == nil:
			problems = append(problems, fmt.Errorf("directive %q: Run is nil: set it to a function", d.Name))
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

// Undefine removes directives by their names: all of them or none. It does what closing their
// leases does, no matter who has the leases, and also removes directives of Options.Directives. The
// leases can still be closed. Undefine fails if there is no such directive.
func (a *Agent) Undefine(names ...string) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	left := maps.Clone(*a.directives.Load())
	var problems []error
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if left[name] == nil {
			problems = append(problems, fmt.Errorf("there is no directive %q", name))
		}
		delete(left, name)
	}
	if len(problems) > 0 {
		return fmt.Errorf("undefine directives: %w", errors.Join(problems...))
	}
	a.directives.Store(&left)
	return nil
}

func (a *Agent) undefine(gone []*Directive) {
	a.changing.Lock()
	defer a.changing.Unlock()
	left := maps.Clone(*a.directives.Load())
	maps.DeleteFunc(left, func(_ string, d *Directive) bool { return slices.Contains(gone, d) })
	a.directives.Store(&left)
}

// Directives returns the agent's directives, sorted by name.
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
	// From is the extension that owns the name. It is empty for a directive.
	From string
	// Aliases are other names for the same thing. Defaults to none.
	Aliases []string
}

// TypedNames returns the names that users can type after a slash: first the directives,
// sorted by name, then the names of extensions. It lists each name once: a directive takes
// precedence over an extension, and an earlier extension over a later one.
func (a *Agent) TypedNames() []TypedName { return a.typedNames(a.reach()) }

// TypedNames returns those of [Agent.TypedNames] that this turn may use. In the turn of a
// subagent, the limits of its parents apply too.
func (c *Controls) TypedNames() []TypedName { return c.turn.agent.typedNames(c.turn.reach()) }

func (a *Agent) typedNames(reach Reach) []TypedName {
	var names []TypedName
	taken := make(map[string]bool)
	for _, d := range a.Directives() {
		names = append(names, TypedName{Name: d.Name, Description: d.Description})
		taken[d.Name] = true
	}
	for _, x := range a.composed.Load().extensions {
		extension, binds := a.namesOf(x, reach)
		if extension == nil {
			continue
		}
		for _, n := range extension.TypedNames(reach.Agent) {
			if !taken[n.Name] && binds(n.Name) {
				n.From = x.name
				names = append(names, n)
			}
			taken[n.Name] = true
		}
	}
	return names
}

// boundName is a name in a message, with the directive or extension that owns it.
type boundName struct {
	scan.Token
	directive *Directive
	extension *attached // nil for a directive
}

// bindNames finds the names in a text that belong to a directive or an extension. It
// calls Binds of an extension at most once for each name.
func (a *Agent) bindNames(text string, reach Reach) []boundName {
	tokens := scan.Tokens(text)
	if len(tokens) == 0 {
		return nil
	}
	directives := *a.directives.Load()
	extensions := a.composed.Load().extensions
	owners := make(map[string]int)
	var binds []func(string) bool // by extension; nil for an extension without names
	for _, x := range extensions {
		_, b := a.namesOf(x, reach)
		binds = append(binds, b)
	}
	var bound []boundName
	for _, token := range tokens {
		if d := directives[token.Name]; d != nil {
			bound = append(bound, boundName{Token: token, directive: d})
			continue
		}
		owner, asked := owners[token.Name]
		if !asked {
			owner = slices.IndexFunc(binds, func(b func(string) bool) bool { return b != nil && b(token.Name) })
			owners[token.Name] = owner
		}
		if owner >= 0 {
			bound = append(bound, boundName{Token: token, extension: extensions[owner]})
		}
	}
	return bound
}
