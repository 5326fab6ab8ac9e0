package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/policy"
)

// noon is the time of the samples. It has whole microseconds, which all databases can
// store.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// foreign is a text that wrong encodings damage. It has several scripts, characters of one
// to four bytes, combining marks and text from right to left. It also has line ends, and
// characters that JSON, HTML and SQL escape.
const foreign = "naïve Ελληνικά 日本語 العربية e\u0301 👩\u200d🚀 \"quoted\" 'single' \\back `tick` <b>&amp;</b> %s $1 ?1 \t tab\r\nline\u2028 \ufeff end"

func user(seq int64, text string) *belay.Message {
	return &belay.Message{
		Seq: seq, Turn: "turn-1", Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text(text)},
		Time: noon.Add(time.Duration(seq) * time.Second),
	}
}

// response returns a message of the model with the given calls.
func response(seq int64, ids ...string) *belay.Message {
	m := user(seq, fmt.Sprintf("response %d", seq))
	m.Role, m.Kind, m.Step = belay.RoleAssistant, belay.KindAssistant, 1
	for _, id := range ids {
		m.Parts = append(m.Parts, belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: id, Tool: "grep", Input: json.RawMessage(`{"for":"` + id + `"}`)}})
	}
	return m
}

// summary returns a compaction. It keeps the messages from number keep on, or none if keep
// is 0.
func summary(seq, keep int64) *belay.Message {
	m := user(seq, "what was said so far")
	m.Kind, m.IsCompaction, m.Keep = belay.KindCompaction, true, keep
	return m
}

// judged returns the calls of a response as they are before they run.
func judged(m *belay.Message) []belay.CallRecord {
	var calls []belay.CallRecord
	for i, c := range m.Calls() {
		calls = append(calls, belay.CallRecord{Message: m.Seq, Index: i, ID: c.ID, Tool: c.Tool, State: belay.CallJudged, Input: c.Input})
	}
	return calls
}

// fullResult returns a result with every field set.
func fullResult() belay.Result {
	return belay.Result{
		Text: foreign, IsError: true, Class: belay.ClassTimeout, Spilled: "out/1.txt", Final: true,
		Media:  []belay.Media{{MIME: "image/png", Name: "a.png", Data: everyByte(), URL: "https://example.com/a.png"}},
		Render: json.RawMessage(`{"diff":["+a","-b"],"<html>":null}`),
	}
}

// fullMessage returns a message with every field set and with parts of every type. Every
// field of a part is set in at least one part.
func fullMessage(seq int64) *belay.Message {
	original, result := foreign, fullResult()
	return &belay.Message{
		Seq: seq, Turn: "turn " + foreign, Step: 7, Role: belay.RoleAssistant, Kind: belay.KindAssistant, Time: noon,
		Parts: []belay.Part{
			belay.Text(foreign),
			{Type: belay.PartText, Text: "a reminder", IsReminder: true},
			{
				Type: belay.PartThinking, Text: "hm", Provider: "anthropic",
				Opaque: json.RawMessage(`{"signature":"` + strings.Repeat("A/+=", 500) + `","b":1,"a":[true,null,{"z":1.50,"y":12345678901234567890}]}`),
			},
			{Type: belay.PartMedia, Media: &belay.Media{MIME: "application/pdf", Name: foreign, Data: everyByte(), URL: "https://example.com/?a=1&b=<2>"}},
			{Type: belay.PartCall, Call: &belay.CallPart{
				ID: "call-1", Tool: "write", Input: json.RawMessage(`{"path":"b","body":"<&>","n":1e2,"empty":{},"list":[]}`),
				Malformed: `{"path":"b","bo`, Final: json.RawMessage(`{"path":"c"}`), RewrittenBy: []string{"first", "second"},
			}},
			{Type: belay.PartResult, Result: &belay.ResultPart{Call: "call-1", Tool: "write", Result: result}},
		},
		PreModifiedText: &original, Queued: "turn-1", IsSkillInjection: true, IsCompaction: true, Keep: seq,
		Model: "model-1", StopReason: belay.StopToolUse,
		Usage: &belay.Usage{In: 1, Out: 2, CacheRead: 3, CacheWrite: 4, Cost: 0.1},
	}
}

// everyByte returns every byte value once.
func everyByte() []byte {
	data := make([]byte, 256)
	for i := range data {
		data[i] = byte(i)
	}
	return data
}

