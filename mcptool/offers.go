package mcptool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mostEntries is the maximum number of resources or prompts in a list.
const mostEntries = 200

// Resource is a resource of a server, or a template of URIs.
type Resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
}

// Prompt is a prepared prompt of a server.
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
}

// PromptArgument is an argument of a [Prompt].
type PromptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// Resources returns the resources of a server, at most 200. A server without resources has
// none.
func (e *Extension) Resources(ctx context.Context, server string) ([]Resource, error) {
	return offersOf(ctx, e, server, resourcesOf)
}

// Prompts returns the prompts of a server, at most 200. A server without prompts has none.
func (e *Extension) Prompts(ctx context.Context, server string) ([]Prompt, error) {
	return offersOf(ctx, e, server, promptsOf)
}

// offersOf lists what a server offers.
func offersOf[T any](ctx context.Context, e *Extension, server string, list func(context.Context, *mcp.ClientSession) ([]T, bool, error)) ([]T, error) {
	m := e.mountOf(server)
	if m == nil {
		return nil, fmt.Errorf("mcp: there is no server %q", server)
	}
	var f *life
	if m.link != nil {
		f = m.link.current.Load()
	}
	if f == nil {
		return nil, fmt.Errorf("mcp: server %q is not ready", server)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, listing, errors.New("the server did not answer in time"))
	defer cancel()
	all, _, err := list(ctx, f.session)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("mcp server %q: %w", server, m.link.redacted(err))
	}
	return all, nil
}

// mountOf returns the server with a name, or nil.
func (e *Extension) mountOf(server string) *mount {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.IndexFunc(e.mounts, func(m *mount) bool { return m.server.Name == server }); i >= 0 {
		return e.mounts[i]
	}
	return nil
}

// resourcesOf lists the resources of a server, and its URI templates. It reports whether
// there are more than the maximum.
func resourcesOf(ctx context.Context, s *mcp.ClientSession) (all []Resource, more bool, err error) {
	if caps := s.InitializeResult().Capabilities; caps == nil || caps.Resources == nil {
		return nil, false, nil
	}
	for r, err := range s.Resources(ctx, nil) {
		if err != nil {
			return nil, false, err
		}
		if len(all) == mostEntries {
			return all, true, nil
		}
		if r.URI != "" { // nobody can request an entry without a URI
			all = append(all, Resource{r.URI, r.Name, cutText(r.Description, mostAbout)})
		}
	}
	for r, err := range s.ResourceTemplates(ctx, nil) {
		if err != nil {
			break // not every server has templates
		}
		if len(all) == mostEntries {
			return all, true, nil
		}
		if r.URITemplate != "" {
			all = append(all, Resource{r.URITemplate, r.Name, cutText(r.Description, mostAbout)})
		}
	}
	return all, false, nil
}

// mostAbout is the maximum length of a description in a list, in characters.
const mostAbout = 500

// promptsOf lists the prompts of a server. It reports whether there are more than the maximum.
func promptsOf(ctx context.Context, s *mcp.ClientSession) (all []Prompt, more bool, err error) {
	if caps := s.InitializeResult().Capabilities; caps == nil || caps.Prompts == nil {
		return nil, false, nil
	}
	for p, err := range s.Prompts(ctx, nil) {
		if err != nil {
			return nil, false, err
		}
		if len(all) == mostEntries {
			return all, true, nil
		}
		if p.Name == "" {
			continue
		}
		one := Prompt{Name: p.Name, Title: p.Title, Description: cutText(p.Description, mostAbout)}
		for _, a := range p.Arguments {
			if a != nil && len(one.Arguments) < mostFields {
				one.Arguments = append(one.Arguments, PromptArgument{a.Name, cutText(a.Description, mostAbout), a.Required})
			}
		}
		all = append(all, one)
	}
	return all, false, nil
}

// String returns one line about a resource.
func (r Resource) String() string { return line(r.URI, r.Name, r.Description) }

// String returns one line about a prompt, with its arguments.
func (p Prompt) String() string {
	about := []string{p.Description}
	for _, a := range p.Arguments {
		word := "argument " + a.Name
		if a.Required {
			word += " (required)"
		}
		if a.Description != "" {
			word += ": " + a.Description
		}
		about = append(about, word)
	}
	return line(p.Name, p.Title, strings.Join(about, "; "))
}

func line(id, name, about string) string {
	text := id
	if name != "" && name != id {
		text += " (" + name + ")"
	}
	if about = strings.Trim(about, "; "); about != "" {
		text += ": " + cutText(about, mostAbout)
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// listed returns the text of a list for the model.
func listed[T fmt.Stringer](all []T, more bool, none string) string {
	if len(all) == 0 {
		return none
	}
	lines := make([]string, 0, len(all)+1)
	for _, one := range all {
		lines = append(lines, "- "+one.String())
	}
	if more {
		lines = append(lines, fmt.Sprintf("There are more than %d entries. The other entries are not listed.", mostEntries))
	}
	return strings.Join(lines, "\n")
}
