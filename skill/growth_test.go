package skill_test

import (
	"context"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/growthtest"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/skill"
)

// repeated returns a function that repeats text n times.
func repeated(text string) func(n int) string {
	return func(n int) string { return strings.Repeat(text, n) }
}

// The time to process a user's text is proportional to its length, for any text.
//
// SPEC K-11, K-08
func TestATurnWithSkillsIsLinearInWhatTheUserTyped(t *testing.T) { //nolint:paralleltest // it measures
	dir := write(t, map[string]string{"file/SKILL.md": md("name: file", "description: x")})
	skills := skill.Values(
		skill.Skill{Name: "a", Description: "x", Body: "Do it.", AllowedTools: []string{"look"}},
		skill.Skill{Name: "template", Description: "x", Body: "Do it in {{language}}.", Triggers: []skill.Trigger{{Pattern: "never said"}}},
		skill.Skill{Name: "active", Description: "x", Body: "Do {{task}}.", Triggers: []skill.Trigger{{Pattern: strings.Repeat("a", 1000) + "b"}, {Type: skill.Regex, Pattern: strings.Repeat("c", 500) + `\d`}}},
	)
	project := t.TempDir()
	opts := func() *belay.Options {
		catalog := skill.NewCatalog(t.Context(), skills, skill.Dir(dir))
		return &belay.Options{
			Extensions: []belay.Extension{extensionOf(t, catalog, &skill.Options{Project: project, EnforceAllowedTools: true, Refresh: -1})},
			Directives: []belay.Directive{{Name: "quiet", Run: func(context.Context, *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
				return belay.DirectiveOutcome{}, nil
			}}},
		}
	}
	for _, test := range []struct { //nolint:paralleltest // it measures
		rule string
		n    int
		text func(n int) string
	}{
		{"a skill that is named", 3_000, repeated("/a ")},
		{"a skill in a file that is named", 1_000, repeated("/file ")},
		{"a template that is named", 300, repeated("/template ")},
		{"a skill that is named in front of a run of spaces", 1_000, func(n int) string { return strings.Repeat("/a ", n) + strings.Repeat(" ", 50*n) }},
		{"directives, which leave placeholders", 2_000, func(n int) string { return strings.Repeat("/quiet ", n) + "/a" }},
		{"placeholders that were typed", 3_000, repeated("[invoked_extension__hook_a] ")},
		{"placeholders of skills that were typed", 3_000, repeated("[invoked_extension__skill_b] ")},
		{"an id that ends in punctuation", 20_000, func(n int) string { return "skill:" + strings.Repeat(".", n) }},
		{"ids in ids", 20_000, repeated("skill:")},
		{"ids", 20_000, repeated("skill:a ")},
		{"nearly a keyword", 60_000, func(n int) string { return strings.Repeat("a", n) + "b" }},
		{"nearly an expression", 60_000, repeated("c")},
	} {
		t.Run(test.rule, func(t *testing.T) {
			growthtest.Linear(t, test.n, func(n int) func() {
				agent, err := belay.New(scripted.New([]scripted.Step{{Text: "done"}}, nil), opts())
				if err != nil {
					t.Fatal(err)
				}
				said := test.text(n)
				return func() {
					if _, err := agent.Session("s").Turn(t.Context(), said); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// Matching time does not grow with the product of the keyword length and the text length.
//
// SPEC K-11
func TestMatchingIsLinear(t *testing.T) { //nolint:paralleltest // it measures
	catalog := skill.NewCatalog(t.Context(), skill.Values(
		skill.Skill{Name: "a", Triggers: []skill.Trigger{{Pattern: strings.Repeat("é", 1000) + "b"}}},
		skill.Skill{Name: "b", Triggers: []skill.Trigger{{Pattern: strings.Repeat("a", 1000) + "b"}}},
	))
	for rule, text := range map[string]func(n int) string{ //nolint:paralleltest // it measures
		"nearly a keyword":           func(n int) string { return strings.Repeat("a", n) },
		"a keyword at the very end":  func(n int) string { return strings.Repeat("A", n) + "B" },
		"letters of more bytes":      func(n int) string { return strings.Repeat("É", n) + "b" },
		"an id with punctuation":     func(n int) string { return "skill:" + strings.Repeat("-.", n) },
		"many ids with punctuation":  repeated("skill:x...... "),
		"an id that is very long":    func(n int) string { return "skill:" + strings.Repeat("x", n) },
		"an id of dots and prefixes": repeated(".skill:"),
	} {
		t.Run(rule, func(t *testing.T) {
			growthtest.Linear(t, 60_000, func(n int) func() {
				said := text(n)
				return func() { catalog.Match(said, "main") }
			})
		})
	}
}

// The time to check a file is proportional to its length.
//
// SPEC K-07
func TestCheckingIsLinear(t *testing.T) { //nolint:paralleltest // it measures
	growthtest.Linear(t, 20_000, func(n int) func() {
		dir := write(t, map[string]string{"a/SKILL.md": "---\nname: a\ndescription: x\ntriggers: a\n---\n" + strings.Repeat("{{unknwn}}\n", n)})
		return func() {
			if found, err := skill.Check(dir, false); err != nil || len(found) != n {
				t.Errorf("the check found %d problems, %v, want %d", len(found), err, n)
			}
		}
	})
}

// The text after a skill's name is its argument. So a message that names a skill many
// times would become quadratically longer. There is a limit, and a message that exceeds
// it is not stored.
//
// SPEC K-02, D-05
func TestWhatSkillsPutInFrontIsBounded(t *testing.T) {
	t.Parallel()
	agent := agentWith(t, extensionOf(t, catalogOf(t, skill.Skill{Name: "fix", Description: "x", Body: "Fix $ARGUMENTS."}), nil), scripted.Step{Text: "done"})
	_, err := agent.Session("long").Turn(t.Context(), strings.Repeat("/fix ", 8_000))
	if err == nil || !strings.Contains(err.Error(), "/fix: the skills in the message add more than 64 MiB of text: name fewer skills") {
		t.Errorf("error = %v, want one that names the bound", err)
	}
	for m, err := range agent.Session("long").Messages(t.Context()) {
		t.Fatalf("%+v is stored, %v, want nothing", m, err)
	}
	agent.Say(strings.Repeat("/fix ", 100)).Ended(belay.EndTurn)
}
