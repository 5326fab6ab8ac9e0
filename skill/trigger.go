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

// TriggerType says how a trigger reads its pattern.
type TriggerType string

// The types of triggers.
const (
	// Keyword is a text that is part of the task, whatever the case of both.
	Keyword TriggerType = "keyword"
	// Regex is a regular expression as package regexp reads it. Case does not count
	// unless it says so, with (?-i).
	Regex TriggerType = "regex"
)

// Trigger makes a skill active when it matches the task.
type Trigger struct {
	// Type defaults to Keyword.
	Type TriggerType
	// Pattern is the keyword or the expression.
	Pattern string

	compiled *condition // nil until a catalog or a file is read
}

// patternLength is the most bytes of a pattern.
const patternLength = 4096

// condition is a trigger that can be tried.
type condition struct {
	keyword bool
	pattern string
	// filter has sets of texts, without their case: one of each is in every text
	// that matches. None means that it has to be tried on everything.
	filter [][]string
	// broad says that it matches everything it was tried on.
	broad bool

	expression func() *regexp.Regexp // compiled when it is first tried
}

// compile reads the trigger.
func (t *Trigger) compile() (*condition, error) {
	if t.compiled != nil {
		return t.compiled, nil
	}
	switch {
	case strings.TrimSpace(t.Pattern) == "":
		return nil, errors.New("a trigger has no pattern, and would match every task: say what it is about")
	case len(t.Pattern) > patternLength:
		return nil, fmt.Errorf("the pattern of a trigger has %d bytes: at most %d are taken", len(t.Pattern), patternLength)
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

// regexError says what is wrong with an expression, without the flag that was put
// in front of it.
func regexError(err error) error {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		if at := strings.TrimPrefix(e.Expr, "(?i)"); at != "" {
			return fmt.Errorf("%s: %s", e.Code, at)
		}
		return errors.New(string(e.Code))
	}
	return err
}

// instead says what to write in the place of what RE2 does not have.
func instead(pattern string) string {
	for _, look := range []struct{ sign, name string }{{"(?=", "look-ahead"}, {"(?!", "negative look-ahead"}, {"(?<=", "look-behind"}, {"(?<!", "negative look-behind"}} {
		if strings.Contains(pattern, look.sign) {
			return fmt.Sprintf(" (RE2 has no %s: match what surrounds it too, mark the edge of a word with \\b, or write two triggers)", look.name)
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

// probes are texts that have little in common.
var probes = []string{"a", "Fix the bug in main.go, please.", "42", "?!", "日本語", "größe\nШ"}

// matchesAll reports whether an expression matches whatever it is tried on.
func matchesAll(re *regexp.Regexp) bool {
	return !slices.ContainsFunc(probes, func(probe string) bool { return !re.MatchString(probe) })
}

// possible reports whether a text, without its case, has what the trigger needs.
func (c *condition) possible(folded []byte) bool {
	for _, set := range c.filter {
		if !slices.ContainsFunc(set, func(text string) bool { return bytes.Contains(folded, []byte(text)) }) {
			return false
		}
	}
	return true
}

// finds returns what of a text the trigger matches. It is given the text without its case
// too.
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
