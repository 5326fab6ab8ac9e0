package scripted_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// conversation returns a request with every kind of content that Expect can check.
func conversation() *belay.Request {
	reminder := &belay.Message{Role: belay.RoleUser, Kind: belay.KindReminder, Parts: []belay.Part{{Type: belay.PartText, Text: "tests are red", IsReminder: true}}}
	return &belay.Request{
		System: "You are careful.",
		Tools:  []belay.ToolDeclaration{{Name: "read"}, {Name: "write"}},
		Messages: []*belay.Message{
			user("first question"),
			assistant(belay.Text("first answer")),
			results(belay.ResultPart{Call: "call_0", Tool: "old", Result: belay.Result{Text: "stale"}}),
			user("second question"),
			assistant(belay.Text("let me see")),
			results(
				belay.ResultPart{Call: "call_1", Tool: "read", Result: belay.Result{Text: "contents of a.md"}},
				belay.ResultPart{Call: "call_2", Tool: "write", Result: belay.Result{Text: "denied: read only", IsError: true}},
			),
			reminder,
		},
	}
}

func TestExpect(t *testing.T) {
	t.Parallel()
	both := []scripted.Result{{Call: "call_1", Tool: "read", Text: "a.md"}, {Tool: "write", IsError: true}}
	for _, test := range []struct {
		rule   string
		expect scripted.Expect
		want   string // a part of the error, or "" for no error
	}{
		{"nothing expected is always met", scripted.Expect{}, ""},
		{"what is there is met", scripted.Expect{
			System: "careful", User: "second", Reminders: []string{"red"}, Results: both, Tools: []string{"write"}, NoTools: []string{"shell"},
		}, ""},
		{"the system prompt counts", scripted.Expect{System: "bold"}, `the system prompt does not contain "bold": it is "You are careful."`},
		{"only the newest message of the user counts", scripted.Expect{User: "first"}, `does not contain "first": it is "second question"`},
		{"what is no reminder does not count as one", scripted.Expect{Reminders: []string{"red", "careful"}}, `no reminder contains "careful"`},
		{"all results are listed", scripted.Expect{Results: both[:1]}, "the number of results is 2, and the step expects 1"},
		{"an empty list expects no results", scripted.Expect{Results: []scripted.Result{}}, "the number of results is 2, and the step expects 0"},
		{"a result has its text", scripted.Expect{Results: []scripted.Result{{Text: "b.md"}, both[1]}}, `result 1 does not contain "b.md": it is "contents of a.md"`},
		{"a result has its call", scripted.Expect{Results: []scripted.Result{{Call: "call_9"}, both[1]}}, `result 1 belongs to call "call_1", not to "call_9"`},
		{"a result has its tool", scripted.Expect{Results: []scripted.Result{both[0], {Tool: "edit", IsError: true}}}, `result 2 belongs to tool "write", not to "edit"`},
		{"a result must not fail unless said", scripted.Expect{Results: []scripted.Result{both[0], {}}}, `result 2 must not be an error: "denied: read only"`},
		{"a result must fail if said", scripted.Expect{Results: []scripted.Result{{IsError: true}, both[1]}}, "result 1 must be an error"},
		{"a tool must be advertised", scripted.Expect{Tools: []string{"read", "shell"}}, `the request does not have the tool "shell": its tools are read, write`},
		{"a tool must not be advertised", scripted.Expect{NoTools: []string{"read"}}, `the request must not have the tool "read"`},
		{"all differences are told", scripted.Expect{System: "bold", User: "third"}, `"You are careful."; the user's newest message`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			model := scripted.New([]scripted.Step{{Text: "ok", Expect: &test.expect}}, nil)
			if test.want == "" {
				answer(t, model, conversation())
				return
			}
			fails(t, model, conversation(), belay.ModelInvalid, "step 1: the request is not as expected: ", test.want)
			if model.Left() != 1 {
				t.Error("a request that differs has used up the step")
			}
		})
	}
}

func TestExpectQuotesNoWholeBook(t *testing.T) {
	t.Parallel()
	model := scripted.New([]scripted.Step{{Expect: &scripted.Expect{User: "x"}}}, nil)
	e := fails(t, model, ask(user(strings.Repeat("ä", 1000))), belay.ModelInvalid, `"...`)
	if got := strings.Count(e.Error(), "ä"); got != 80 {
		t.Errorf("the error quotes %d characters, want 80", got)
	}
}

func TestExpectOfAnEmptyRequest(t *testing.T) {
	t.Parallel()
	model := scripted.New([]scripted.Step{{Expect: &scripted.Expect{User: "hi", Tools: []string{"read"}, Results: []scripted.Result{{}}}}}, nil)
	fails(t, model, ask(), belay.ModelInvalid, `does not contain "hi": it is ""`, "its tools are none", "the number of results is 0, and the step expects 1")
}
