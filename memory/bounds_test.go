package memory_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/provider/scripted"
)

// Facts are extracted from a turn that has an answer or reached a limit. They are not
// extracted from a turn that was aborted, refused or blocked, or that is parked.
//
// SPEC E-08
func TestExtractionOfTurnsThatEndedWell(t *testing.T) {
	t.Parallel()
	reading := func(n int) scripted.Step {
		return scripted.Step{Calls: []scripted.Call{{Tool: "page", Input: fmt.Sprintf(`{"n": %d}`, n)}}, Usage: belay.Usage{In: 60, Out: 40}}
	}
	gate := func(verdict belay.ToolVerdict) belay.Options {
		return belay.Options{OnAsk: belay.AskPark, Hooks: []hook.Subscription{belay.ToolPre.On("gate", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return verdict, nil }, nil)}}
	}
	for _, test := range []struct {
		reason  belay.EndReason
		agent   belay.Options
		steps   []scripted.Step
		through bool
	}{
		{belay.EndTurn, belay.Options{}, []scripted.Step{{Text: "Good."}}, true},
		{belay.EndMaxSteps, belay.Options{Limits: belay.Limits{Steps: 1}}, []scripted.Step{reading(1)}, true},
		{belay.EndBudget, belay.Options{Budget: belay.Budget{TurnTokens: 100}}, []scripted.Step{reading(1)}, true},
		{belay.EndStuck, belay.Options{}, []scripted.Step{reading(1), reading(1), reading(1), reading(1)}, true},
		{belay.EndRefused, belay.Options{}, []scripted.Step{{Text: "No.", Stop: belay.StopRefusal}}, false},
		{belay.EndBlocked, gate(belay.Halt("not here")), []scripted.Step{reading(1)}, false},
		{belay.EndParked, gate(belay.Ask("may it?")), []scripted.Step{reading(1)}, false},
		{belay.EndError, belay.Options{}, []scripted.Step{{Fault: &scripted.Fault{Kind: belay.ModelAuth}}}, false},
		{belay.EndAborted, belay.Options{}, []scripted.Step{{Calls: []scripted.Call{{Tool: "abort"}}}}, false},
	} {
		t.Run(string(test.reason), func(t *testing.T) {
			t.Parallel()
			memories, sessions := newStore(t), newSessions(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			test.agent.Tools = []belay.Tool{
				belay.NewTool("page", "Reads a page.", func(context.Context, struct {
					N int `json:"n"`
				},
				) (string, error) {
					return "It is blank.", nil
				}, nil),
				belay.NewTool("abort", "Ends it all.", func(context.Context, struct{}) (string, error) {
					cancel()
					return "", nil
				}, nil),
			}
			agent := newAgent(t, memories, sessions, memory.Options{}, test.agent, test.steps...)
			reason := belay.EndReason("")
			for event := range agent.Session("one").Run(ctx, "I prefer green tea.") { // the turn may end with an error
				if event.End != nil {
					reason = event.End.Reason
				}
			}
			if reason != test.reason {
				t.Fatalf("the turn ended %s, want %s", reason, test.reason)
			}
			if test.through {
				work(t, agent.Agent, sessions, 1)
			}
			if !idle(t, sessions) {
				t.Error("there is a job left")
			}
			if got := len(texts(t, memories)) > 0; got != test.through {
				t.Errorf("remembered: %q, want something: %t", texts(t, memories), test.through)
			}
		})
	}
}

type planned []string

func (p planned) Plan(context.Context, belay.TurnSoFar) (belay.PreflightPlan, error) {
	return belay.PreflightPlan{Queries: p}, nil
}

// recalled returns the text that one subscription added to a turn's context.
func recalled(turn *belaytest.Turn, id string) string {
	for _, m := range turn.Messages {
		for _, p := range m.Parts {
			if m.Kind == belay.KindContext && strings.Contains(p.Text, `id="`+id+`"`) {
				return p.Text
			}
		}
	}
	return ""
}

