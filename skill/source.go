package skill

import (
	"context"
	"fmt"
	"slices"
)

// Source is where skills come from: a directory ([Dir]), an fs.FS ([FS]), values in
// Go ([Values]), a database, a service. If a source is a fmt.Stringer, problems
// show that name.
type Source interface {
	// List returns the current skills. The first of several with the same name
	// wins. Bodies and sections may be left to Read. List is called from time to
	// time, by one goroutine at a time. Returning the same *Skill means that it has
	// not changed; do not modify returned skills.
	//
	// An error describes what could not be listed, ideally as joined *Problem
	// values; the returned skills are used anyway. If the list is nil, the last list
	// is kept.
	List(ctx context.Context) ([]*Skill, error)
	// Read returns the text of the skill with an id, or of one of its sections; ""
	// is its body. It returns ErrNotFound if there is none.
	Read(ctx context.Context, id, section string) (Reading, error)
}

// Reading is the text of a skill, or of one of its sections.
type Reading struct {
	// Name is the skill's, and Section the section's; empty for the body.
	Name    string `json:"name"`
	Section string `json:"section,omitempty"`
	// Path is the directory that its files are in, or its file. It is empty if there
	// is no file.
	Path string `json:"path,omitempty"`
	// Text is the text.
	Text string `json:"content"`
	// Sections are the names of the skill's sections, and Resources the files that
	// come with it, relative to Path.
	Sections  []string `json:"sections,omitempty"`
	Resources []string `json:"resources,omitempty"`
}

// Values is a source of skills in Go.
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

// read reads a skill that contains its text.
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
