package skill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

// Skill is a set of instructions for an agent. It is used in up to three ways:
//
//   - content: a text, with sections, that the model reads when its description
//     fits the task;
//   - computed: a handler whose answer is the text;
//   - triggered: a text that becomes part of the prompt of a turn when one of its
//     triggers matches the task.
//
// A user adds any of them to a message by typing /name.
//
// Do not change a skill after adding it to a catalog: it is shared.
type Skill struct {
	// ID is used as skill:ID in a text. /id and the tools also accept it if no skill has
	// that name. Defaults to the name.
	ID string
	// Name is used by /name and the tools.
	Name string
	// Description explains what it is for and when to use it. Defaults to empty.
	Description string
	// Priority orders descriptions and texts: higher ones come first. Defaults to
	// 0.
	Priority int
	// Hidden keeps it out of every list that the model sees. Users can still name
	// it. Defaults to false.
	Hidden bool
	// UserOnly keeps the model from reading and calling it: only users can name it, and
	// its triggers make it active. Defaults to false.
	UserOnly bool
	// ModelOnly keeps users from naming it as /name. Defaults to false.
	ModelOnly bool
	// Body is its text. Defaults to the text from its source. If a user names the skill,
	// the text after the name replaces $ARGUMENTS.
	Body string
	// Sections are texts that are read one by one. Defaults to those of its source,
	// or none.
	Sections []Section
	// Triggers make its body part of the prompt. The body of a skill with triggers
	// is a template, see [Variables]. Defaults to none.
	Triggers []Trigger
	// Handler computes its text. Defaults to none.
	Handler Handler
	// Exposed lets the model call the handler. Defaults to false: only users can,
	// by /name.
	Exposed bool
	// Agents lists the agents that may use it. Defaults to all.
	Agents []string
	// AllowedTools limits the tools of a turn in which the skill is active, if
	// Options.EnforceAllowedTools is set. Nil means no limit; an empty list allows
	// no tools.
	AllowedTools []string
	// Tags, License, Compatibility and Metadata are for people. They default to
	// empty.
	Tags                   []string
	License, Compatibility string
	Metadata               map[string]string
	// Path is its file, and Tolerated lists its tolerated mistakes. They default to
	// empty.
	Path      string
	Tolerated []Problem
}

// Section is a part of a skill that is read by itself.
type Section struct {
	Name, Text string
}

// Handler computes a skill. Its result is put before the user's message, or
// returned to the model that called it. Make parts with [belay.Text] and similar
// functions. An error ends the turn of a user who named the skill; a model gets
// the error.
type Handler func(ctx context.Context, use *Use) ([]belay.Part, error)

// Text returns a computed skill with a text as its result. The model can call it, and users
// name it as /name.
func Text(name, description string, compute func(ctx context.Context, use *Use) (string, error)) Skill {
	return Skill{Name: name, Description: description, Exposed: true, Handler: func(ctx context.Context, use *Use) ([]belay.Part, error) {
		text, err := compute(ctx, use)
		if err != nil {
			return nil, err
		}
		return []belay.Part{belay.Text(text)}, nil
	}}
}

// Use is the input of a handler.
type Use struct {
	// Name is the skill's.
	Name string
	// Source is the caller.
	Source UseSource
	// Text is the user's message, with a placeholder where the skill was named; or
	// the Args of the model.
	Text string
	// Args are the model's arguments; empty for a user.
	Args string
	// Session, Turn and Agent identify the caller.
	Session, Turn, Agent string
	// Controls let the handler control the turn, until it returns.
	Controls *belay.Controls
}

// UseSource is the caller of a skill.
type UseSource string

// The callers.
const (
	ByUser  UseSource = belay.SourceUser  // who typed /name
	ByAgent UseSource = belay.SourceAgent // the model, by the tool invoke_skill
)

// ErrNotFound means that there is no such skill or section.
var ErrNotFound = errors.New("not found")

// nameLength is the maximum length of a name or an id in bytes.
const nameLength = 256

// content reports whether the skill has a text: every skill without a handler
// has one, at least in its source.
func (s *Skill) content() bool { return s.Handler == nil || s.Body != "" || len(s.Sections) > 0 }

// callable reports whether the model may call it. A callable skill is listed
// only by the invoking tool.
func (s *Skill) callable() bool { return s.Handler != nil && s.Exposed && !s.UserOnly }

// isFor reports whether an agent may use it.
func (s *Skill) isFor(agent string) bool {
	return len(s.Agents) == 0 || slices.Contains(s.Agents, agent)
}

// template reports whether its body has variables.
func (s *Skill) template() bool { return len(s.Triggers) > 0 }

// sound returns what is wrong with a skill, or nil.
func (s *Skill) sound() error {
	if strings.TrimSpace(s.Name) == "" {
		return errors.New("it has no name")
	}
	for _, f := range []struct{ field, text string }{{"name", s.Name}, {"id", s.ID}} {
		if len(f.text) > nameLength {
			return fmt.Errorf("its %s has %d bytes: at most %d are allowed", f.field, len(f.text), nameLength)
		}
		if !utf8.ValidString(f.text) || strings.ContainsFunc(f.text, unicode.IsControl) {
			return fmt.Errorf("its %s %q has unprintable characters", f.field, f.text)
		}
	}
	for _, f := range []struct{ field, text string }{{"description", s.Description}, {"body", s.Body}} {
		if !utf8.ValidString(f.text) {
			return fmt.Errorf("its %s is not UTF-8", f.field)
		}
	}
	return nil
}
