package skill_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/skill"
)

// collection returns a catalog of n skills. Names and descriptions are as long as in real
// collections.
func collection(t *testing.T, n int) *skill.Catalog {
	t.Helper()
	skills := make([]skill.Skill, n)
	for i := range skills {
		name := fmt.Sprintf("%s-%d", []string{"pdf-forms", "release-notes", "frontend-design", "database-migrations", "incident-reports"}[i%5], i)
		skills[i] = skill.Skill{Name: name, Body: "Text.", Description: "How we do " + name + ". " + strings.Repeat("Use it when a task is about that. ", 4+i%6)}
	}
	return catalogOf(t, skills...)
}

// windowed is a scripted model with a context window. Zero means an unknown window.
func windowed(window int, steps ...scripted.Step) *scripted.Model {
	return scripted.New(steps, &scripted.Options{Name: fmt.Sprint("test/window-", window), Window: window})
}

// listed returns the list in the description of read_skill.
func listed(t *testing.T, request *belay.Request) string {
	t.Helper()
	text, ok := declared(request, skill.ReadTool)
	_, text, found := strings.Cut(text, "<available_skills>")
	if text, _, _ = strings.Cut(text, "</available_skills>"); !ok || !found {
		t.Fatal("there is no list of skills")
	}
	return "<available_skills>" + text + "</available_skills>"
}

// The list of skills takes 2 % of the context window, but at least 2,000 tokens.
//
// SPEC K-16
func TestTheListOfSkillsGrowsWithTheWindow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		skills, window, budget int
		most                   int // Options.Budget; 0 for the default
		named, described       int // the minimum numbers
		all                    bool
	}{
		{skills: 181, window: 0, budget: 2000, named: 181, described: 1},
		{skills: 181, window: 32_000, budget: 2000, named: 181, described: 1},
		{skills: 181, window: 200_000, budget: 4000, named: 181, described: 30},
		{skills: 181, window: 1_000_000, budget: 20_000, named: 181, described: 181, all: true},
		{skills: 419, window: 0, budget: 2000, named: 180},
		{skills: 419, window: 200_000, budget: 4000, named: 380},
		{skills: 419, window: 1_000_000, budget: 20_000, named: 419, described: 200},
		{skills: 419, window: 1_000_000, most: 1000, budget: 1000, named: 90},
		{skills: 419, window: 0, most: 50_000, budget: 50_000, named: 419, described: 419, all: true},
	} {
		t.Run(fmt.Sprintf("%d skills, window %d, option %d", test.skills, test.window, test.most), func(t *testing.T) {
			t.Parallel()
			e := extensionOf(t, collection(t, test.skills), &skill.Options{Budget: test.most})
			turn := belaytest.New(t, windowed(test.window, belaytest.Says("done")), &belay.Options{Extensions: []belay.Extension{e}}).Say("go")
			list := listed(t, &turn.Requests[0])
			named, described, size := strings.Count(list, "<skill "), strings.Count(list, "</skill>"), utf8.RuneCountInString(list)
			t.Logf("%d of %d named, %d described, %d characters", named, test.skills, described, size)
			if named < test.named || described < test.described {
				t.Errorf("want %d named and %d described at least", test.named, test.described)
			}
			if size > 4*test.budget {
				t.Errorf("want %d characters at most", 4*test.budget)
			}
			if _, told := leftOut(&turn.Turn, skill.ReadTool); told == test.all {
				t.Errorf("the user is informed: %v, want %v", told, !test.all)
			}
		})
	}
}

// leftOut returns the diagnostic that the list of a tool is incomplete.
func leftOut(end *belay.Turn, tool string) (string, bool) {
	for _, d := range end.Diagnostics {
		if d.Code == codes.ListingTruncated && d.Subscription == tool {
			return d.Message, true
		}
	}
	return "", false
}

// The user gets the message about an incomplete list once, not once per turn or session.
//
// SPEC K-16
func TestTheUserIsInformedOnceThatTheListIsShort(t *testing.T) {
	t.Parallel()
	e := extensionOf(t, collection(t, 181), nil)
	agent, err := belay.New(windowed(0, belaytest.Says("1"), belaytest.Says("2"), belaytest.Says("3"), belaytest.Says("4")), &belay.Options{Extensions: []belay.Extension{e}})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, session := range []string{"a", "a", "b"} {
		end, err := agent.Session(session).Turn(t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		if message, ok := leftOut(end, skill.ReadTool); ok {
			told = append(told, message)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], "of 181 skills without a description: the list may have at most 2000 tokens. To change this, set limits.listing_tokens") {
		t.Errorf("the user is told %q, want it once", told)
	}
	small, err := belay.New(windowed(0, belaytest.Says("1")), &belay.Options{Extensions: []belay.Extension{extensionOf(t, collection(t, 3), nil)}})
	if err != nil {
		t.Fatal(err)
	}
	if end, err := small.Session("s").Turn(t.Context(), "go"); err != nil || len(end.Diagnostics) > 0 {
		t.Errorf("a list that is complete: %v, %v", end, err)
	}
}

// The budget depends on the window of the model that answers, not of the agent's own
// model.
//
// SPEC K-16
func TestTheListFollowsTheModelOfTheSession(t *testing.T) {
	t.Parallel()
	own, large := windowed(0, belaytest.Says("1"), belaytest.Says("2")), windowed(1_000_000, belaytest.Says("1"))
	agent, err := belay.New(own, &belay.Options{Extensions: []belay.Extension{extensionOf(t, collection(t, 181), nil)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Session("large").SetModel(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"own", "large", "own"} {
		if _, err := agent.Session(session).Turn(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
	}
	for i, request := range own.Requests() {
		if n := utf8.RuneCountInString(listed(t, &request)); n > 8000 {
			t.Errorf("request %d of the agent's model has a list of %d characters, want 8,000 at most", i+1, n)
		}
	}
	if n := strings.Count(listed(t, &large.Requests()[0]), "</skill>"); n != 181 {
		t.Errorf("the model with the large window sees %d descriptions, want 181", n)
	}
}
