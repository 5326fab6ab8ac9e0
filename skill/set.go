package skill

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/scan"
)

// set is an immutable snapshot of the skills of a catalog. Data that depends on it is
// computed only once.
type set struct {
	skills   []*Skill // sorted by priority, then name
	byName   map[string]*owned
	byID     map[string]*owned
	problems []Problem
	matcher  func() *matcher
}

// newSet merges the sources. Later sources win over earlier ones, and added skills win
// over all sources.
func newSet(sources, added []*listed) *set {
	most := 0
	for _, l := range slices.Concat(sources, added) {
		most += len(l.entries)
	}
	s := &set{skills: make([]*Skill, 0, most), byName: make(map[string]*owned, most), byID: make(map[string]*owned, most)}
	all := make([]owned, 0, most)
	for _, l := range slices.Backward(slices.Concat(sources, added)) {
		s.problems = append(s.problems, l.problems...)
		for _, skill := range l.entries {
			all = append(all, owned{skill, l.source, cmp.Or(skill.Path, l.name)})
			o := &all[len(all)-1]
			if named, known := s.byName[skill.Name], s.byID[skill.ID]; named != nil || known != nil {
				s.problems = append(s.problems, o.shadowedBy(named, known))
				continue
			}
			s.byName[skill.Name], s.byID[skill.ID] = o, o
			s.skills = append(s.skills, skill)
			s.problems = append(s.problems, skill.Tolerated...)
			if !scan.Valid(skill.Name) {
				s.problems = append(s.problems, Problem{
					Kind: Tolerated, Path: o.from, Skill: skill.Name,
					Message: fmt.Sprintf("users cannot type the name %q as /name: use letters, digits, _ and -, a letter first, and : only between them", skill.Name),
				})
			}
		}
	}
	for _, skill := range s.skills {
		if other := s.byName[skill.ID]; other != nil && other.skill != skill {
			s.problems = append(s.problems, Problem{
				Kind: Tolerated, Path: s.byID[skill.ID].from, Skill: skill.Name,
				Message: fmt.Sprintf("the id %q is also the name of another skill, from %s: /%s means that other skill. Choose another id", skill.ID, other.from, skill.ID),
			})
		}
	}
	slices.SortStableFunc(s.skills, func(a, b *Skill) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(a.Name, b.Name))
	})
	s.matcher = sync.OnceValue(func() *matcher { return newMatcher(s.skills) })
	return s
}

// find returns the skill with the given name, or else the skill with that id, or nil.
func (s *set) find(key string) *owned {
	if o := s.byName[key]; o != nil {
		return o
	}
	return s.byID[key]
}

// shadowedBy returns the problem for a skill that another skill hides.
func (o *owned) shadowedBy(byName, byID *owned) Problem {
	front, what := byName, fmt.Sprintf("name %q", o.skill.Name)
	if front == nil {
		front, what = byID, fmt.Sprintf("id %q", o.skill.ID)
	}
	return Problem{
		Kind: Shadowed, Path: o.from, Skill: o.skill.Name,
		Message: fmt.Sprintf("the skill is not used, because the skill from %s has the same %s", front.from, what),
	}
}

// equal reports whether two sets have the same skills and the same problems.
func (s *set) equal(o *set) bool {
	return slices.Equal(s.skills, o.skills) && slices.EqualFunc(s.problems, o.problems, func(a, b Problem) bool {
		return a.Kind == b.Kind && a.Path == b.Path && a.Line == b.Line && a.Message == b.Message
	})
}

// mostKnown is how many names the error of missing lists.
const mostKnown = 50

// missing returns the error for an unknown name. The error lists the skills that the
// caller may see: those for which told returns true.
func (s *set) missing(name string, told func(*Skill) bool) error {
	var known []string
	for _, skill := range s.skills {
		if told(skill) {
			known = append(known, skill.Name)
		}
	}
	if len(known) == 0 {
		return fmt.Errorf("there is no skill %q: %w", name, ErrNotFound)
	}
	hint, more := near.Hint(name, known), ""
	if n := len(known) - mostKnown; n > 0 {
		known, more = known[:mostKnown], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("there is no skill %q%s: %w. Available skills: %s%s", name, hint, ErrNotFound, strings.Join(known, ", "), more)
}
