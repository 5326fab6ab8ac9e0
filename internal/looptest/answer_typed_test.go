package looptest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

type city struct {
	Name   string   `json:"name"`
	People int      `json:"people" jsonschema:"how many live there"`
	Rivers []string `json:"rivers,omitempty"`
}

// SPEC L-10: Answer returns a value of the requested type, even if the model first answers
// with a text or with an invalid value.
func TestAnswer(t *testing.T) {
	t.Parallel()
	const good = `{"name":"Bern","people":134000,"rivers":["Aare"]}`
	bern := city{"Bern", 134000, []string{"Aare"}}
	tests := map[string]struct {
		steps []scripted.Step
		told  string // the reminder before the last request
	}{
		"at once":                     {[]scripted.Step{callWith("final_answer", good)}, ""},
		"behind other calls":          {[]scripted.Step{calls("echo"), callWith("final_answer", good)}, ""},
		"a text first":                {[]scripted.Step{says("It is Bern."), callWith("final_answer", good)}, "by calling the tool final_answer"},
		"something invalid first":     {[]scripted.Step{callWith("final_answer", `{"name":"Bern","people":"many"}`), callWith("final_answer", good)}, "/people"},
		"something incomplete first":  {[]scripted.Step{callWith("final_answer", `{"name":"Bern"}`), callWith("final_answer", good)}, "people"},
		"something unknown first":     {[]scripted.Step{callWith("final_answer", `{"name":"Bern","people":1,"x":1}`), callWith("final_answer", good)}, "x"},
		"something that is no object": {[]scripted.Step{callWith("final_answer", `["Bern"]`), callWith("final_answer", good)}, "not a JSON object"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := scriptOf(append(test.steps, says("done"))...)
			s := agentOf(t, model, &belay.Options{Tools: []belay.Tool{echoTool("echo")}}).Session("s")
			got, turn, err := belay.Answer[city](t.Context(), s, "Which city?")
			if err != nil || turn.Reason != belay.EndTurn {
				t.Fatalf("the turn ended %+v: %v", turn, err)
			}
			wantEqual(t, "the answer", got, bern)
			if text := strings.Join(outline(seen(t, model)), "\n"); !strings.Contains(text, test.told) {
				t.Errorf("the model got\n%s", text)
			}
			if model.Left() != 1 {
				t.Error("the answer did not end the turn")
			}
			say(t, s, "thanks")
			for _, d := range last(t, model.Requests()).Tools {
				if d.Name == "final_answer" {
					t.Error("the tool is there in the next turn")
				}
			}
			wantAnswered(t, model.Requests())
		})
	}
}

// SPEC L-10.
func TestAnswerOfOtherTypes(t *testing.T) {
	t.Parallel()
	session := func(input string) *belay.Session {
		return agentOf(t, scriptOf(callWith("final_answer", input)), nil).Session("s")
	}
	if got, _, err := belay.Answer[string](t.Context(), session(`{"answer":"yes"}`), "a"); err != nil || got != "yes" {
		t.Errorf("a string: %q, %v", got, err)
	}
	if got, _, err := belay.Answer[[]int](t.Context(), session(`{"answer":[1,2]}`), "a"); err != nil || len(got) != 2 || got[1] != 2 {
		t.Errorf("a slice: %v, %v", got, err)
	}
	if got, _, err := belay.Answer[bool](t.Context(), session(`{"answer":true}`), "a"); err != nil || !got {
		t.Errorf("a bool: %v, %v", got, err)
	}
	if got, _, err := belay.Answer[map[string]city](t.Context(), session(`{"answer":{"x":{"name":"Bern","people":1}}}`), "a"); err != nil || got["x"].Name != "Bern" {
		t.Errorf("a map: %v, %v", got, err)
	}
	if _, _, err := belay.Answer[chan int](t.Context(), session(`{}`), "a"); err == nil || errors.Is(err, belay.ErrNoAnswer) {
		t.Errorf("a channel: %v", err)
	}
}

// SPEC L-10: the model can call final_answer even if the agent's scope allows no tool.
func TestAnswerIsInAnyScope(t *testing.T) {
	t.Parallel()
	model := scriptOf(calls("echo"), callWith("final_answer", `{"answer":"yes"}`))
	s := agentOf(t, model, &belay.Options{Tools: []belay.Tool{echoTool("echo")}, Scope: []string{}}).Session("s")
	if got, _, err := belay.Answer[string](t.Context(), s, "a"); err != nil || got != "yes" {
		t.Errorf("the answer is %q: %v", got, err)
	}
	wantEqual(t, "the tools in the requests", declared(model), []string{"final_answer", "final_answer"})
	if r := storedResults(t, s)[0]; r.Class != belay.ClassScope {
		t.Errorf("a call out of scope gives %+v", r)
	}
}