// If a plan has more than four queries, only the first four are used.
//
// SPEC E-08
func TestPlansAreBounded(t *testing.T) {
	t.Parallel()
	memories := newStore(t)
	var plan planned
	for i := range 9 {
		plan = append(plan, fmt.Sprintf("thing%d", i))
		add(t, memories, memory.Draft{Text: fmt.Sprintf("It is about thing%d.", i)})
	}
	agent := newAgent(t, memories, newSessions(t), memory.Options{Recall: 20}, belay.Options{Planner: plan}, scripted.Step{Text: "Good."})
	got := recalled(says(t, agent, "one", "Hello there."), "memory.active")
	for i, query := range plan {
		if strings.Contains(got, query) != (i < 4) {
			t.Errorf("recalled\n%s\nwant of the nine that were planned the first four", got)
			break
		}
	}
}

// Each recall adds at most its limit of characters.
//
// SPEC E-08
func TestRecallIsBounded(t *testing.T) {
	t.Parallel()
	memories := newStore(t)
	for i := range 6 {
		add(t, memories, memory.Draft{Text: fmt.Sprintf("The zebra number %d is in the zoo, and the lion is not.", i)})
	}
	for _, test := range []struct{ room, most int }{{0, 6}, {300, 2}, {150, 1}, {20, 0}} {
		agent := newAgent(t, memories, newSessions(t), memory.Options{RecallCharacters: test.room}, belay.Options{Planner: planned{"lion"}}, scripted.Step{Text: "Good."})
		turn := says(t, agent, "one", "Where is the zebra?")
		for _, id := range []string{"memory.recall", "memory.active"} {
			lines := slices.DeleteFunc(strings.Split(recalled(turn, id), "\n"), func(line string) bool { return !strings.HasPrefix(line, "<memory ") })
			if id == "memory.recall" && len(lines) != test.most {
				t.Errorf("in %d characters %s adds %d memories, want %d", test.room, id, len(lines), test.most)
			}
			if size := utf8.RuneCountInString(strings.Join(lines, "\n")); test.room > 0 && size > test.room {
				t.Errorf("%s adds %d characters, want at most %d", id, size, test.room)
			}
		}
	}
}

// With Options.Propose, the prompt tells the model that new notes wait for acceptance.
//
// SPEC E-08
func TestContractTellsOfProposals(t *testing.T) {
	t.Parallel()
	for _, propose := range []bool{true, false} {
		agent := newAgent(t, newStore(t), newSessions(t), memory.Options{Propose: propose}, belay.Options{}, scripted.Step{Text: "Good."})
		if system := says(t, agent, "one", "Hello.").Requests[0].System; strings.Contains(system, "not used until the user accepts it") != propose {
			t.Errorf("with Propose %t the prompt is\n%s", propose, system)
		}
	}
}

// An empty list of scopes or states selects nothing. A nil list selects all.
func TestEmptyListsAreNone(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	add(t, s, memory.Draft{Text: "The zebra is Ann's.", Scope: memory.Scope{Kind: memory.User, Name: "ann"}})
	for _, test := range []struct {
		rule   string
		filter memory.Filter
		want   int
	}{
		{"no lists", memory.Filter{}, 1},
		{"a list without scopes", memory.Filter{Scopes: []memory.Scope{}}, 0},
		{"a list without states", memory.Filter{States: []memory.State{}}, 0},
		{"a list of its scope", memory.Filter{Scopes: []memory.Scope{{Kind: memory.Agent}, {Kind: memory.User, Name: "ann"}}}, 1},
	} {
		if got := all(t, s, test.filter); len(got) != test.want {
			t.Errorf("%s: List yields %+v, want %d", test.rule, got, test.want)
		}
		if test.filter.States != nil {
			continue
		}
		if found, err := s.Search(t.Context(), memory.Query{Text: "zebra", Scopes: test.filter.Scopes}); err != nil || len(found) != test.want {
			t.Errorf("%s: Search finds %+v, %v, want %d", test.rule, found, err, test.want)
		}
	}
}
