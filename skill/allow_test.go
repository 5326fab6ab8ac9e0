package skill_test

import (
	"context"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/skill"
)

// SPEC K-10
func TestAllowedToolsAreALimit(t *testing.T) {
	t.Parallel()
	catalog := catalogOf(
		t, skill.Skill{Name: "reader", Body: "Read.", Triggers: []skill.Trigger{{Pattern: "inspect"}}, AllowedTools: []string{"look*", "shell(git:*)", "gone"}},
		skill.Skill{Name: "narrow", Body: "x", Triggers: []skill.Trigger{{Pattern: "narrowly"}}, AllowedTools: []string{"lookup"}},
		skill.Skill{Name: "none", Body: "x", AllowedTools: []string{}},
		skill.Skill{Name: "free", Body: "x", Triggers: []skill.Trigger{{Pattern: "freely"}}},
	)
	for _, test := range []struct {
		rule, text string
		opts       skill.Options
		want       string // the tools that ran
	}{
		{"it is not enforced by itself", "inspect it", skill.Options{}, "look lookup shell write"},
		{"a trigger limits", "inspect it", skill.Options{EnforceAllowedTools: true}, "look lookup"},
		{"a name limits", "/reader it", skill.Options{EnforceAllowedTools: true}, "look lookup"},
		{"an id limits", "it, with skill:reader", skill.Options{EnforceAllowedTools: true}, "look lookup"},
		{"each is a limit by itself", "inspect it narrowly", skill.Options{EnforceAllowedTools: true}, "lookup"},
		{"one without a list is no limit", "freely", skill.Options{EnforceAllowedTools: true}, "look lookup shell write"},
		{"an empty list allows none", "/none", skill.Options{EnforceAllowedTools: true}, ""},
		{"who is not active does not limit", "hello", skill.Options{EnforceAllowedTools: true}, "look lookup shell write"},
		{"an entry with parentheses is for who reads it", "inspect it", skill.Options{EnforceAllowedTools: true, Patterns: gitOnly{}}, "look lookup shell"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var tools []belay.Tool
			var step scripted.Step
			for _, name := range []string{"look", "lookup", "shell", "write"} {
				tools = append(tools, belaytest.NewTool(name, "ok"))
				step.Calls = append(step.Calls, scripted.Call{Tool: name})
			}
			step.Calls = append(step.Calls, scripted.Call{Tool: "read_skill", Input: `{"name":"free"}`})
			agent := belaytest.New(t, belaytest.Script(step, belaytest.Says("done")), &belay.Options{Tools: tools, Extensions: []belay.Extension{extensionOf(t, catalog, &test.opts)}})
			var ran []string
			turn := agent.Say(test.text)
			for _, c := range turn.Calls()[:4] {
				if !c.Result.IsError {
					ran = append(ran, c.Tool)
				}
			}
			if got := strings.Join(ran, " "); got != test.want {
				t.Errorf("ran %q, want %q", got, test.want)
			}
			if c := turn.Calls()[4]; c.Result.IsError {
				t.Errorf("a skill could not be read: %s", c.Result.Text)
			}
		})
	}
}

// gitOnly is a floor that knows only the pattern shell(git:*).
type gitOnly struct{}

func (gitOnly) Authorize(context.Context, belay.ToolCall) (belay.Authorization, error) {
	return belay.Authorization{}, nil
}
func (gitOnly) CheckPattern(string) error { return nil }
func (gitOnly) Covers(_ context.Context, pattern string, call belay.ToolCall) (bool, error) {
	return pattern == "shell(git:*)" && call.Tool() == "shell", nil
}

// SPEC K-10
func TestALimitSurvivesParking(t *testing.T) {
	t.Parallel()
	catalog := catalogOf(t, skill.Skill{Name: "reader", Body: "Read.", Triggers: []skill.Trigger{{Pattern: "inspect"}}, AllowedTools: []string{"wait"}})
	wait := belay.NewRawTool(belay.ToolDeclaration{Name: "wait"}, func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		if call.Wait == "" {
			return belay.Result{}, belay.Park("bell")
		}
		return belay.Result{Text: "rang"}, nil
	}, nil)
	write := belaytest.NewTool("write", "written")
	agent := belaytest.New(t, belaytest.Script(belaytest.Calls("wait", `{}`), belaytest.Calls("write", `{}`), belaytest.Says("done")),
		&belay.Options{Tools: []belay.Tool{wait, write}, Extensions: []belay.Extension{extensionOf(t, catalog, &skill.Options{EnforceAllowedTools: true})}})
	agent.Say("inspect it").Ended(belay.EndParked)
	turn := agent.Resume()
	turn.Denied("write", "skill.allowed-tools", `the skill "reader" is active in this turn and allows only wait`)
	write.Ran(t) // it never ran
}
