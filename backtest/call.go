package backtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// severity orders the decisions about a call.
var severity = map[belay.ToolDecision]hook.Severity{
	belay.ToolPass: hook.SeverityPass, belay.ToolAsk: hook.SeverityAsk, belay.ToolDeny: hook.SeverityDeny, belay.ToolHalt: hook.SeverityHalt,
}

var words = map[belay.ToolDecision]Word{
	belay.ToolPass: Allowed, belay.ToolAsk: Asked, belay.ToolDeny: Denied, belay.ToolHalt: Halted,
}

// callInput is the input of tool.pre.
type callInput struct {
	ID, Tool        string
	Input, Original json.RawMessage
}

// encode returns the input as JSON. Unlike encoding/json, it does not check and copy the
// inputs, which the transcript holds as JSON.
func (c *callInput) encode() []byte {
	data := make([]byte, 0, len(c.ID)+len(c.Tool)+len(c.Input)+len(c.Original)+64)
	data = appendName(append(data, `{"id":`...), c.ID)
	data = appendName(append(data, `,"tool":`...), c.Tool)
	data = append(append(data, `,"input":`...), c.Input...)
	if c.Original != nil {
		data = append(append(data, `,"original":`...), c.Original...)
	}
	return append(data, '}')
}

// appendName appends a text as a JSON string. Names rarely have characters to escape.
func appendName(data []byte, name string) []byte {
	special := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
	if !strings.ContainsFunc(name, special) {
		return append(append(append(data, '"'), name...), '"')
	}
	quoted, _ := json.Marshal(name) //nolint:errchkjson // a string can always be encoded
	return append(data, quoted...)
}

// replayCall asks the hooks and the floor about a call. result is nil if the call has none.
func (s *session) replayCall(ctx context.Context, m *belay.Message, call *belay.CallPart, result *belay.ResultPart) error {
	approval, inquired, err := s.approval(ctx, m.Turn, call.ID)
	if err != nil {
		return err
	}
	was, unreplayed := wasOf(call, result, approval, inquired)
	if unreplayed != "" {
		s.notReplayed[unreplayed]++
		return nil
	}
	s.calls++
	s.learnDefaults(call)
	in := callInput{ID: call.ID, Tool: call.Tool, Input: call.Input}
	if len(call.RewrittenBy) == 0 && call.Final != nil { // only defaults were added
		in.Input, in.Original = call.Final, call.Input
	}
	now, final, err := s.judge(ctx, m, &in)
	if err != nil {
		return err
	}
	note, differs := callDiffers(call, &was, &now, s.asker, s.defaults[call.Tool])
	n, notAsked := s.asker.notAsked[hookKey{belay.ToolPre.Name(), was.By}]
	switch {
	case differs && s.asker.isUnknown(&was, &now):
		s.unknown++
		differs = false
	case differs && notAsked && was.Outcome != Allowed:
		note = was.By + " was not asked: " + n.Why
	}
	if differs {
		d := s.difference(KindCall, m)
		d.Call, d.Tool, d.Input, d.Was, d.Now, d.Note = call.ID, call.Tool, call.Input, was, now, note
		s.differ(d)
	}
	if result == nil || now.refused() || !ran(&was) || inquired && result.Class == belay.ClassDenied {
		return nil
	}
	return s.replayResult(ctx, m, call, result, cmp.Or(string(final), "{}"))
}

// judge returns what the hooks and the floor answer now, and the final input.
func (s *session) judge(ctx context.Context, m *belay.Message, in *callInput) (now Outcome, final json.RawMessage, err error) {
	call, err := belay.ToolPre.DecodeInput(s.scope(m), in.encode())
	if err != nil {
		return now, nil, err
	}
	snap, err := s.snap(ctx)
	if err != nil {
		return now, nil, err
	}
	outcome, err := belay.ToolPre.Dispatch(ctx, snap, call)
	if err != nil {
		return now, nil, err
	}
	verdict := belay.Authorization{Decision: outcome.Output.Decision, Reason: outcome.Output.Reason, By: outcome.By}
	byFloor := false
	if s.asker.floor != nil {
		if floor := s.askFloor(ctx, outcome.Input); severity[floor.Decision] > severity[verdict.Decision] {
			verdict, byFloor = floor, true
		}
	}
	if ctx.Err() != nil {
		return now, nil, context.Cause(ctx)
	}
	now = Outcome{Outcome: words[verdict.Decision], By: verdict.By, Reason: verdict.Reason}
	final = outcome.Input.Input()
	if len(outcome.Rewriters) > 0 {
		now.Input, now.RewrittenBy = final, outcome.Rewriters
	}
	if now.Outcome == Asked {
		err = s.askApprovers(ctx, m, in, final, &now, byFloor)
	}
	return now, final, err
}

