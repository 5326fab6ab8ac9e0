package skill

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/near"
)

// TriggerType is the type of a trigger's pattern.
type TriggerType string

// The types of triggers.
const (
	// Keyword matches if the task contains the text, ignoring case.
	Keyword TriggerType = "keyword"
	// Regex is a regular expression as in package regexp. It ignores case unless it
	// contains (?-i).
	Regex TriggerType = "regex"
)

// Trigger makes a skill active when the trigger matches the task.
type Trigger struct {
	// Type defaults to Keyword.
	Type TriggerType
	// Pattern is the keyword or the regular expression.
	Pattern string

	compiled *condition // nil until a catalog or a file reader compiles it
}

// patternLength is the maximum length of a pattern in bytes.
const patternLength = 4096

// condition is a compiled trigger.
type condition struct {
	keyword bool
	pattern string
	// filter has sets of case-folded texts. Every match contains at least one text of
	// each set. If filter is empty, the trigger must be tried on every task.
	filter [][]string
	// broad means that the trigger matches all probes, so it probably matches every task.
	broad bool

	expression func() *regexp.Regexp // compiled when first used
}

// compile checks and compiles the trigger.
func (t *Trigger) compile() (*condition, error) {
	if t.compiled != nil {
		return t.compiled, nil
	}
	switch {
	case strings.TrimSpace(t.Pattern) == "":
		return nil, errors.New("a trigger has no pattern, so it would match every task: add a pattern")
	case len(t.Pattern) > patternLength:
		return nil, fmt.Errorf("the pattern of a trigger has %d bytes: at most %d are allowed", len(t.Pattern), patternLength)
	case !utf8.ValidString(t.Pattern):
		return nil, errors.New("the pattern of a trigger is not UTF-8")
	}
	switch t.Type {
	case Keyword, "":
		return &condition{keyword: true, pattern: t.Pattern, filter: [][]string{{fold(t.Pattern)}}}, nil
	case Regex:
		return compileRegex(t.Pattern)
	default:
		known := []string{string(Keyword), string(Regex)}
		return nil, fmt.Errorf("there is no trigger of type %q: use keyword or regex%s", t.Type, near.Hint(string(t.Type), known))
	}
}

func compileRegex(pattern string) (*condition, error) {
	tree, err := syntax.Parse("(?i)"+pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the expression %q cannot be read: %w%s", pattern, regexError(err), instead(pattern))
	}
	c := &condition{pattern: pattern, filter: literals(tree)}
	c.expression = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?i)" + pattern) })
	c.broad = len(c.filter) == 0 && matchesAll(c.expression())
	return c, nil
}

// regexError returns the error of a regular expression, without the flag (?i) that Belay
// adds.
func regexError(err error) error {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		if at := strings.TrimPrefix(e.Expr, "(?i)"); at != "" {
			return fmt.Errorf("%s: %s", e.Code, at)
		}
		return errors.New(string(e.Code))
	}
	return err
}

// instead returns advice about syntax that RE2 does not support.
func instead(pattern string) string {
	for _, look := range []struct{ sign, name string }{{"(?=", "look-ahead"}, {"(?!", "negative look-ahead"}, {"(?<=", "look-behind"}, {"(?<!", "negative look-behind"}} {
		if strings.Contains(pattern, look.sign) {
			return fmt.Sprintf(" (RE2 does not support %s: match the surrounding text too, use \\b for the edge of a word, or write two triggers)", look.name)
		}
	}
	for i := range len(pattern) - 1 {
		if pattern[i] == '\\' && pattern[i+1] >= '1' && pattern[i+1] <= '9' {
			return " (RE2 has no back-references: write the text out)"
		}
	}
	if strings.Contains(pattern, "(?>") || strings.ContainsAny(pattern, "+") && (strings.Contains(pattern, "++") || strings.Contains(pattern, "*+")) {
		return " (RE2 has no possessive or atomic groups and needs none: it takes the same time for every text)"
	}
	return ""
}

// probes are very different texts. A trigger that matches all of them is too broad.
var probes = []string{"a", "Fix the bug in main.go, please.", "42", "?!", "日本語", "größe\nШ"}

// matchesAll reports whether an expression matches all probes.
func matchesAll(re *regexp.Regexp) bool {
	return !slices.ContainsFunc(probes, func(probe string) bool { return !re.MatchString(probe) })
}

// possible reports whether a case-folded text contains a text of each set of the filter.
// Otherwise the trigger cannot match.
func (c *condition) possible(folded []byte) bool {
	for _, set := range c.filter {
		if !slices.ContainsFunc(set, func(text string) bool { return bytes.Contains(folded, []byte(text)) }) {
			return false
		}
	}
	return true
}

// finds returns the part of text that the trigger matches. folded is the case-folded
// text.
func (c *condition) finds(text string, folded []byte) (found string, ok bool) {
	if !c.keyword {
		at := c.expression().FindStringIndex(text)
		if at == nil {
			return "", false
		}
		return text[at[0]:at[1]], true
	}
	start, end := indexFolded(text, folded, c.filter[0][0])
	if start < 0 {
		return "", false
	}
	return text[start:end], true
}