// SPEC L-10.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		step   scripted.Step
		reason belay.EndReason
		most   int
	}{
		"a model that only talks":  {says("It is Bern."), belay.EndTurn, 4},
		"a model that refuses":     {scripted.Step{Text: "no", Stop: belay.StopRefusal}, belay.EndRefused, 1},
		"a model that goes astray": {callWith("final_answer", `{"name":1}`), belay.EndStuck, 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := scripted.New([]scripted.Step{test.step}, &scripted.Options{Repeat: true, Pace: atOnce})
			got, turn, err := belay.Answer[city](t.Context(), agentOf(t, model, nil).Session("s"), "Which city?")
			if !errors.Is(err, belay.ErrNoAnswer) || turn == nil || turn.Reason != test.reason || got.Name != "" {
				t.Errorf("it answered %+v, the turn is %+v: %v", got, turn, err)
			}
			if n := len(model.Requests()); n > test.most {
				t.Errorf("the model was asked %d times", n)
			}
		})
	}
}

// SPEC L-10: if one message has several answers, the last one in call order is used.
func TestSeveralAnswers(t *testing.T) {
	t.Parallel()
	for range 20 {
		model := scriptOf(scripted.Step{Calls: []scripted.Call{
			{Tool: "final_answer", Input: `{"answer":1}`}, {Tool: "final_answer", Input: `{"answer":2}`}, {Tool: "final_answer", Input: `{"answer":3}`},
		}})
		if got, _, err := belay.Answer[int](t.Context(), agentOf(t, model, nil).Session("s"), "a"); err != nil || got != 3 {
			t.Errorf("the answer is %d: %v", got, err)
		}
	}
}

// If a directive or a hook replies instead of the model, the error of Answer says who replied
// and what. A reply that is a valid answer counts.
//
// SPEC L-10, D-04
func TestAnswerWithAReplyInPlaceOfTheModel(t *testing.T) {
	t.Parallel()
	replies := func(text string) belay.Directive {
		return directive("faq", func(*belay.DirectiveUse) (belay.DirectiveOutcome, error) {
			return belay.DirectiveOutcome{Reply: &belay.Reply{Text: text}}, nil
		})
	}
	faq := belay.UserPromptSubmit.On("faq", func(_ context.Context, in belay.UserPrompt) (belay.PromptVerdict, error) {
		if in.Text() == "hook" {
			return belay.AnswerPrompt("see the FAQ"), nil
		}
		return belay.PromptVerdict{}, nil
	}, &hook.Options{Capabilities: hook.CanAnswer})
	for rule, test := range map[string]struct {
		reply, typed string
		want         []string // of the error; none if there is an answer
	}{
		"a directive replies":                               {"Bern is nice.", "/faq", []string{"/faq replied instead of the model", `"Bern is nice."`, "Turn.Text"}},
		"a directive replies at great length":               {strings.Repeat("long ", 1000), "/faq", []string{"/faq replied instead of the model", `…"`}},
		"a directive replies with JSON that does not match": {`{"name":"Bern"}`, "/faq", []string{"/faq replied instead of the model"}},
		"a hook replies":                                    {"", "hook", []string{"user.prompt.submit replied instead of the model", `"see the FAQ"`}},
		"a directive replies with a valid answer":           {`{"name":"Bern","people":134000}`, "/faq", nil},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			agent, model := newAgent(t, &belay.Options{Directives: []belay.Directive{replies(test.reply)}, Hooks: []hook.Subscription{faq}})
			got, turn, err := belay.Answer[city](t.Context(), agent.Session("s"), test.typed)
			wantEqual(t, "the requests", len(model.Requests()), 0)
			if test.want == nil {
				if err != nil || got.Name != "Bern" {
					t.Errorf("the answer is %+v, %v", got, err)
				}
				return
			}
			if !errors.Is(err, belay.ErrNoAnswer) || turn == nil || turn.Text == "" || len(err.Error()) > 600 {
				t.Fatalf("the turn is %+v, %v", turn, err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want %q in it", err, want)
				}
			}
		})
	}
}