// askFloor asks the floor. A panic or an unknown answer denies, as in a turn.
func (s *session) askFloor(ctx context.Context, call belay.ToolCall) (a belay.Authorization) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			a = belay.Authorization{Decision: belay.ToolDeny, Reason: fmt.Sprintf("the permission check panicked: %v", p)}
		}
		a.By = cmp.Or(a.By, floorID)
		s.asker.tally.floor(severity[a.Decision], time.Since(began))
	}()
	a, err := s.asker.floor.Authorize(ctx, call)
	if err != nil {
		a = belay.Authorization{Decision: belay.ToolDeny, Reason: "the permission check failed: " + err.Error(), By: a.By}
	}
	if _, known := severity[a.Decision]; !known {
		a = belay.Authorization{Decision: belay.ToolDeny, Reason: "the floor returned an unknown decision", By: a.By}
	}
	return a
}

// askApprovers asks the hooks that may answer in place of a person.
func (s *session) askApprovers(ctx context.Context, m *belay.Message, in *callInput, final json.RawMessage, now *Outcome, byFloor bool) error {
	if !belay.ApprovalRequest.Active(s.snapshot) {
		return nil
	}
	data, err := json.Marshal(struct {
		ID     string          `json:"id"`
		Call   string          `json:"call"`
		Tool   string          `json:"tool"`
		Input  json.RawMessage `json:"input"`
		Reason string          `json:"reason"`
		By     string          `json:"by"`
		Floor  bool            `json:"floor,omitempty"`
	}{"backtest", in.ID, in.Tool, final, now.Reason, now.By, byFloor})
	if err != nil {
		return fmt.Errorf("encode the approval: %w", err)
	}
	asked, err := belay.ApprovalRequest.DecodeInput(s.scope(m), data)
	if err != nil {
		return err
	}
	outcome, err := belay.ApprovalRequest.Dispatch(ctx, s.snapshot, asked)
	if err != nil {
		return err
	}
	switch outcome.Output.Decision {
	case "":
	case "allow":
		now.Approved = outcome.By
	default:
		now.Refused = outcome.By
	}
	return nil
}

// replayResult asks the hooks of tool.post about a result.
func (s *session) replayResult(ctx context.Context, m *belay.Message, call *belay.CallPart, result *belay.ResultPart, final string) error {
	s.results++
	if !belay.ToolPost.Active(s.snapshot) {
		return nil
	}
	data, err := json.Marshal(struct {
		ID      string            `json:"id"`
		Tool    string            `json:"tool"`
		Input   json.RawMessage   `json:"input"`
		Text    string            `json:"text"`
		IsError bool              `json:"is_error,omitempty"`
		Class   belay.ResultClass `json:"class,omitempty"`
	}{call.ID, call.Tool, json.RawMessage(final), result.Text, result.IsError, result.Class})
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	in, err := belay.ToolPost.DecodeInput(s.scope(m), data)
	if err != nil {
		return err
	}
	snap, err := s.snap(ctx)
	if err != nil {
		return err
	}
	outcome, err := belay.ToolPost.Dispatch(ctx, snap, in)
	now := Outcome{Outcome: Kept, RewrittenBy: outcome.Rewriters}
	var failed *hook.FailureError
	switch {
	case asFailure(err, &failed):
		now.Reason = err.Error()
	case err != nil:
		return err
	case outcome.Output.Result == nil || *outcome.Output.Result == result.Text:
		return nil
	}
	now.Text = outcome.Output.Result
	d := s.difference(KindResult, m)
	d.Call, d.Tool, d.Input, d.Was, d.Now = call.ID, call.Tool, call.Input, Outcome{Outcome: Kept}, now
	s.differ(d)
	return nil
}
