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
	// Aliases are other names that do the same. They default to none.
	Aliases []string
}

// TypedNames are what users can type with a slash in front now: the directives, by
// name, and then the names of extensions that list them. One that a directive, or an
// earlier extension, has too is not among them.
func (a *Agent) TypedNames() []TypedName { return a.typedNames(a.reach()) }

// TypedNames are those of the agent that the turn may use: a subagent's may be fewer.
func (c *Controls) TypedNames() []TypedName { return c.turn.agent.typedNames(c.turn.reach()) }

func (a *Agent) typedNames(reach Reach) []TypedName {
	var names []TypedName
	taken := make(map[string]bool)
	for _, d := range a.Directives() {
		names = append(names, TypedName{Name: d.Name, Description: d.Description})
		taken[d.Name] = true
	}
	for i := range a.opts.Extensions {
		extension, binds := a.namesOf(i, reach)
		if extension == nil {
			continue
		}
		for _, n := range extension.TypedNames(reach.Agent) {
			if !taken[n.Name] && binds(n.Name) {
				n.From = a.names[i]
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
func (a *Agent) bindNames(text string, reach Reach) []boundName {
	tokens := scan.Tokens(text)
	if len(tokens) == 0 {
		return nil
	}
	directives := *a.directives.Load()
	owners := make(map[string]int)
	var binds []func(string) bool // by extension; nil for one that answers to no names
	for i := range a.opts.Extensions {
		_, b := a.namesOf(i, reach)
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
			bound = append(bound, boundName{Token: token, extension: owner})
		}
	}
	return bound
}
