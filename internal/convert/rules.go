package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/permit"
)

// permissions adds rules in the form of Claude Code. Allow rules of a project have no effect
// in Belay, so they are left out with a note.
func (im *importer) permissions(from string, s *claude.Settings) {
	p := assembly.TranslatePermissions(im.settings, s, from, im.User)
	im.plan.Read += len(s.Allow) + len(s.Ask) + len(s.Deny)
	for _, note := range p.Notes {
		im.notef(from, "%s", note)
	}
	for i := range p.Rules {
		text := p.Rules[i].String()
		if again, err := permit.ParseRule(text); err != nil || again.Tool != p.Rules[i].Tool || again.Pattern != p.Rules[i].Pattern {
			im.notef(from, "%s: not translated: a rule in belay.yaml cannot have this pattern. The rule in %s still applies", text, im.shown(from))
			continue
		}
		if !slices.Contains(im.rules, text) {
			im.rules = append(im.rules, text)
		}
	}
	for i := range p.Guards {
		g := &p.Guards[i]
		line := fmt.Sprintf("{id: %s, tools: [%s], deny: %s, reason: %s}", quoted("import: "+g.ID), strings.Join(g.Tools, ", "), quoted(g.Deny), quoted(g.Reason))
		if !slices.Contains(im.guards, line) {
			im.guards = append(im.guards, line)
		}
	}
}

// writeRules adds the rules to belay.yaml.
func (im *importer) writeRules() {
	file := filepath.Join(im.settings.Project, config.Name)
	if im.User {
		file = filepath.Join(im.settings.UserDir, config.Name)
	}
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		im.notef(file, "not written: it cannot be read: %v", err)
		return
	}
	has := func(line string) bool { return strings.Contains(string(before), line) }
	rules := slices.DeleteFunc(slices.Clone(im.rules), func(r string) bool { return has(quoted(r)) })
	guards := slices.DeleteFunc(slices.Clone(im.guards), has)
	if len(rules)+len(guards) == 0 {
		return
	}
	for i := range rules {
		rules[i] = quoted(rules[i])
	}
	after, ok := addRules(string(before), rules, guards)
	if !ok {
		im.notef(file, "not written: its key permit has a form that the import does not change. Add this by hand:\n%s", block(rules, guards))
		return
	}
	im.put(file, []byte(after), true)
}

var (
	permitLine = lazyregexp.New(`(?m)^permit:[ \t]*(?:#.*)?$`)
	anyPermit  = lazyregexp.New(`(?m)^["']?permit["']?[ \t]*:`)
)

// block returns the key permit with rules and guards.
func block(rules, guards []string) string {
	return "permit:\n" + listing("rules", rules) + listing("guards", guards)
}

func listing(key string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "  " + key + ":\n    - " + strings.Join(lines, "\n    - ") + "\n"
}

// addRules adds rules and guards to the text of a belay.yaml, and changes nothing else. It
// returns false if it cannot.
func addRules(text string, rules, guards []string) (string, bool) {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	switch at := permitLine.FindStringIndex(text); {
	case !anyPermit.MatchString(text):
		if text != "" {
			text += "\n"
		}
		text += block(rules, guards)
	case at == nil:
		return "", false
	default:
		for _, list := range []struct {
			key   string
			lines []string
		}{{"guards", guards}, {"rules", rules}} {
			if len(list.lines) == 0 {
				continue
			}
			under := text[at[1]:]
			if end := regexp.MustCompile(`(?m)^[^ \t#\n]`).FindStringIndex(under); end != nil {
				under = under[:end[0]]
			}
			found := regexp.MustCompile(`(?m)^([ \t]+)` + list.key + `:[ \t]*(?:#.*)?\n([ \t]*)- `).FindStringSubmatchIndex(under)
			switch {
			case found != nil:
				indent := under[found[4]:found[5]]
				cut := at[1] + found[4]
				text = text[:cut] + indent + "- " + strings.Join(list.lines, "\n"+indent+"- ") + "\n" + text[cut:]
			case regexp.MustCompile(`(?m)^[ \t]+` + list.key + `:`).MatchString(under):
				return "", false
			default:
				indent := "  "
				if m := regexp.MustCompile(`(?m)^([ \t]+)[A-Za-z]`).FindStringSubmatch(under); m != nil {
					indent = m[1]
				}
				text = text[:at[1]] + "\n" + indent + list.key + ":\n" + indent + "  - " + strings.Join(list.lines, "\n"+indent+"  - ") + text[at[1]:]
			}
		}
	}
	if _, err := frontmatter.ParseYAML(text); err != nil {
		return "", false
	}
	return text, true
}
