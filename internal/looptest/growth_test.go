package looptest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/growthtest"
	"github.com/belay-run/belay/provider/scripted"
)

// turnOf returns a function that prepares a turn with a text of n parts.
func turnOf(t *testing.T, opts func() *belay.Options, text func(n int) string) func(n int) func() {
	t.Helper()
	return func(n int) func() {
		agent, err := belay.New(scripted.New([]scripted.Step{{Text: "done"}}, nil), opts())
		if err != nil {
			t.Fatal(err)
		}
		said := text(n)
		return func() {
			if _, err := agent.Session("s").Turn(t.Context(), said); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// answersTo is an extension that handles one typed name.
type answersTo struct{ name string }

func (answersTo) Name() string { return "answers" }

func (a answersTo) Binds(_, name string) bool { return name == a.name }

func (a answersTo) TypedNames(string) []belay.TypedName { return nil }

func (answersTo) Expand(context.Context, belay.Submission) (belay.Expansion, error) {
	return belay.Expansion{}, nil
}

// repeated returns a function that repeats the text n times.
func repeated(text string) func(n int) string {
	return func(n int) string { return strings.Repeat(text, n) }
}

// Processing a user's text takes time in proportion to its length, whatever the text is.
//
// SPEC D-01, D-03
func TestATurnIsLinearInWhatTheUserTyped(t *testing.T) { //nolint:paralleltest // it measures
	directives := func() *belay.Options {
		return &belay.Options{Directives: []belay.Directive{directive("a", func(use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
			use.Alone()
			return belay.DirectiveOutcome{}, nil
		})}}
	}
	both := func() *belay.Options {
		opts := directives()
		opts.Extensions = []belay.Extension{answersTo{"b"}}
		return opts
	}
	for _, test := range []struct { //nolint:paralleltest // it measures
		rule string
		n    int
		opts func() *belay.Options
		text func(n int) string
	}{
		{"directives", 6_000, directives, repeated("/a ")},
		{"names of an extension", 20_000, both, repeated("/b ")},
		{"directives and names of an extension", 4_000, both, repeated("/a /b ")},
		{"directives in front of a run of spaces", 1_500, directives, func(n int) string { return strings.Repeat("/a ", n) + strings.Repeat(" ", 50*n) }},
		{"names that nobody answers to", 30_000, directives, repeated("/b ")},
		{"slashes", 200_000, directives, repeated("/")},
		{"what looks like a placeholder", 12_000, directives, func(n int) string { return "/a " + strings.Repeat("[invoked_extension__hook_", n) }},
		{"a directive and text", 100_000, directives, func(n int) string { return "/a " + strings.Repeat("word ", n) }},
	} {
		t.Run(test.rule, func(t *testing.T) { growthtest.Linear(t, test.n, turnOf(t, test.opts, test.text)) })
	}
}
