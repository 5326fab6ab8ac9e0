package permit

import (
	"context"
	"encoding/json"
	"path"
	"strings"

	"github.com/belay-run/belay"
)

var _ belay.PatternAuthorizer = (*Floor)(nil)

// CheckPattern says why a pattern of calls cannot be read. A pattern is a rule
// without its decision: shell(git push *).
func (f *Floor) CheckPattern(pattern string) error {
	_, err := f.pattern(pattern)
	return err
}

// pattern reads a pattern as a rule that allows.
func (f *Floor) pattern(text string) (*rule, error) {
	r, err := ParseRule("allow " + text)
	if err != nil {
		return nil, err
	}
	return compile(r, f.tools)
}

// Covers reports whether a pattern covers all of a call that the floor would ask
// about.
func (f *Floor) Covers(ctx context.Context, pattern string, call belay.ToolCall) (bool, error) {
	r, err := f.pattern(pattern)
	if err != nil {
		return false, err
	}
	return f.covers(ctx, r, call.Tool(), call.Input()), nil
}

func (f *Floor) covers(ctx context.Context, r *rule, tool string, input json.RawMessage) bool {
	if ok, err := path.Match(r.Tool, tool); !ok || err != nil {
		return false
	}
	fields, err := members(input)
	if err != nil {
		return false
	}
	plain := *f // without rules and guards, which have had their say
	plain.rules, plain.guards = nil, nil
	e := plain.Explain(ctx, tool, input)
	alone := &rules{byTool: map[string][]*rule{tool: {r}}, ready: map[string]*ruleIndex{}}
	allowed := alone.judge(e, fields)
	for i := range e.Findings {
		found := &e.Findings[i]
		switch {
		case found.Zone >= ZoneNever:
			return false
		case allowed.covers(i), found.Zone <= f.mode.Auto && !f.heldBack(found):
		case found.attached() && allowed.covers(found.owner-1):
		default:
			return false
		}
	}
	return true
}

// heldBack reports whether a protection that holds is about a finding.
func (f *Floor) heldBack(found *Finding) bool {
	return found.Protection != "" && !f.relaxed[found.Protection]
}

// attached reports whether a finding only says more about the command it belongs to.
func (found *Finding) attached() bool {
	return found.owner > 0 && (found.Kind != KindCommand || found.words == nil && found.Protection != "")
}

// verbs are commands whose first word says what they do.
var verbs = map[string]bool{
	"git": true, "go": true, "npm": true, "pnpm": true, "yarn": true, "cargo": true, "docker": true, "kubectl": true, "gh": true, "make": true,
	"pip": true, "uv": true, "apt": true, "apt-get": true, "brew": true, "systemctl": true, "terraform": true, "helm": true, "podman": true,
}

// Suggest is a pattern that covers a call and others like it, for whoever is asked
// about it, or nothing.
func (f *Floor) Suggest(ctx context.Context, tool string, input json.RawMessage) string {
	e := f.Explain(ctx, tool, input)
	for _, pattern := range f.candidates(e) {
		if r, err := f.pattern(pattern); err == nil && f.covers(ctx, r, tool, input) {
			return pattern
		}
	}
	return ""
}

func (f *Floor) candidates(e *Explanation) []string {
	if f.tools.of(e.Tool).Command == "" {
		var patterns []string
		for i := range e.Findings {
			if found := &e.Findings[i]; (found.Kind == KindRead || found.Kind == KindWrite) && found.Zone > f.mode.Auto {
				patterns = append(patterns, e.Tool+"("+quotedGlob(path.Dir(found.Subject))+"/**)")
			}
		}
		return append(patterns, e.Tool)
	}
	var patterns []string
	for i := range e.Findings {
		found := &e.Findings[i]
		if found.Kind != KindCommand || found.words == nil || !found.trust {
			continue
		}
		words := found.words[:1]
		if len(found.words) > 1 && verbs[base(found.words[0])] && !strings.HasPrefix(found.words[1], "-") {
			words = found.words[:2]
		}
		for _, w := range words {
			if strings.ContainsAny(w, "*?[\\() \t\n") {
				words = nil
			}
		}
		if words != nil {
			patterns = append(patterns, e.Tool+"("+strings.Join(words, " ")+" *)")
		}
	}
	return patterns
}

// quotedGlob is a path as a pattern that matches it alone.
func quotedGlob(name string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`, `\`, `\\`).Replace(name)
}
