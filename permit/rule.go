package permit

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/near"
)

// RuleDecision is the decision of a rule.
type RuleDecision string

// The decisions of rules, from the mildest to the most severe.
const (
	RuleAllow RuleDecision = "allow"
	RuleAsk   RuleDecision = "ask"
	RuleDeny  RuleDecision = "deny"
)

// Rule allows, asks about or denies calls. [ParseRule] makes a rule from text. The
// package comment has the grammar.
type Rule struct {
	Decision RuleDecision
	// Tool is the name of a tool, or a pattern of path.Match.
	Tool string
	// Pattern selects calls of the tool. If it is empty, the rule applies to all calls.
	Pattern string
	// Reason is the message for the person who is asked, or for the model whose call is
	// denied. Defaults to a message with the subject and the decision.
	Reason string
	// Origin says who wrote the rule. An allow rule of a project or a space also needs
	// Granted. Defaults to hook.OriginHost.
	Origin  hook.OriginKind
	Granted bool
	// Where is the file and line of the rule. Messages show it.
	Where string
}

// String returns the rule as text.
func (r *Rule) String() string {
	text := string(r.Decision) + " " + r.Tool
	if r.Pattern != "" {
		text += "(" + r.Pattern + ")"
	}
	return text
}

// ParseRule parses a rule: "deny shell(git push *)".
func ParseRule(text string) (Rule, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	decision := RuleDecision(word)
	words := []string{string(RuleAllow), string(RuleAsk), string(RuleDeny)}
	if !slices.Contains(words, word) {
		return Rule{}, fmt.Errorf("permit: rule %q: the first word is %q: write allow, ask or deny, then a tool%s", text, word, near.Hint(word, words))
	}
	tool, pattern, err := parsePattern(rest)
	if err != nil {
		return Rule{}, fmt.Errorf("permit: rule %q: %w", text, err)
	}
	return Rule{Decision: decision, Tool: tool, Pattern: pattern}, nil
}

// parsePattern parses TOOL or TOOL(PATTERN).
func parsePattern(text string) (tool, pattern string, err error) {
	text = strings.TrimSpace(text)
	tool, pattern, paren := strings.Cut(text, "(")
	tool = strings.TrimSpace(tool)
	switch {
	case tool == "":
		return "", "", errors.New("the rule names no tool: write shell(git push *), or * for all tools")
	case strings.ContainsAny(tool, " \t)"):
		return "", "", fmt.Errorf("%q is not the name of a tool: put the command or the pattern in parentheses, such as shell(%s)", tool, strings.TrimSpace(strings.TrimPrefix(tool, "shell")))
	case !paren:
		_, err := path.Match(tool, "")
		if err != nil {
			return "", "", fmt.Errorf("tool %q: %w", tool, err)
		}
		return tool, "", nil
	case !strings.HasSuffix(pattern, ")"):
		return "", "", errors.New("the parenthesis is not closed")
	}
	if _, err := path.Match(tool, ""); err != nil {
		return "", "", fmt.Errorf("tool %q: %w", tool, err)
	}
	pattern = strings.TrimSpace(strings.TrimSuffix(pattern, ")"))
	if pattern == "" {
		return "", "", fmt.Errorf("the parentheses are empty: to match all calls, write only %s", tool)
	}
	return tool, pattern, nil
}

// about is the kind of thing that a pattern matches.
type about int

const (
	aboutCall    about = iota // every call of the tool
	aboutCommand              // commands that a shell runs
	aboutPath
	aboutURL
	aboutFields
)

// rule is a compiled Rule.
type rule struct {
	Rule
	about  about
	words  []string // patterns of the words of a command
	path   string   // glob
	url    urlPattern
	fields map[string]string // globs, by dotted name of the field
	order  int               // position among the rules: earlier rules are reported first
}

