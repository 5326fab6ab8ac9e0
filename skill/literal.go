package skill

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// The limits of the analysis of a regular expression. Larger sets would not help the
// filter.
const (
	mostExact    = 16  // texts that an expression may equal
	mostRequired = 256 // texts in one set of required texts
	mostClass    = 32  // runes of a character class
	mostLength   = 64  // bytes of a concatenated text
	mostSets     = 4   // sets of required texts
)

// A need describes the texts that an expression matches. All texts are case-folded.
type need struct {
	// exact are the only texts that the expression matches. Nil means unknown.
	exact []string
	// sets are used if exact is nil. Every match contains at least one text of each set.
	sets [][]string
}

// literals returns sets of case-folded texts. Every match of the expression contains at
// least one text of each set. If literals returns no sets, the expression must be tried
// on every task.
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

// required returns the sets for literals. Every match contains at least one text of each
// set.
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
	default: // for example any character: then nothing is known
	}
	return need{}
}

// maybe returns the need of an expression that may be missing, as in a? or a{0,1}.
func maybe(n need) need {
	if n.exact == nil || len(n.exact) >= mostExact {
		return need{}
	}
	return need{exact: distinct(append(slices.Clone(n.exact), ""))}
}

// classTexts returns the runes of a character class as texts, or nil if there are too
// many.
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

// sequence returns the need of a sequence of expressions. It joins neighbours that match
// only a few exact texts.
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

// join returns all concatenations of a text of a and a text of b. It returns nil if there
// are too many, or if one of them is too long.
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

// alternatives returns the need of a choice such as a|b: all exact texts if they are
// known, or else the union of the best set of each alternative.
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

// better reports whether set a selects fewer tasks than set b: its shortest text is
// longer, or equally long and the set has fewer texts.
func better(a, b []string) bool {
	shortA, shortB := shortest(a), shortest(b)
	return shortA > shortB || shortA == shortB && len(a) < len(b)
}

func shortest(texts []string) int {
	n := len(texts[0])
	for _, t := range texts {
		n = min(n, len(t))
	}
	return min(n, 8) // more than 8 bytes select no better
}

// shortened returns a set without texts that contain another text of the set.
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
