package subagent_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/subagent"
)

// The list of subagents has the same budget as the list of skills. Without a budget, 202
// subagents would add more than 60,000 characters to every model request.
//
// SPEC K-16, S-01
func TestTheListOfSubagentsKeepsToABudget(t *testing.T) {
	t.Parallel()
	var subagents []subagent.Subagent
	whole := 0
	for i := range 202 {
		s := subagent.Subagent{Name: fmt.Sprintf("%s-%d", []string{"code-reviewer", "test-writer", "api-designer"}[i%3], i), Factory: answers("done")}
		s.Description = "Does what " + s.Name + " is for. " + strings.Repeat("Use it when a task is about that. ", 5+i%7)
		whole += len(s.Name) + len(s.Description)
		subagents = append(subagents, s)
	}
	if whole < 50_000 {
		t.Fatalf("the descriptions have %d characters: this test needs long ones", whole)
	}
	for _, test := range []struct {
		window, most, budget int
		described            int // the minimum number
		all                  bool
	}{
		{window: 0, budget: 2000},
		{window: 200_000, budget: 4000, described: 20},
		{window: 1_000_000, budget: 20_000, described: 202, all: true},
		{window: 1_000_000, most: 3000, budget: 3000, described: 5},
		{window: 0, most: 25_000, budget: 25_000, described: 202, all: true},
	} {
		t.Run(fmt.Sprintf("window %d, option %d", test.window, test.most), func(t *testing.T) {
			t.Parallel()
			model := scripted.New([]scripted.Step{calls(invoke("test-writer-199", "go")), says("done"), says("done")}, &scripted.Options{Window: test.window})
			agent := newAgent(t, model, &belay.Options{Extensions: []belay.Extension{newExtension(t, &subagent.Options{Budget: test.most}, subagents...)}})
			first := take(t, agent.Session("s").Run(t.Context(), "go"))
			second := take(t, agent.Session("s").Run(t.Context(), "go"))
			_, list, _ := strings.Cut(model.Requests()[0].Tools[0].Description, "\n\n")
			named, described, size := strings.Count(list, "<subagent "), strings.Count(list, "</subagent>"), utf8.RuneCountInString(list)
			t.Logf("%d of 202 named, %d described, %d characters", named, described, size)
			if size > 4*test.budget || named+omitted(list) != 202 || described < test.described {
				t.Errorf("want %d characters at most, all names, and %d descriptions at least", 4*test.budget, test.described)
			}
			if text := first.results()[0].Text; !strings.Contains(text, "done") {
				t.Errorf("a subagent without a description answers %s", text)
			}
			if told := informed(first.end); (told == 0) != test.all || told > 1 {
				t.Errorf("the user is informed %d times in the first turn", told)
			}
			if told := informed(second.end); told != 0 {
				t.Errorf("the user is informed again")
			}
		})
	}
	if _, err := subagent.New(&subagent.Options{Budget: -1}); err == nil || !strings.Contains(err.Error(), "budget") {
		t.Errorf("a negative budget: %v", err)
	}
}

// omitted returns how many subagents a list leaves out.
func omitted(list string) (n int) {
	if _, comment, ok := strings.Cut(list, "<!-- "); ok {
		_, _ = fmt.Sscanf(comment, "%d more subagents omitted", &n)
	}
	return n
}

// informed returns how many diagnostics of a turn say that the list of subagents was cut.
func informed(end *belay.Turn) (n int) {
	for _, d := range end.Diagnostics {
		if d.Code == codes.ListingTruncated && strings.Contains(d.Message, "of 202 subagents") {
			n++
		}
	}
	return n
}
