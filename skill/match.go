package skill

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// Match is a skill that a task makes active, with the reason.
type Match struct {
	Skill *Skill
	// Trigger is the first trigger of the skill that matches. It is zero if the task
	// names the skill as skill:ID.
	Trigger Trigger
	// Found is the part of the task that matches the trigger, or skill:ID.
	Found string
}

// matcher finds the skills that a task makes active. Apart from spare, it never changes.
type matcher struct {
	skills []*Skill // sorted by priority, then id
	byID   map[string]int32
	index  *index
	users  [][]place               // for each text of the index, the triggers that need it
	always []place                 // triggers that no text selects: they are tried on every task
	spare  atomic.Pointer[scratch] // memory of the last pass, for the next one
}

// place identifies a trigger by the index of its skill and its index in the skill.
type place struct {
	skill, trigger int32
}

// scratch is the memory that one call of match needs.
type scratch struct {
	folded []byte
	texts  []int32
	places []place
}

// newMatcher makes a matcher. The triggers of the skills must be compiled.
func newMatcher(skills []*Skill) *matcher {
	m := &matcher{skills: slices.Clone(skills), byID: make(map[string]int32)}
	slices.SortStableFunc(m.skills, func(a, b *Skill) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(a.ID, b.ID)) })
	shared := make(map[string]int) // for each text, how many sets contain it
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

// rarest returns the set whose texts the fewest other triggers share. A common word would
// select many triggers that do not match. rarest prefers the first set to a set with a text
// of one or two bytes.
func rarest(sets [][]string, shared map[string]int) []string {
	var best []string
	fewest := 0
	for _, set := range sets { // the sets are sorted, the best first, see literals
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

// match returns the skills that a task makes active for an agent, sorted by priority and
// then by id. If there is none, match allocates no memory.
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
	last := int32(-1) // the skill that matched last
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

// idPrefix is the text before an id in a task.
const idPrefix = "skill:"

// named adds the skills that a text names as skill:ID. An id ends before the first
// character that cannot be in an id. Punctuation at the end is not part of the id.
func (m *matcher) named(s *scratch, text string) {
	for at := 0; ; {
		next := strings.Index(text[at:], idPrefix)
		if next < 0 {
			return
		}
		start := at + next
		at = start + len(idPrefix)
		if before, _ := utf8.DecodeLastRuneInString(text[:start]); start > 0 && idRune(before) {
			continue // "skill:" is the end of a longer word
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

// find looks up an id. It does not hash a text that is too long to be an id, because a
// message may have a million characters of punctuation here.
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
