package permit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Guard denies calls, whatever the mode and the rules say. Nobody is asked. A call must
// pass the check of every field that is set. A guard that fails or panics denies the
// call.
type Guard struct {
	// ID names the guard.
	ID string
	// Tools are the tools that the guard applies to. Each is a name, or a pattern of
	// path.Match. Defaults to all.
	Tools []string
	// Deny is a regular expression. The guard denies a call if a text in its input
	// matches. It also denies a call if the subject of a finding matches, such as a
	// resolved command. Defaults to none.
	Deny string
	// Commands are the names of the only commands that may run. Defaults to all.
	Commands []string
	// Paths are the only paths that a call may read or change. They are patterns relative
	// to the project. Defaults to all.
	Paths []string
	// Check is called for each call. If it returns an error, the guard denies the call.
	// Defaults to none.
	Check func(ctx context.Context, tool string, input json.RawMessage) error
	// Reason is the message of a denial. Defaults to a message about the check that
	// failed.
	Reason string
}

type guard struct {
	Guard
	deny *regexp.Regexp
}

func newGuards(given []Guard, tools *profiles) ([]guard, error) {
	var problems []error
	guards := make([]guard, len(given))
	for i, g := range given {
		name := strconv.Quote(g.ID)
		if g.ID == "" {
			name = strconv.Itoa(i + 1)
		}
		bad := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("permit: guard %s: %w", name, fmt.Errorf(format, args...)))
		}
		guards[i] = guard{Guard: g}
		if g.ID == "" {
			bad("the guard has no id: give it one")
		} else if slices.ContainsFunc(given[:i], func(other Guard) bool { return other.ID == g.ID }) {
			bad("another guard has the same id: change one of them")
		}
		for _, tool := range g.Tools {
			if _, err := path.Match(tool, ""); err != nil {
				bad("tool %q: %w", tool, err)
			} else if err := tools.misspelt(tool); err != nil {
				bad("tools: %w", err)
			}
		}
		for _, command := range g.Commands {
			if command == "" || strings.ContainsAny(command, " \t\n/|;&") {
				bad("commands: %q is not the name of a command: write only a name, such as git, and use a rule for the arguments", command)
			}
		}
		for _, p := range g.Paths {
			if !doublestar.ValidatePattern(p) {
				bad("%q is not a valid path pattern", p)
			}
		}
		var err error
		if guards[i].deny, err = compiled(g.Deny); err != nil {
			bad("deny: %w", err)
		}
		if g.Deny == "" && g.Commands == nil && g.Paths == nil && g.Check == nil {
			bad("the guard checks nothing: set deny, commands or paths")
		}
	}
	return guards, errors.Join(problems...)
}

// compiled compiles a regular expression. It returns nil if the text is empty.
func compiled(expression string) (*regexp.Regexp, error) {
	if expression == "" {
		return nil, nil //nolint:nilnil // there is nothing to deny
	}
	return regexp.Compile(expression) //nolint:wrapcheck // the caller says of which guard it is
}

// judge returns why the guard denies a call, or an empty text if it does not.
func (g *guard) judge(ctx context.Context, floor *Floor, e *Explanation, input json.RawMessage) (why string) {
	if !g.isAbout(e.Tool) && (floor.aliases == nil || !slices.ContainsFunc(floor.aliases(e.Tool), g.isAbout)) {
		return ""
	}
	defer func() {
		if p := recover(); p != nil {
			why = fmt.Sprintf("the guard failed: %v", p)
		}
		if why != "" && g.Reason != "" {
			why = g.Reason
		}
	}()
	if g.deny != nil {
		hit, err := g.finds(e, input)
		switch {
		case err != nil:
			return "the guard failed: " + err.Error()
		case hit:
			return "the call matches the pattern " + g.Deny
		}
	}
	for i := range e.Findings {
		if why := g.restricts(floor, &e.Findings[i]); why != "" {
			return why
		}
	}
	if g.Check != nil {
		if err := g.Check(ctx, e.Tool, input); err != nil {
			return err.Error()
		}
	}
	return ""
}

func (g *guard) isAbout(tool string) bool {
	return len(g.Tools) == 0 || slices.ContainsFunc(g.Tools, func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok || err != nil
	})
}

// restricts returns why a finding is not among the allowed commands and paths, or an
// empty text.
func (g *guard) restricts(floor *Floor, f *Finding) string {
	switch f.Kind {
	case KindCommand:
		if g.Commands == nil {
			return ""
		}
		name, _, _ := strings.Cut(f.Subject, " ")
		if f.words != nil {
			name = f.words[0]
		}
		if !f.trust || !slices.Contains(g.Commands, base(name)) {
			return fmt.Sprintf("%s is not one of the allowed commands: %s", shown(name), strings.Join(g.Commands, ", "))
		}
	case KindRead, KindWrite:
		if g.Paths == nil {
			return ""
		}
		if !g.hasPath(f.Subject) {
			return fmt.Sprintf("%s is not one of the allowed paths: %s", shown(f.Subject), strings.Join(g.Paths, ", "))
		}
		if f.tree != "" && !g.hasPath(path.Join(f.tree, anything, anything)) && floor.isDirectory(f.tree) {
			return fmt.Sprintf("%s contains paths that are not allowed; the allowed paths are %s", shown(f.tree), strings.Join(g.Paths, ", "))
		}
	case KindUnknown:
		if g.Commands != nil || g.Paths != nil {
			return fmt.Sprintf("cannot check %s: %s", shown(f.Subject), f.Why)
		}
	case KindTool, KindURL:
	}
	return ""
}

func (g *guard) hasPath(name string) bool {
	return slices.ContainsFunc(g.Paths, func(p string) bool { return doublestar.MatchUnvalidated(p, name) })
}

// finds reports whether Deny matches a text of the input or the subject of a finding.
func (g *guard) finds(e *Explanation, input json.RawMessage) (bool, error) {
	var value any
	if len(input) > 0 {
		if err := json.Unmarshal(input, &value); err != nil {
			return false, fmt.Errorf("read the input: %w", err)
		}
	}
	if g.inside(value) {
		return true, nil
	}
	return slices.ContainsFunc(e.Findings, func(f Finding) bool { return g.deny.MatchString(f.Subject) }), nil
}

func (g *guard) inside(value any) bool {
	switch v := value.(type) {
	case string:
		return g.deny.MatchString(v)
	case []any:
		return slices.ContainsFunc(v, g.inside)
	case map[string]any:
		for name, inner := range v {
			if g.deny.MatchString(name) || g.inside(inner) {
				return true
			}
		}
	}
	return false
}
