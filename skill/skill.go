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

// Skill is something an agent can be taught. It gets into a conversation in three
// ways, and may have all of them:
//
//   - content: a text, with sections, that the model reads when its description
//     fits the task;
//   - computed: a handler whose answer is the text;
//   - triggered: a text that becomes part of the prompt of a turn when one of its
//     triggers matches the task.
//
// A user puts any of them in front of a message by typing /name.
//
// A skill that a catalog has must not be changed: it is shared.
type Skill struct {
	// ID is what skill:ID in a text names. It is found by its id too where no skill has that
	// name: by /id and by the tools. Defaults to the name.
	ID string
	// Name is what /name and the tools name.
	Name string
	// Description says what it is for, and when to use it. Defaults to empty.
	Description string
	// Priority says whose description is told first, and whose text comes first:
	// that of the higher. Defaults to 0.
	Priority int
	// Hidden keeps it out of every list that the model sees. Users can still name
	// it. Defaults to false.
	Hidden bool
	// UserOnly keeps the model from reading and calling it: only users can name it, and
	// its triggers make it active. Defaults to false.
	UserOnly bool
	// ModelOnly keeps users from naming it as /name. Defaults to false.
	ModelOnly bool
	// Body is its text. Defaults to what its source reads. Where a user names it, what is
	// typed behind the name stands for $ARGUMENTS.
	Body string
	// Sections are texts that are read one by one. Defaults to none, or to what its
	// source reads.
	Sections []Section
	// Triggers make its body part of the prompt. The body of a skill with triggers
	// is a template, see [Variables]. Defaults to none.
	Triggers []Trigger
	// Handler computes its text. Defaults to none.
	Handler Handler
	// Exposed lets the model call the handler. Defaults to false: users can, by
	// /name.
	Exposed bool
	// Agents names the agents that it is for. Defaults to all.
	Agents []string
	// AllowedTools limits the tools of a turn in which it is active, where
	// Options.EnforceAllowedTools says so. Defaults to no limit; a list that is
	// empty and not nil allows none.
	AllowedTools []string
	// Tags, License, Compatibility and Metadata are told to people. They default to
	// empty.
	Tags                   []string
	License, Compatibility string
	Metadata               map[string]string
	// Path is the file it is from, and Tolerated tells what is wrong with it. They
	// default to nothing.
	Path      string
	Tolerated []Problem
}

// Section is a part of a skill that is read by itself.
type Section struct {
	Name, Text string
}

// Handler computes a skill. What it returns is put in front of the user's message,
// or told to the model that asked for it: make parts with [belay.Text] and its
// like. An error ends the turn of a user who named the skill, and is told to a
// model.
type Handler func(ctx context.Context, use *Use) ([]belay.Part, error)

// Use is what a handler is called with.
type Use struct {
	// Name is the skill's.
	Name string
	// Source is who asks.
	Source UseSource
	// Text is the user's message, with a placeholder where the skill was named; or
	// what the model gave as Args.
	Text string
	// Args is what the model gave, and empty for a user.
	Args string
	// Session, Turn and Agent are where it is used.
	Session, Turn, Agent string
	// Controls are what the handler can do with the turn, until it returns.
	Controls *belay.Controls
}

// UseSource says who asks for a skill.
type UseSource string

// Those who ask.
const (
	ByUser  UseSource = belay.SourceUser  // who typed /name
	ByAgent UseSource = belay.SourceAgent // the model, by the tool invoke_skill
)

// ErrNotFound says that there is no such skill, or no such section.
var ErrNotFound = errors.New("not found")

// nameLength is the most bytes of a name or an id.
const nameLength = 256

// content reports whether there is something to read: a skill without a handler
// has a text, if only in its source.
func (s *Skill) content() bool { return s.Handler == nil || s.Body != "" || len(s.Sections) > 0 }

// callable reports whether the model may call it. One that it may call is listed
// by that tool alone.
func (s *Skill) callable() bool { return s.Handler != nil && s.Exposed && !s.UserOnly }

// isFor reports whether it is for an agent.
func (s *Skill) isFor(agent string) bool {
	return len(s.Agents) == 0 || slices.Contains(s.Agents, agent)
}

// template reports whether its body has variables.
func (s *Skill) template() bool { return len(s.Triggers) > 0 }

// sound says what is wrong with a skill, whoever made it.
func (s *Skill) sound() error {
	if strings.TrimSpace(s.Name) == "" {
		return errors.New("it has no name")
	}
	for _, f := range []struct{ field, text string }{{"name", s.Name}, {"id", s.ID}} {
		if len(f.text) > nameLength {
			return fmt.Errorf("its %s has %d bytes: at most %d are taken", f.field, len(f.text), nameLength)
		}
		if !utf8.ValidString(f.text) || strings.ContainsFunc(f.text, unicode.IsControl) {
			return fmt.Errorf("its %s %q has characters that are no text", f.field, f.text)
		}
	}
	for _, f := range []struct{ field, text string }{{"description", s.Description}, {"body", s.Body}} {
		if !utf8.ValidString(f.text) {
			return fmt.Errorf("its %s is not UTF-8", f.field)
		}
	}
	return nil
}
