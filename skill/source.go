package skill

import (
	"context"
	"fmt"
	"slices"
)

// Source provides skills: from a directory ([Dir]), an fs.FS ([FS]), Go code ([Values]),
// a database or a service. If a source implements fmt.Stringer, problems show that name.
type Source interface {
	// List returns the current skills. If several have the same name, the first wins.
	// Bodies and sections may be empty if Read returns them. List is called from time to
	// time, by one goroutine at a time. The same *Skill as before means that the skill
	// has not changed. Do not modify a skill that List has returned.
	//
	// The error describes what could not be listed, ideally as joined *Problem values.
	// The returned skills are used even if there is an error. If the error is set and the
	// list is nil, the previous list stays in use.
	List(ctx context.Context) ([]*Skill, error)
	// Read returns a section of the skill with the given id. The section "" is the body.
	// The error is ErrNotFound if there is no such skill or section.
	Read(ctx context.Context, id, section string) (Reading, error)
}

// Reading is the text of a skill, or of one of its sections.
type Reading struct {
	// Name is the name of the skill. Section is the name of the section, or "" for the
	// body.
	Name    string `json:"name"`
	Section string `json:"section,omitempty"`
	// Path is the skill's directory or file. It is empty if there is none.
	Path string `json:"path,omitempty"`
	// Text is the text of the body or the section.
	Text string `json:"content"`
	// Sections are the names of the skill's sections. Resources are its other files,
	// relative to Path.
	Sections  []string `json:"sections,omitempty"`
	Resources []string `json:"resources,omitempty"`
}

// Values returns a source of skills that are Go values.
func Values(skills ...Skill) Source { //nolint:ireturn // it is used through the interface
	v := make(values, len(skills))
	for i := range skills {
		s := skills[i]
		v[i] = &s
	}
	return v
}

type values []*Skill

func (values) String() string { return "values in Go" }

func (v values) List(context.Context) ([]*Skill, error) { return v, nil }

func (v values) Read(_ context.Context, id, section string) (Reading, error) {
	for _, s := range v {
		if s.ID == id || s.ID == "" && s.Name == id {
			return s.read(section)
		}
	}
	return Reading{}, fmt.Errorf("skill %q: %w", id, ErrNotFound)
}

// read returns the body or a section of a skill that has its text in itself.
func (s *Skill) read(section string) (Reading, error) {
	r := Reading{Name: s.Name, Path: s.Path, Section: section, Text: s.Body}
	for _, sec := range s.Sections {
		r.Sections = append(r.Sections, sec.Name)
	}
	if section == "" {
		return r, nil
	}
	i := slices.IndexFunc(s.Sections, func(sec Section) bool { return sec.Name == section })
	if i < 0 {
		return r, fmt.Errorf("section %q: %w", section, ErrNotFound)
	}
	r.Text = s.Sections[i].Text
	return r, nil
}

func sourceName(s Source, number int) string {
	if named, ok := s.(fmt.Stringer); ok {
		return named.String()
	}
	return fmt.Sprintf("source %d", number)
}
