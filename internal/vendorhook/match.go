package vendorhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
)

// matcher says for which names a group of hooks runs.
type matcher struct {
	text    string
	names   []string       // exact names, or nil
	pattern *regexp.Regexp // or nil
}

// matcher reads the matcher of a group, and warns if it cannot match anything.
func (r *reader) matcher(event dialect.Event, text string, line int) *matcher {
	m := &matcher{text: text}
	if event.Kind == dialect.UserPromptSubmit || event.Kind == dialect.Stop {
		if text != "" && text != "*" {
			r.notef(line, false, "%s has no matcher: its hooks always run", event.Name)
		}
		return &matcher{}
	}
	if text == "" || text == "*" {
		return m
	}
	if !r.AlwaysRegexp && !strings.ContainsFunc(text, func(c rune) bool { return !isNameRune(c) && c != '|' && c != ',' && c != ' ' }) {
		for name := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == '|' || c == ',' }) {
			m.names = append(m.names, strings.TrimSpace(name))
		}
	} else {
		var err error
		if m.pattern, err = regexp.Compile(text); err != nil {
			r.notef(line, true, "matcher %q: Belay cannot read this regular expression, so the hooks run for everything", text)
			return m
		}
	}
	if isTool(event.Kind) {
		r.checkMatcher(m, line)
	}
	return m
}

// checkMatcher warns about a matcher that no tool can have. If only some of its names match
// nothing, and the vendor has these names, it is no mistake.
func (r *reader) checkMatcher(m *matcher, line int) {
	all := append(r.Vendor.AllNames(), "mcp__server__tool", "mcp_server_tool")
	if m.pattern != nil {
		if !slices.ContainsFunc(all, m.pattern.MatchString) && !strings.Contains(m.text, "mcp_") {
			r.notef(line, true, "matcher %q matches no tool%s: its hooks never run", m.text, r.instead(m.text))
		}
		return
	}
	var without []string
	for _, name := range m.names {
		switch {
		case slices.Contains(all, name) || strings.HasPrefix(name, "mcp__"):
		case dialect.Absent(name):
			without = append(without, name)
		default:
			r.notef(line, true, "matcher %q matches no tool%s", name, r.instead(name))
		}
	}
	switch {
	case len(without) > 0 && len(without) == len(m.names):
		r.notef(line, true, "matcher %q: Belay has no such tool, so its hooks never run", m.text)
	case len(without) > 0:
		r.notef(line, false, "matcher %q: Belay has no tool %s", m.text, strings.Join(without, ", "))
	}
}

// instead suggests a name for a matcher that matches nothing.
func (r *reader) instead(text string) string {
	name, _, _ := strings.Cut(text, "(")
	ours, ok := dialect.OurName(name)
	if !ok {
		return ""
	}
	theirs := r.Vendor.Names(ours)[0]
	if strings.Contains(text, "(") {
		return fmt.Sprintf(" (a matcher has only names: write %s, and the rest into if)", theirs)
	}
	if theirs == name {
		return ""
	}
	return fmt.Sprintf(" (%s has %s)", r.Vendor.Title(), theirs)
}

func isNameRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// match returns the first name that the matcher matches.
func (m *matcher) match(names []string) (string, bool) {
	for _, name := range names {
		switch {
		case m.names == nil && m.pattern == nil:
			return name, true
		case m.names != nil && slices.Contains(m.names, name), m.pattern != nil && m.pattern.MatchString(name):
			return name, true
		}
	}
	return "", false
}

// condition decides whether a hook runs for an input. It is a [hook.Condition].
type condition struct {
	profile *Profile
	kind    dialect.Kind
	dir     string
	any     []choice // one of them must match
}

type choice struct {
	matcher *matcher
	rule    *rule // from the key if, or nil
}

func (c *condition) add(m *matcher, r *rule) { c.any = append(c.any, choice{m, r}) }

