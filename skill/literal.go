package skill

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// The bounds of what is worked out about an expression. What is larger is of no
// use to a filter.
const (
	mostExact    = 16  // texts that an expression may be
	mostRequired = 256 // texts of which it must hold one
	mostClass    = 32  // runes of a class
	mostLength   = 64  // bytes of a text that is put together
	mostSets     = 4   // sets of which it must hold one each
)

// A need is what is known about the texts that an expression matches, without
// their case.
type need struct {
	// exact says that it matches one of these and nothing else; nil if that is not
	// known.
	exact []string
	// sets says that what it matches holds one of the texts of each; for what is not
	// exact.
	sets [][]string
}

// literals returns sets of texts: one of each set is in every text that the
// expression matches, without their case. It returns none if nothing can be told:
// then the expression has to be tried on everything.
func literals(re *syntax.Regexp) [][]string {
	sets := needOf(re).required()
	slices.SortStableFunc(sets, func(a, b []string) int {
		if better(a, b) {
			return -1
		}
		return 1
	})
	return sets[:min(len(sets), mostSets)]
}

// required returns the sets of texts of which a match holds one each.
func (n need) required() [][]string {
	if n.exact == nil {
		return n.sets
	}
	if len(n.exact) == 0 || slices.Contains(n.exact, "") {
		return nil
	}
	return [][]string{shortened(n.exact)}
}

func needOf(re *syntax.Regexp) need {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return need{exact: []string{""}}
	case syntax.OpLiteral:
		return need{exact: []string{fold(string(re.Rune))}}
	case syntax.OpCharClass:
		return need{exact: classTexts(re.Rune)}
	case syntax.OpCapture:
		return needOf(re.Sub[0])
	case syntax.OpPlus:
		return need{sets: needOf(re.Sub[0]).required()}
	case syntax.OpQuest:
		return maybe(needOf(re.Sub[0]))
	case syntax.OpRepeat:
		switch {
		case re.Min > 0:
			return need{sets: needOf(re.Sub[0]).required()}
		case re.Max == 1:
			return maybe(needOf(re.Sub[0]))
		}
	case syntax.OpConcat:
		return sequence(re.Sub)
	case syntax.OpAlternate:
		return alternatives(re.Sub)
	default: // any character, any number of times, never: nothing is known
	}
	return need{}
}

// maybe is what is known of something that may be left out.
func maybe(n need) need {
	if n.exact == nil || len(n.exact) >= mostExact {
		return need{}
	}
	return need{exact: distinct(append(slices.Clone(n.exact), ""))}
}

// classTexts returns the runes of a small class as texts.
func classTexts(ranges []rune) []string {
	var texts []string
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] >= mostClass || len(texts) > mostClass {
			return nil
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			texts = append(texts, fold(string(r)))
		}
	}
	if texts = distinct(texts); len(texts) > mostExact {
		return nil
	}
	return texts
}

// sequence is what is known of expressions one behind the other: as long as each
// is one of a few texts they are put together.
func sequence(subs []*syntax.Regexp) need {
	var sets [][]string
	run, whole := []string{""}, true
	for _, sub := range subs {
		n := needOf(sub)
		if joined := join(run, n.exact); joined != nil {
			run = joined
			continue
		}
		sets = append(sets, need{exact: run}.required()...)
		run, whole = []string{""}, false
		if n.exact != nil {
			run = n.exact
		} else {
			sets = append(sets, n.sets...)
		}
	}
	if whole {
		return need{exact: run}
	}
	return need{sets: append(sets, need{exact: run}.required()...)}
}

// join puts each of some texts in front of each of others, or returns nil if that
// becomes too much.
func join(a, b []string) []string {
	if len(b) == 0 || len(a)*len(b) > mostExact {
		return nil
	}
	joined := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			if x != "" && y != "" && len(x)+len(y) > mostLength {
				return nil
			}
			joined = append(joined, x+y)
		}
	}
	return distinct(joined)
}

// alternatives is what is known of a choice: one of the exact texts of all, or else
// of the best that each needs.
func alternatives(subs []*syntax.Regexp) need {
	var exact, required []string
	isExact, isKnown := true, true
	for _, sub := range subs {
		n := needOf(sub)
		isExact = isExact && n.exact != nil && len(exact)+len(n.exact) <= mostExact
		if isExact {
			exact = append(exact, n.exact...)
		}
		var best []string
		for _, set := range n.required() {
			if best == nil || better(set, best) {
				best = set
			}
		}
		isKnown = isKnown && best != nil && len(required)+len(best) <= mostRequired
		required = append(required, best...)
	}
	switch {
	case isExact:
		return need{exact: distinct(exact)}
	case isKnown:
		return need{sets: [][]string{shortened(distinct(required))}}
	default:
		return need{}
	}
}

// better reports whether a set says more than another: its shortest text is longer,
// or its texts are fewer.
func better(a, b []string) bool {
	shortA, shortB := shortest(a), shortest(b)
	return shortA > shortB || shortA == shortB && len(a) < len(b)
}

func shortest(texts []string) int {
	n := len(texts[0])
	for _, t := range texts {
		n = min(n, len(t))
	}
	return min(n, 8) // longer is not better
}

// shortened is a set without the texts that hold another of it: who has those has
// the other too.
func shortened(texts []string) []string {
	var kept []string
	for i, t := range texts {
		if !slices.ContainsFunc(texts, func(other string) bool { return other != texts[i] && strings.Contains(t, other) }) {
			kept = append(kept, t)
		}
	}
	return kept
}

func distinct(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}
