package skill

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/policy"
)

// allowedTools is the policy that stores the limits of a turn, so that they also apply
// when the turn is resumed. Each limit is a text of lines. The first line is the name of
// the skill, or empty if the skill is hidden. Each other line is an allowed tool. A
// call must be covered by every limit. Limits can be added to a turn, but not removed.
var allowedTools = policy.Union[string]("skill_allowed_tools")

// limit returns the limits of the skills that are active in a turn.
func (e *Extension) limit(ctx context.Context, in belay.TurnBegun) (belay.TurnPolicy, error) {
	var active []*Skill
	now, mine := e.catalog.now.Load(), e.in(ctx, in.Agent())
	for _, m := range mine.active(now, in.Text()) {
		active = append(active, m.Skill)
	}
	for _, s := range now.named(in.Text()) {
		if mine.has(s) {
			active = append(active, s)
		}
	}
	var limits []string
	for _, s := range active {
		if s.AllowedTools == nil {
			continue
		}
		name := s.Name
		if s.Hidden {
			name = ""
		}
		limits = append(limits, strings.Join(slices.Concat([]string{name}, s.AllowedTools), "\n"))
	}
	if len(limits) == 0 {
		return belay.TurnPolicy{}, nil
	}
	return belay.SetPolicy(allowedTools.Set(limits)), nil
}

// allow denies a call if one of the turn's limits does not cover it. The tools that read
// and invoke skills are always allowed, because the model must read a skill to follow it.
func (e *Extension) allow(ctx context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	limits, ok := allowedTools.Value(call.Policy())
	if !ok || call.Tool() == e.opts.ToolName || call.Tool() == InvokeTool {
		return belay.Pass, nil
	}
	for _, limit := range limits {
		parts := strings.Split(limit, "\n")
		covered, err := e.covered(ctx, parts[1:], call)
		if err != nil {
			return belay.Pass, err // tool.pre is a gate, so an error denies the call
		}
		if !covered {
			who, what := "a skill", "no tools"
			if parts[0] != "" {
				who = fmt.Sprintf("the skill %q", parts[0])
			}
			if len(parts) > 1 {
				what = "only " + strings.Join(parts[1:], ", ")
			}
			return belay.Deny(who + " is active in this turn and allows " + what), nil
		}
	}
	return belay.Pass, nil
}

// covered reports whether one of the entries matches the call. An entry is the name of a
// tool or a pattern for path.Match. Options.Patterns checks entries with parentheses.
func (e *Extension) covered(ctx context.Context, entries []string, call belay.ToolCall) (bool, error) {
	for _, entry := range entries {
		if strings.ContainsAny(entry, "()") {
			if e.opts.Patterns == nil || e.opts.Patterns.CheckPattern(entry) != nil {
				continue
			}
			covered, err := e.opts.Patterns.Covers(ctx, entry, call)
			if covered || err != nil {
				return covered, err
			}
			continue
		}
		if ok, err := path.Match(entry, call.Tool()); ok && err == nil {
			return true, nil
		}
	}
	return false, nil
}