// compile checks a rule and prepares it for matching. If the pattern has no prefix such
// as path:, the profile of the tool determines what the pattern matches.
func compile(r Rule, tools *profiles) (*rule, error) {
	c := &rule{Rule: r}
	if r.Pattern == "" {
		return c, nil
	}
	kind, rest, prefixed := strings.Cut(r.Pattern, ":")
	rest = strings.TrimSpace(rest)
	switch {
	case prefixed && kind == "command":
		c.about = aboutCommand
	case prefixed && kind == "path":
		c.about = aboutPath
	case prefixed && kind == "url":
		c.about = aboutURL
	default:
		rest = r.Pattern
		c.about = aboutOf(tools.of(r.Tool), r.Pattern)
	}
	var err error
	switch c.about {
	case aboutCommand:
		c.words = strings.Fields(rest)
		err = checkWords(c.words)
	case aboutPath:
		c.path = strings.TrimPrefix(rest, "./")
		if !doublestar.ValidatePattern(c.path) || c.path == "" {
			err = fmt.Errorf("%q is not a valid path pattern", rest)
		}
	case aboutURL:
		c.url, err = parseURLPattern(rest)
		if err == nil && c.strict() && tools.of(r.Tool) == nothingKnown {
			err = fmt.Errorf("the tool %s has no description, so a rule about an address cannot allow it: describe the tool under permit.tools (Options.Tools), such as {%s: {zone: 3, urls: [url]}}", r.Tool, r.Tool)
		}
	case aboutFields:
		c.fields, err = parseFields(rest)
	default:
		err = fmt.Errorf("cannot determine whether %q is a path, a URL, a command or a field: write %s(path:…), (url:…), (command:…) or (FIELD=…)", r.Pattern, r.Tool)
	}
	return c, err
}

// checkWords returns an error if no command can have these words. A deny rule that never
// matches would give false security.
func checkWords(words []string) error {
	if len(words) == 0 {
		return errors.New("the rule has no command")
	}
	for i, w := range words {
		_, bad := path.Match(w, "")
		cut, colon := strings.CutSuffix(w, ":*")
		switch {
		case bad != nil:
			return fmt.Errorf("%q: %w", w, bad)
		case colon:
			return fmt.Errorf("%q is not a valid pattern for the words of a command: write %s *", w, strings.Join(append(slices.Clone(words[:i]), cut), " "))
		case strings.Contains(w, "&&"), strings.ContainsAny(w, "|;"), w == "&":
			return fmt.Errorf("%q: a rule matches a single command: write one rule for each command of the line; "+
				"to match the character itself, write ?", w)
		case strings.HasPrefix(strings.TrimLeft(w, "0123456789"), ">"), strings.HasPrefix(w, "<"):
			return fmt.Errorf("%q: a rule about a command cannot match a redirection: write a rule about the path, such as (path:docs/**)", w)
		case w[0] == '"' || w[0] == '\'':
			return fmt.Errorf("%q: rules compare words without quotes: remove the quotes, and write ? for a blank inside a word", w)
		}
	}
	return nil
}

// aboutOf returns what a pattern without a prefix such as path: matches.
func aboutOf(p *Profile, pattern string) about {
	name, _, equals := strings.Cut(pattern, "=")
	switch {
	case strings.HasPrefix(pattern, "https://"), strings.HasPrefix(pattern, "http://"): // only a URL begins like this
		return aboutURL
	case p.Command != "":
		return aboutCommand
	case len(p.Reads)+len(p.Writes) > 0:
		return aboutPath
	case len(p.URLs) > 0:
		return aboutURL
	case equals && !strings.ContainsAny(name, " /*"):
		return aboutFields
	default:
		return aboutCall
	}
}

// parseFields parses FIELD=GLOB, FIELD=GLOB.
func parseFields(text string) (map[string]string, error) {
	fields := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		name, glob, ok := strings.Cut(part, "=")
		name, glob = strings.TrimSpace(name), strings.TrimSpace(glob)
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not a field pattern: write FIELD=PATTERN", strings.TrimSpace(part))
		}
		if _, err := path.Match(glob, ""); err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		fields[name] = glob
	}
	return fields, nil
}

func (r *rule) decision() belay.ToolDecision {
	switch r.Decision {
	case RuleAllow:
		return belay.ToolPass
	case RuleAsk:
		return belay.ToolAsk
	default:
		return belay.ToolDeny
	}
}

// strict reports whether the rule matches only calls that it certainly means, as an allow
// rule does. An ask or deny rule also matches calls that it may mean.
func (r *rule) strict() bool { return r.Decision == RuleAllow }