// fullCall returns a call with every field set.
func fullCall(message int64, index int) belay.CallRecord {
	result := fullResult()
	return belay.CallRecord{
		Message: message, Index: index, ID: "call " + foreign, Tool: "write", State: belay.CallDone,
		Input: json.RawMessage(`{"path":"c","b":1,"a":2.0}`), Wait: "approval-1", Resumes: "child-1", Result: &result,
	}
}

// fullState returns a state with every field set.
func fullState() belay.SessionState {
	return belay.SessionState{
		Turns: 3, Last: belay.EndParked, Ending: &belay.Ending{By: "hook", Why: foreign}, Usage: belay.Usage{In: 1, Out: 2, CacheRead: 3, CacheWrite: 4, Cost: 0.25},
		Pending:    []belay.PendingReminder{{Reminder: belay.Reminder{Text: foreign, Ephemeral: true, From: "hook"}, Kind: "blocked"}},
		Reminders:  belay.ReminderSettings{Standing: foreign, HideOutput: true, HideContext: true},
		Grants:     []belay.Grant{{Approval: "approval-7", Asker: "zone-3", Floor: true, Tool: "shell", Pattern: "shell(" + foreign + ")", By: foreign, Time: noon}},
		Model:      "test/" + foreign,
		Agent:      "agent " + foreign,
		ForkedFrom: &belay.ForkPoint{Session: "origin", Seq: 12},
		Turn: &belay.TurnState{
			ID: "turn-3", Step: 2, Text: foreign, Usage: belay.Usage{In: 5, Out: 6, CacheRead: 7, CacheWrite: 8, Cost: 0.5}, Parked: true,
			Policy:   belay.SetPolicy(policy.And("test.writes").Set(true), policy.Min[int]("test.steps").Set(4)).Policy,
			Context:  []belay.ContextEntry{{ID: "fact", Text: foreign, From: "hook", Budget: 7, Data: json.RawMessage(`{"fact":1}`)}},
			Sections: []belay.PromptSection{{ID: "rules", Title: "Rules", Body: foreign, Order: 2, Budget: 100, From: []string{"hook", "other"}}},
			Waits:    []belay.ParkedCall{{Call: "call-1", Tool: "deploy", Wait: "ticket-7"}},
			Bundles: []belay.ToolBundle{{ID: "bundle", Route: "route", From: "hook", Tools: []belay.ToolDeclaration{
				{Name: "tool", Description: foreign, InputSchema: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`)},
			}}},
			Model: "test/other", Appended: []belay.Injection{{Parts: fullMessage(1).Parts, IsSkillInjection: true}},
			Continuations: 1, Warned: true, Ended: belay.EndBudget, Missed: 2, Unjudged: true, Answer: json.RawMessage(`{"type":"object"}`),
			Children: map[string]belay.Usage{"2-child": {In: 5, Out: 6, Cost: 0.25}},
		},
	}
}

// fullApproval returns a pending approval. Every field except the decision is set.
func fullApproval(session, id string) belay.Approval {
	return belay.Approval{
		ID: id, Session: session, Turn: "turn " + foreign, Call: "call-1", Tool: "write", Hash: "sha256:" + strings.Repeat("0f", 32),
		Reason: foreign, By: "zone-3", Floor: true, Asked: noon, Expires: noon.AddDate(100, 0, 0),
	}
}

// decision returns a decision that allows the call of an approval. Its scope also covers
// other calls.
func decision(a belay.Approval, by string) belay.Decision {
	return belay.Decision{
		Approval: a.ID, Hash: a.Hash, Allow: true, Scope: belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: "write(" + foreign + ")"},
		By: by, Reason: foreign, Time: noon.Add(time.Hour),
	}
}

// refusal returns a decision that denies the call of an approval.
func refusal(a belay.Approval, by string) belay.Decision {
	d := decision(a, by)
	d.Allow, d.Scope = false, belay.ApprovalScope{}
	return d
}

func sampleRun(id string, state hook.State) hook.Run {
	return hook.Run{
		ID: id, Subscription: "sample", Phase: "tool.pre", State: state, Scope: hook.Scope{Session: "a", Turn: "turn-1", Step: 1}, Started: noon,
	}
}

// sampleJob returns a job with an id and a key made from a name.
func sampleJob(name string) hook.Job {
	return hook.Job{
		Handler: "sample", Reference: "a/1", Key: "key:" + name, ID: name, Subscription: "sample", Phase: "turn.post_turn", Run: "run",
		Scope: hook.Scope{Session: "a", Turn: "turn-1"},
	}
}
