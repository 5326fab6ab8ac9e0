package belaytest_test

import (
	"context"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls("final_answer", `{"city": "Paris"}`),
		belaytest.Calls("final_answer", `{"city": "Rome"}`),
	), nil)
	value, turn := belaytest.Answer[fact](agent, "Where?")
	if value.City != "Rome" {
		t.Errorf("the value is %+v, want Rome", value)
	}
	turn.Ended(belay.EndTurn)
	turn.Answered(`{ "city":"Rome" }`)
	turn.ResultFailed("final_answer", belay.ClassInvalid, `"Paris" is not one of "Rome", "Oslo"`)
	turn.Emitted(belay.EventTurnStart, belay.EventToolUse, belay.EventTurnEnd)
}

// A turn of Answer that has parked can be resumed like any other turn.
func TestAnswerParks(t *testing.T) {
	t.Parallel()
	write := belaytest.NewTool("write")
	agent := belaytest.New(t, belaytest.Script(belaytest.Calls("write", nil), belaytest.Calls("final_answer", `{"city": "Oslo"}`)), &belay.Options{
		Tools: []belay.Tool{write}, OnAsk: belay.AskPark,
		Hooks: []hook.Subscription{belay.ToolPre.On("ask", answer(belay.Ask("sure?")), &hook.Options{Match: hook.Match{Tools: []string{"write"}}})},
	})
	value, turn := belaytest.Answer[fact](agent, "Where?")
	if value != (fact{}) {
		t.Errorf("the value of a parked turn is %+v", value)
	}
	turn.Ended(belay.EndParked)
	turn.Decide(belaytest.Yes())
	agent.Resume().Answered(`{"city": "Oslo"}`)
	write.Ran(t, "{}")
}

func TestAnswerAssertionsFail(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		model belay.Model
		opts  *belay.Options
		check func(turn *belaytest.Turn)
		says  []string
	}{
		"another answer": {
			belaytest.Script(belaytest.Calls("final_answer", `{"city": "Rome"}`)), nil,
			func(turn *belaytest.Turn) { turn.Answered(`{"city": "Oslo"}`) },
			[]string{`want the answer {"city": "Oslo"}, got {"city": "Rome"}`},
		},
		"no answer": {
			belaytest.Script(belaytest.Says("I"), belaytest.Says("do"), belaytest.Says("not"), belaytest.Says("know.")), nil,
			func(turn *belaytest.Turn) { turn.Answered(`{}`) },
			[]string{"want the answer {}, but the turn ended end_turn without one"},
		},
		"a turn that cannot begin": {
			belaytest.Script(), &belay.Options{Tools: []belay.Tool{belaytest.NewTool("final_answer")}},
			func(*belaytest.Turn) {},
			[]string{"the turn failed, but the test does not call Failed", `reserved name "final_answer"`},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, failures(t, func(t testing.TB) {
				_, turn := belaytest.Answer[fact](belaytest.New(t, test.model, test.opts), "Where?")
				test.check(turn)
			}), test.says...)
		})
	}
}

func TestHasContext(t *testing.T) {
	t.Parallel()
	run := func(t testing.TB, check func(turn *belaytest.Turn)) {
		t.Helper()
		facts := belay.TurnPrePromptContext.On("facts", func(_ context.Context, turn belay.TurnSoFar) (belay.PromptContext, error) {
			if turn.Text() == "nothing" {
				return belay.PromptContext{}, nil
			}
			return belay.PromptContext{Entries: []belay.ContextEntry{{ID: "user", Text: "She lives in Rome."}, {Text: "It rains."}}}, nil
		}, nil)
		agent := belaytest.New(t, belaytest.Script(belaytest.Says("one"), belaytest.Says("two")), &belay.Options{Hooks: []hook.Subscription{facts}})
		check(agent.Say("hello"))
		agent.Say("nothing").HasContext()
	}
	run(t, func(turn *belaytest.Turn) { turn.HasContext("Rome", "rains", `id="user"`, `from="facts"`) })
	for text, check := range map[string]func(turn *belaytest.Turn){
		`want a context entry that says "Oslo", got [`: func(turn *belaytest.Turn) { turn.HasContext("Rome", "Oslo") },
		"want no context entry, got [":                 func(turn *belaytest.Turn) { turn.HasContext() },
	} {
		wantFailure(t, failures(t, func(t testing.TB) { run(t, check) }), text)
	}
}