// String returns the matchers, for listings.
func (c *condition) String() string {
	var all []string
	for _, one := range c.any {
		text := one.matcher.text
		if text == "" {
			text = "*"
		}
		if one.rule != nil {
			text += " if " + one.rule.text
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return fmt.Sprintf("%s %s", c.kind, strings.Join(all, " or "))
}

// Check accepts the phases of the table of events.
func (c *condition) Check(hook.AnyPhase, any) error { return nil }

// Holds reports whether the hook runs.
func (c *condition) Holds(input any) (bool, error) {
	if failed, ok := input.(interface{ IsError() bool }); ok {
		switch {
		case c.kind == dialect.PostToolUseFailure && !failed.IsError(), c.kind == dialect.PostToolUse && failed.IsError() && !c.profile.Failures:
			return false, nil
		}
	}
	if call, ok := input.(toolInput); ok && isTool(c.kind) {
		_, holds := c.name(dialect.Call{Tool: call.Tool(), Input: call.Input()})
		return holds, nil
	}
	name := ""
	switch in := input.(type) {
	case interface{ Subagent() string }: // the end of a turn, of the main agent or of a subagent
		if name = in.Subagent(); c.kind == dialect.SubagentStop && name == "" {
			return false, nil
		}
	case interface{ Source() string }:
		name = sourceOf(c.profile.Vendor, in.Source())
	case interface{ Trigger() string }:
		name = triggerOf(in.Trigger())
	case interface{ Name() string }:
		name = in.Name()
	default:
		switch c.kind {
		case dialect.Notification:
			name = notificationType(c.profile)
		case dialect.SessionEnd:
			name = endReason
		default:
		}
	}
	return slices.ContainsFunc(c.any, func(one choice) bool {
		_, ok := one.matcher.match([]string{name})
		return ok
	}), nil
}

type toolInput interface {
	Tool() string
	Input() json.RawMessage
}

// name returns the vendor's name under which the hook sees a call.
func (c *condition) name(call dialect.Call) (string, bool) {
	names := c.profile.Vendor.NamesOf(call)
	for _, one := range c.any {
		if name, ok := one.matcher.match(names); ok && one.rule.holds(c.profile.Vendor, c.dir, names, call) {
			return name, true
		}
	}
	return names[0], false
}

// rule is the key if: the name of a tool, and a pattern for its input.
type rule struct {
	text    string
	tools   []string
	pattern string
}

// readRule reads the key if. Without the key it returns nil.
func readRule(text string) (*rule, error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	name, rest, has := strings.Cut(text, "(")
	if has {
		if !strings.HasSuffix(rest, ")") {
			return nil, errors.New("the pattern has no closing parenthesis")
		}
		rest = strings.TrimSuffix(rest, ")")
	}
	return &rule{text: text, tools: strings.Split(name, "|"), pattern: rest}, nil
}

// holds reports whether the rule matches a call. If Belay cannot tell, the hook runs.
func (r *rule) holds(v dialect.Vendor, dir string, names []string, call dialect.Call) bool {
	if r == nil {
		return true
	}
	if !slices.ContainsFunc(r.tools, func(t string) bool { return slices.Contains(names, strings.TrimSpace(t)) }) {
		return false
	}
	if r.pattern == "" || r.pattern == "*" {
		return true
	}
	calls, err := dialect.Ours(call)
	if err != nil || len(calls) == 0 {
		return true
	}
	var in struct {
		Command string `json:"command"`
		Path    string `json:"path"`
		Name    string `json:"name"`
	}
	if json.Unmarshal(calls[0].Input, &in) != nil {
		return true
	}
	switch {
	case in.Command != "":
		return commandMatches(r.pattern, in.Command)
	case in.Path != "":
		return pathMatches(r.pattern, dir, in.Path)
	case in.Name != "":
		return in.Name == r.pattern
	default:
		_ = v // the other tools have no pattern
		return true
	}
}

// commandMatches reports whether a part of a command matches a pattern. A command that is
// too complex to be split matches every pattern.
func commandMatches(pattern, command string) bool {
	if strings.ContainsAny(command, "`(){}\"'\\$") || strings.Contains(command, "<<") {
		return true
	}
	pattern = strings.Replace(pattern, ":*", "*", 1)
	wanted := globPattern(pattern, `(?s:.*)`)
	for part := range strings.FieldsFuncSeq(command, func(c rune) bool { return strings.ContainsRune("|&;\n", c) }) {
		part = strings.TrimSpace(part)
		for { // leave out variables before the program
			first, rest, ok := strings.Cut(part, " ")
			if !ok || !strings.Contains(first, "=") {
				break
			}
			part = strings.TrimSpace(rest)
		}
		if part = strings.Join(strings.Fields(part), " "); runsOther(part) {
			return true
		}
		if wanted.MatchString(part) || strings.HasSuffix(pattern, " *") && part == strings.TrimSuffix(pattern, " *") {
			return true
		}
	}
	return false
}

// runsOther reports whether a command runs the program that one of its arguments names.
func runsOther(command string) bool {
	first, _, _ := strings.Cut(command, " ")
	return slices.Contains([]string{"env", "exec", "nice", "nohup", "sudo", "doas", "time", "timeout", "xargs", "command", "builtin", "sh", "bash", "zsh", "eval", "setsid", "stdbuf", "ionice", "chrt", "taskset"}, filepath.Base(first))
}

// pathMatches reports whether a path matches a pattern with * and **.
func pathMatches(pattern, dir, path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || strings.HasPrefix(pattern, "//") || strings.HasPrefix(pattern, "~") {
		return true // a path outside of the project has many spellings
	}
	rel = filepath.ToSlash(rel)
	pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/")
	wanted := globPattern(pattern, `[^/]*`)
	switch {
	case !strings.Contains(pattern, "/"):
		return wanted.MatchString(filepath.Base(path)) || wanted.MatchString(rel)
	default:
		return wanted.MatchString(rel) || wanted.MatchString(strings.TrimPrefix(filepath.ToSlash(path), "/"))
	}
}

// globPattern turns a pattern with * into a regular expression.
func globPattern(pattern, star string) *regexp.Regexp {
	var b strings.Builder
	b.WriteByte('^')
	for pattern != "" {
		switch {
		case strings.HasPrefix(pattern, "**/"):
			b.WriteString(`(?:.*/)?`)
			pattern = pattern[3:]
		case strings.HasPrefix(pattern, "**"):
			b.WriteString(`.*`)
			pattern = pattern[2:]
		case pattern[0] == '*':
			b.WriteString(star)
			pattern = pattern[1:]
		default:
			text, _, _ := strings.Cut(pattern, "*")
			b.WriteString(regexp.QuoteMeta(strings.ToValidUTF8(text, "?")))
			pattern = pattern[len(text):]
		}
	}
	b.WriteByte('$')
	return regexp.MustCompile(b.String())
}
