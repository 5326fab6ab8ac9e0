package belaytest_test

import (
	"encoding/json"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
)

func said(kind belay.MessageKind, parts ...belay.Part) *belay.Message {
	m := &belay.Message{Role: belay.RoleUser, Kind: kind, Parts: parts}
	if kind == belay.KindAssistant {
		m.Role = belay.RoleAssistant
	}
	return m
}

func calling(id, tool, input string) belay.Part {
	return belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: id, Tool: tool, Input: json.RawMessage(input)}}
}

func resulting(id, tool string) belay.Part {
	return belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: id, Tool: tool}}
}

func TestWellFormed(t *testing.T) {
	t.Parallel()
	hello := belay.Text("hello")
	reminder := belay.Part{Type: belay.PartText, Text: "<system-reminder>\nx\n</system-reminder>", IsReminder: true}
	summary := said(belay.KindCompaction, hello)
	summary.IsCompaction = true
	user := said(belay.KindUser, hello)
	two := said(belay.KindAssistant, calling("a", "read", "{}"), calling("b", "write", "{}"))
	for _, test := range []struct {
		rule     string
		messages []*belay.Message
		says     string // empty if the messages are well-formed
	}{
		{"nothing is well-formed", nil, ""},
		{"calls are answered in order", []*belay.Message{user, two, said(belay.KindResults, resulting("a", "read"), resulting("b", "write"))}, ""},
		{"a summary may come between calls and results", []*belay.Message{two, summary, said(belay.KindResults, resulting("a", "read"), resulting("b", "write"))}, ""},
		{"a reminder is marked", []*belay.Message{said(belay.KindReminder, reminder)}, ""},
		{"results in another order", []*belay.Message{two, said(belay.KindResults, resulting("b", "write"), resulting("a", "read"))}, "the message has the results of b of write, a of read, but the calls are a of read, b of write"},
		{"a result too few", []*belay.Message{two, said(belay.KindResults, resulting("a", "read"))}, "the results of a of read"},
		{"a result twice", []*belay.Message{two, said(belay.KindResults, resulting("a", "read"), resulting("b", "write"), resulting("b", "write"))}, "b of write, b of write"},
		{"a result of another tool", []*belay.Message{two, said(belay.KindResults, resulting("a", "write"), resulting("b", "write"))}, "a of write"},
		{"a result without a call", []*belay.Message{user, said(belay.KindResults, resulting("a", "read"))}, "message 2 (results): the message has the results of a of read, but the calls are none"},
		{"results twice", []*belay.Message{two, said(belay.KindResults, resulting("a", "read"), resulting("b", "write")), said(belay.KindResults, resulting("a", "read"))}, "message 3 (results): the message has the results of"},
		{"calls without results at the end", []*belay.Message{user, two}, "the calls a, b have no results"},
		{"calls without results in the middle", []*belay.Message{two, user}, "message 2 (user): want the results of a, b"},
		{"two calls of one id", []*belay.Message{said(belay.KindAssistant, calling("a", "x", "{}"), calling("a", "x", "{}")), said(belay.KindResults, resulting("a", "x"), resulting("a", "x"))}, `the id "a" of a call is empty or occurs twice`},
		{"an input that is no object", []*belay.Message{said(belay.KindAssistant, calling("a", "x", "null")), said(belay.KindResults, resulting("a", "x"))}, "the input of call a is not a JSON object"},
		{"an empty message", []*belay.Message{said(belay.KindUser)}, "it is empty"},
		{"a kind that there is not", []*belay.Message{said("gossip", hello)}, "message 1 (gossip): there is no such kind"},
		{"a role that does not fit", []*belay.Message{{Role: belay.RoleAssistant, Kind: belay.KindUser, Parts: []belay.Part{hello}}}, "its role is assistant"},
		{"a part that does not fit", []*belay.Message{said(belay.KindUser, calling("a", "x", "{}")), said(belay.KindResults, resulting("a", "x"))}, "it has a part of type tool_call"},
		{"a reminder that is not marked", []*belay.Message{said(belay.KindReminder, hello)}, "part 1 is marked as a reminder: false"},
		{"a gap in the numbers", []*belay.Message{numbered(1), numbered(2), numbered(4)}, "message 3 (user): it is numbered 4, not 3"},
		{"numbers before a summary may be left out", []*belay.Message{numbered(9), numbered(7), numbered(8), numbered(10)}, ""},
		{"what is sent and not stored has no number", []*belay.Message{numbered(1), user, numbered(2)}, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := belaytest.WellFormed(test.messages); err != nil {
				got = err.Error()
			}
			if test.says == "" {
				wantFailure(t, got)
				return
			}
			wantFailure(t, got, test.says)
		})
	}
}

func numbered(seq int64) *belay.Message {
	m := said(belay.KindUser, belay.Text("hello"))
	m.Seq = seq
	return m
}

func TestRender(t *testing.T) {
	t.Parallel()
	typed := "hi"
	user := said(belay.KindUser, belay.Text("hello\n\nthere"), belay.Image("image/png", []byte("1234")))
	user.PreModifiedText = &typed
	skill := said(belay.KindInjected, belay.Text("how to"))
	skill.IsSkillInjection = true
	half := calling("a", "read", "{}")
	half.Call.Malformed = `{"path`
	final := calling("b", "read", `{"n":1}`)
	final.Call.Final, final.Call.RewrittenBy = json.RawMessage(`{"n":2}`), []string{"one", "two"}
	failed := resulting("a", "read")
	failed.Result.Result = belay.Failed(belay.ClassInvalid, "cut")
	cut := said(belay.KindAssistant, belay.Part{Type: belay.PartThinking, Text: "hm"}, half, final)
	cut.StopReason = belay.StopMaxTokens
	got := belaytest.Render([]*belay.Message{skill, user, cut, said(belay.KindResults, failed, resulting("b", "read"))})
	const want = `injected (of a skill)
  how to
user
  typed: hi
  hello

    there
  [image/png, 4 bytes]
assistant (max_tokens)
  thinking: hm
  a: read {} (malformed: "{\"path")
  b: read {"n":1}
    rewritten by one, two: {"n":2}
results
  a: read failed (invalid): cut
  b: read:
`
	if got != want {
		t.Errorf("it reads:\n%s\nwant:\n%s", got, want)
	}
}
