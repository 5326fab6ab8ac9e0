package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/providertest"
)

// The service rejects a thinking budget in the middle of a turn that began without thinking.
// This happens when another provider's model began the turn.
func TestThinkingBeginsWithATurn(t *testing.T) {
	t.Parallel()
	call := func(id string) belay.Part {
		return belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: id, Tool: "look", Input: json.RawMessage(`{}`)}}
	}
	results := func(id string) *belay.Message {
		return message(belay.RoleUser, belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: id, Tool: "look", Result: belay.Result{Text: "a door"}}}, belay.Text("<system-reminder>Be polite.</system-reminder>"))
	}
	theirs := belay.Part{Type: belay.PartThinking, Text: "I must look.", Provider: "elsewhere", Opaque: json.RawMessage(`{"signature":"theirs"}`)}
	begun := []*belay.Message{user("look"), message(belay.RoleAssistant, theirs, call("c1")), results("c1")}
	server := providertest.NewAnthropic(t, nil)
	model := open(server, &anthropic.Options{Thinking: 2000})
	server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Thinking("Left."), providertest.Call("o1", "look", `{}`)}})
	own, err := answer(t, model, &belay.Request{Messages: begun[:1]})
	if err != nil {
		t.Fatal(err)
	}
	further := []*belay.Message{message(belay.RoleAssistant, call("c2")), results("c2")}
	join := func(lists ...[]*belay.Message) (all []*belay.Message) {
		for _, list := range lists {
			all = append(all, list...)
		}
		return all
	}
	mine := []*belay.Message{user("look"), message(belay.RoleAssistant, own.Parts...), results("o1")}
	for _, test := range []struct {
		rule     string
		messages []*belay.Message
		thinks   bool
	}{
		{"a turn that another model began goes on without", begun, false},
		{"for all of its steps", join(begun, further), false},
		{"the next turn thinks again", join(begun, []*belay.Message{message(belay.RoleAssistant, belay.Text("A door.")), user("and now?")}), true},
		{"a turn that began with thinking goes on with it", mine, true},
		{"although not each of its steps has some", join(mine, further), true},
		{"whatever turns before it had", join(begun, []*belay.Message{message(belay.RoleAssistant, belay.Text("A door."))}, mine), true},
	} {
		req := &belay.Request{Messages: test.messages}
		r := ask(t, server, model, req)
		var body struct {
			Thinking json.RawMessage `json:"thinking"`
		}
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		if thinks := body.Thinking != nil; thinks != test.thinks {
			t.Errorf("%s: thinking is %s", test.rule, body.Thinking)
		}
		server.Script(providertest.Reply{})
		response, err := answer(t, model, req)
		if err != nil {
			t.Fatal(err)
		}
		if told := strings.Join(response.Ignored, "; "); strings.Contains(told, "the turn began without thinking") == test.thinks {
			t.Errorf("%s: the response says that these settings were ignored: %q", test.rule, told)
		}
	}
}

// A thinking budget that does not fit into the limit on the response is not sent, and the
// response says so.
//
// SPEC L-12
func TestThinkingBudgetWithoutRoom(t *testing.T) {
	t.Parallel()
	server := providertest.NewAnthropic(t, nil)
	for _, test := range []struct {
		rule                       string
		thinking, bound, ofRequest int
		want                       string
	}{
		{"there is room", 2000, 4000, 0, ""},
		{"the budget is made smaller", 2000, 1500, 0, ""},
		{"there is no room", 2000, 1000, 0, "the response is limited to 1000 tokens: set MaxTokens to more than 1024"},
		{"the limit of the request counts", 2000, 4000, 1000, "the response is limited to 1000 tokens"},
		{"an adaptive model has no budget", anthropic.Adaptive, 1000, 0, ""},
		{"no thinking is wanted", 0, 1000, 0, ""},
	} {
		model := open(server, &anthropic.Options{Thinking: test.thinking, MaxTokens: test.bound})
		server.Script(providertest.Reply{})
		response, err := answer(t, model, &belay.Request{Messages: []*belay.Message{user("look")}, MaxTokens: test.ofRequest})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(response.Ignored, "; "); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: ignored is %q, want %q", test.rule, got, test.want)
		}
	}
}
