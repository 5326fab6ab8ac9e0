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

// Skill is a set of instructions for an agent. It can be used in three ways:
//
//   - content: a text, possibly with sections, that the model reads when the description
//     fits the task;
//   - computed: a handler whose result is the text;
//   - triggered: a text that becomes part of a turn's prompt when a trigger matches the
//     task.
//
// A user adds a skill to a message by typing /name.
//
// Do not change a skill after you have added it to a catalog, because turns share it.
type Skill struct {
	// ID is the ID in skill:ID. Users can also type /id, and the tools accept the id, if
	// no skill has that name. Defaults to Name.
	ID string
	// Name is the name in /name. The tools use it too.
	Name string
	// Description explains what the skill is for and when to use it. Defaults to empty.
	Description string
	// Priority orders skills in lists and prompts: higher priorities come first. Defaults
	// to 0.
	Priority int
	// Hidden keeps the skill out of every list that the model sees. Users can still type
	// /name. Defaults to false.
	Hidden bool
	// UserOnly keeps the model from reading or calling the skill. Users can still type
	// /name, and triggers can still make the skill active. Defaults to false.
	UserOnly bool
	// ModelOnly keeps users from typing /name. Defaults to false.
	ModelOnly bool
	// Body is the text of the skill. Defaults to the text from the source. If a user
	// types /name, the text after the name replaces $ARGUMENTS in Body.
	Body string
	// Sections are texts that are read one by one. Defaults to the sections from the
	// source.
	Sections []Section
	// Triggers decide when Body becomes part of the prompt. If a skill has triggers, its
	// body is a template, see [Variables]. Defaults to none.
	Triggers []Trigger
	// Handler computes the text of the skill. Defaults to none.
	Handler Handler
	// Exposed lets the model call the handler. Defaults to false: only users can call it,
	// with /name.
	Exposed bool
	// Agents lists the agents that may use the skill. Defaults to all agents.
	Agents []string
	// AllowedTools limits the tools of a turn in which the skill is active, if
	// Options.EnforceAllowedTools is set. Nil means no limit. An empty list allows no
	// tools.
	AllowedTools []string
	// Tags, License, Compatibility and Metadata are information for people. They may be
	// empty.
	Tags                   []string
	License, Compatibility string
	Metadata               map[string]string
	// Path is the skill's file, and Tolerated lists the mistakes in it. They are empty
	// for a skill that is not from a file.
	Path      string
	Tolerated []Problem
}

// Section is a part of a skill that the model reads on its own.
type Section struct {
	Name, Text string
}

// Handler computes the text of a skill. Make parts with [belay.Text] and similar
// functions. If a user typed /name, the parts are added before the user's message, and an
// error ends the turn. If the model called the skill, it gets the parts or the error as
// the result.
type Handler func(ctx context.Context, use *Use) ([]belay.Part, error)

// Text returns a computed skill whose result is a text. The model can call the skill, and
// users can type /name.
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
	// Name is the name of the skill.
	Name string
	// Source says who called the skill.
	Source UseSource
	// Text is the user's message, with a placeholder in place of /name. If the model
	// called the skill, Text equals Args.
	Text string
	// Args are the model's arguments. They are empty if a user called the skill.
	Args string
	// Session, Turn and Agent identify the caller.
	Session, Turn, Agent string
	// Controls let the handler control the turn. They are valid until the handler
	// returns.
	Controls *belay.Controls
}

// UseSource says who called a skill.
type UseSource string

// The callers of a skill.
const (
	ByUser  UseSource = belay.SourceUser  // a user typed /name
	ByAgent UseSource = belay.SourceAgent // the model called the tool invoke_skill
)

// ErrNotFound means that there is no such skill or section.
var ErrNotFound = errors.New("not found")

// nameLength is the maximum length of a name or an id in bytes.
const nameLength = 256

// content reports whether the skill has a text. A skill without a handler always has a
// text, in the skill itself or in its source.
func (s *Skill) content() bool { return s.Handler == nil || s.Body != "" || len(s.Sections) > 0 }

// callable reports whether the model may call the handler. Only invoke_skill lists a
// callable skill.
func (s *Skill) callable() bool { return s.Handler != nil && s.Exposed && !s.UserOnly }

// isFor reports whether an agent may use the skill.
func (s *Skill) isFor(agent string) bool {
	return len(s.Agents) == 0 || slices.Contains(s.Agents, agent)
}

// template reports whether the body is a template with variables.
func (s *Skill) template() bool { return len(s.Triggers) > 0 }

// sound returns an error if the skill is not valid.
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
