package skill

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// Match is a skill that a task makes active, and why.
type Match struct {
	Skill *Skill
	// Trigger is the first of its triggers that matches. It is zero if the text
	// names the skill.
	Trigger Trigger
	// Found is the matching part of the task, or skill:ID.
	Found string
}

// matcher finds the skills that a task makes active. It does not change.
type matcher struct {
	skills []*Skill // by priority, then id
	byID   map[string]int32
	index  *index
	users  [][]place               // of the texts of the index
	always []place                 // triggers that must be tried on every task
	spare  atomic.Pointer[scratch] // reused by the next pass
}

// place is a trigger of a skill.
type place struct {
	skill, trigger int32
}

// scratch is the memory of a pass.
type scratch struct {
	folded []byte
	texts  []int32
	places []place
}

// newMatcher makes a matcher of skills whose triggers are compiled.
func newMatcher(skills []*Skill) *matcher {
	m := &matcher{skills: slices.Clone(skills), byID: make(map[string]int32)}
	slices.SortStableFunc(m.skills, func(a, b *Skill) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(a.ID, b.ID)) })
	shared := make(map[string]int) // how many sets have a text
	for i, s := range m.skills {
		m.byID[s.ID] = int32(i)
		for j := range s.Triggers {
			for _, set := range s.Triggers[j].compiled.filter {
				for _, text := range set {
					shared[text]++
				}
			}
		}
	}
	var texts []string
	numbers := make(map[string]int)
	for i, s := range m.skills {
		for j := range s.Triggers {
			at := place{int32(i), int32(j)}
			filter := s.Triggers[j].compiled.filter
			if len(filter) == 0 {
				m.always = append(m.always, at)
			}
			for _, text := range rarest(filter, shared) {
				n, ok := numbers[text]
				if !ok {
					n = len(texts)
					numbers[text] = n
					texts, m.users = append(texts, text), append(m.users, nil)
				}
				m.users[n] = append(m.users[n], at)
			}
		}
	}
	m.index = newIndex(texts)
	return m
}

// rarest returns the set that selects a trigger and the fewest others: a word of
// many triggers would select all of them.
func rarest(sets [][]string, shared map[string]int) []string {
	var best []string
	fewest := 0
	for _, set := range sets { // the most selective set comes first
		n := 0
		for _, text := range set {
			n += shared[text]
		}
		if best == nil || n < fewest && shortest(set) > 2 {
			best, fewest = set, n
		}
	}
	return best
}

// match returns the skills that a task makes active for an agent, by priority and
// then id. If there is none it allocates nothing.
func (m *matcher) match(task, agent string) []Match {
	s := m.spare.Swap(nil)
	if s == nil {
		s = new(scratch)
	}
	defer m.spare.Store(s)
	s.folded = appendFolded(s.folded[:0], task)
	s.texts = m.index.find(s.texts[:0], s.folded)
	s.places = append(s.places[:0], m.always...)
	m.named(s, task)
	if len(s.texts) == 0 && len(s.places) == 0 {
		return nil
	}
	slices.Sort(s.texts)
	for _, text := range slices.Compact(s.texts) {
		s.places = append(s.places, m.users[text]...)
	}
	slices.SortFunc(s.places, func(a, b place) int { return cmp.Or(cmp.Compare(a.skill, b.skill), cmp.Compare(a.trigger, b.trigger)) })
	var matches []Match
	last := int32(-1) // the last skill that matched
	for _, at := range slices.Compact(s.places) {
		skill := m.skills[at.skill]
		if at.skill == last || !skill.isFor(agent) {
			continue
		}
		if at.trigger < 0 {
			matches = append(matches, Match{Skill: skill, Found: idPrefix + skill.ID})
			last = at.skill
			continue
		}
		trigger := skill.Triggers[at.trigger]
		if !trigger.compiled.possible(s.folded) {
			continue
		}
		if found, ok := trigger.compiled.finds(task, s.folded); ok {
			matches = append(matches, Match{Skill: skill, Trigger: trigger, Found: found})
			last = at.skill
		}
	}
	return matches
}

// idPrefix precedes an id in a text.
const idPrefix = "skill:"

// named adds the skills whose ids a text names, as skill:ID. An id ends before the
// first character that ids cannot have; punctuation at its end is not part of it.
func (m *matcher) named(s *scratch, text string) {
	for at := 0; ; {
		next := strings.Index(text[at:], idPrefix)
		if next < 0 {
			return
		}
		start := at + next
		at = start + len(idPrefix)
		if before, _ := utf8.DecodeLastRuneInString(text[:start]); start > 0 && idRune(before) {
			continue // it is part of a longer word
		}
		id := text[at:]
		if end := strings.IndexFunc(id, func(r rune) bool { return !idRune(r) }); end >= 0 {
			id = id[:end]
		}
		for id != "" {
			if i, ok := m.find(id); ok {
				s.places = append(s.places, place{i, -1})
				break
			}
			if !strings.ContainsRune(".:/-_", rune(id[len(id)-1])) {
				break
			}
			id = id[:len(id)-1]
		}
	}
}

// find looks up an id. A text longer than any id is not hashed: a message may have a
// million characters of punctuation here.
func (m *matcher) find(id string) (int32, bool) {
	if len(id) > nameLength {
		return 0, false
	}
	i, ok := m.byID[id]
	return i, ok
}

// idRune reports whether a character can be part of an id in a text.
func idRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._:/-", r)
}
