package hook

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Match limits a subscription to some inputs of a phase. Every field that is set must
// match. The zero Match matches everything.
//
// A pattern is an exact name, "*", or a glob. In a glob, * matches any number of
// characters, ? matches one character, and [a-z] or [!a-z] matches one character of a
// class. A backslash escapes the next character.
type Match struct {
	// Tools are patterns for the label "tool". Defaults to all.
	Tools []string `json:"tools,omitempty"`
	// Agents are patterns for the label "agent". Defaults to all.
	Agents []string `json:"agents,omitempty"`
	// Labels are patterns for other labels of the phase's input, by label name.
	Labels map[string][]string `json:"labels,omitempty"`
	// When is a condition on the input. Defaults to none.
	When Condition `json:"-"`
}

// Condition is an expression over a phase's input. [When] makes a condition from a Go
// function. Package declare makes conditions from CEL expressions.
//
// Holds is called during dispatch, possibly from several goroutines. At a gate, an error or
// a panic of Holds counts as a match, so that a broken condition cannot open the gate. At
// other phases it is a failure of the handler.
type Condition interface {
	// String returns the condition's source, for plans and explanations.
	String() string
	// Check returns an error if the condition cannot work at the phase. zero is a zero
	// input of the phase.
	Check(phase AnyPhase, zero any) error
	// Holds reports whether the condition is true for the input.
	Holds(input any) (bool, error)
}

// When makes a condition from a Go function. The name is shown in plans and explanations.
func When[In any](name string, holds func(In) bool) Condition {
	return goCondition[In]{name, holds}
}

type goCondition[In any] struct {
	name  string
	holds func(In) bool
}

func (c goCondition[In]) String() string { return c.name }

func (c goCondition[In]) Check(_ AnyPhase, zero any) error {
	if c.holds == nil {
		return errors.New("the condition has no function")
	}
	if _, ok := zero.(In); !ok {
		var want In
		return fmt.Errorf("the condition takes a %T, but the phase's input is a %T", want, zero)
	}
	return nil
}

func (c goCondition[In]) Holds(input any) (bool, error) {
	in, ok := input.(In)
	if !ok {
		return false, fmt.Errorf("condition %s does not take %T", c.name, input)
	}
	return c.holds(in), nil
}

// picks reports whether the Match is set, so that some inputs may not match.
func (m Match) picks() bool {
	return m.Tools != nil || m.Agents != nil || m.Labels != nil || m.When != nil
}

// sets returns the label patterns, each with the name of its field: tools, agents, then the
// other labels in order of their names.
func (m Match) sets() []patternSet {
	var sets []patternSet
	add := func(label, field string, patterns []string) {
		if patterns != nil {
			sets = append(sets, patternSet{label: label, field: field, patterns: patterns})
		}
	}
	add("tool", "match.tools", m.Tools)
	add("agent", "match.agents", m.Agents)
	names := make([]string, 0, len(m.Labels))
	for name := range m.Labels {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		add(name, "match.labels."+name, m.Labels[name])
	}
	return sets
}

func (m Match) clone() Match {
	m.Tools, m.Agents = slices.Clone(m.Tools), slices.Clone(m.Agents)
	if m.Labels != nil {
		labels := make(map[string][]string, len(m.Labels))
		for name, patterns := range m.Labels {
			labels[name] = slices.Clone(patterns)
		}
		m.Labels = labels
	}
	return m
}

// String returns text such as "tool in [write edit] and when path is prod".
func (m Match) String() string {
	var terms []string
	for _, set := range m.sets() {
		terms = append(terms, set.String())
	}
	if m.When != nil {
		terms = append(terms, "when "+m.When.String())
	}
	return strings.Join(terms, " and ")
}

// patternSet holds the patterns for one label. A value matches if one of them matches.
type patternSet struct {
	label, field string
	patterns     []string
}

func (s patternSet) String() string {
	return fmt.Sprintf("%s in [%s]", s.label, strings.Join(s.patterns, " "))
}

// problem returns what is wrong with the patterns, or "".
func (s patternSet) problem() string {
	if len(s.patterns) == 0 {
		return "the list is empty; leave it out to match everything"
	}
	for _, p := range s.patterns {
		if p == "" {
			return "a pattern is empty"
		}
		if !validGlob(p) {
			return fmt.Sprintf("pattern %q: a class is not closed or its range is reversed, or the last character is a backslash", p)
		}
	}
	return ""
}

func (s patternSet) match(value string) bool {
	for _, p := range s.patterns {
		if p == value || globMatch(p, value) {
			return true
		}
	}
	return false
}

func validGlob(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
			if i >= len(pattern) {
				return false
			}
		case '[':
			end := classEnd(pattern[i:])
			if end < 0 || !validClass(pattern[i+1:i+end]) {
				return false
			}
			i += end
		}
	}
	return true
}

// classEnd returns the index of the ] that closes the class at the start of pattern, or -1.
// A ] directly after the [, [! or [^ is a member of the class.
func classEnd(pattern string) int {
	i := 1
	if i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^') {
		i++
	}
	for first := true; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\':
			i++
		case pattern[i] == ']' && !first:
			return i
		}
		first = false
	}
	return -1
}

// globMatch reports whether the pattern matches the value. It backtracks only to the last
// star, so its time is at most the product of the two lengths.
func globMatch(pattern, value string) bool {
	starPattern, starValue := -1, 0
	p, v := 0, 0
	for v < len(value) {
		if p < len(pattern) && pattern[p] == '*' {
			starPattern, starValue = p, v
			p++
			continue
		}
		if p < len(pattern) {
			if pn, vn, ok := matchOne(pattern[p:], value[v:]); ok {
				p, v = p+pn, v+vn
				continue
			}
		}
		if starPattern < 0 {
			return false
		}
		_, size := utf8.DecodeRuneInString(value[starValue:])
		starValue += size
		p, v = starPattern+1, starValue
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne matches one character. It returns how many bytes of pattern and value it used.
func matchOne(pattern, value string) (int, int, bool) {
	r, size := utf8.DecodeRuneInString(value)
	switch pattern[0] {
	case '?':
		return 1, size, true
	case '[':
		end := classEnd(pattern)
		if end < 0 {
			return 0, 0, false
		}
		return end + 1, size, classHas(pattern[1:end], r)
	case '\\':
		if len(pattern) < 2 {
			return 0, 0, false
		}
		want, wantSize := utf8.DecodeRuneInString(pattern[1:])
		return 1 + wantSize, size, want == r
	default:
		want, wantSize := utf8.DecodeRuneInString(pattern)
		return wantSize, size, want == r
	}
}

// validClass reports whether no range of the class has its ends reversed.
func validClass(class string) bool {
	valid := true
	eachRange(class, func(low, high rune) { valid = valid && low <= high })
	return valid
}

func classHas(class string, r rune) bool {
	negated := strings.HasPrefix(class, "!") || strings.HasPrefix(class, "^")
	found := false
	eachRange(class, func(low, high rune) { found = found || (low <= r && r <= high) })
	return found != negated
}

// eachRange yields the ranges of a class. A single character is a range too.
func eachRange(class string, yield func(low, high rune)) {
	if strings.HasPrefix(class, "!") || strings.HasPrefix(class, "^") {
		class = class[1:]
	}
	next := func() rune {
		class = strings.TrimPrefix(class, `\`)
		c, size := utf8.DecodeRuneInString(class)
		class = class[size:]
		return c
	}
	for class != "" {
		low := next()
		high := low
		if len(class) > 1 && class[0] == '-' {
			class = class[1:]
			high = next()
		}
		yield(low, high)
	}
}
