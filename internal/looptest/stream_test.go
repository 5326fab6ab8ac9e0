package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// tapModel counts the chunks that its consumer takes.
type tapModel struct {
	belay.Model

	chunks int
}

func (m *tapModel) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		for chunk, err := range m.Model.Stream(ctx, req) {
			m.chunks++
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// SPEC L-03: an event that is not read blocks the turn.
func TestStreamSetsThePace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := &tapModel{Model: wordy()}
		next, stop := iter.Pull2(agentOf(t, model, nil).Session("s").Run(t.Context(), "hello"))
		defer stop()
		taken := 0
		for {
			event, err, ok := next()
			if !ok {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if event.Kind == belay.EventTextDelta {
				taken++
			}
			if model.chunks > taken+1 {
				t.Fatalf("%d deltas were read, and the model has been asked for %d", taken, model.chunks)
			}
		}
		if taken != 10 {
			t.Errorf("%d deltas came", taken)
		}
	})
}

// SPEC L-03: if the caller leaves the loop over the stream, at any event, the turn is
// aborted, its end phases fire once, and the session can continue.
func TestStreamIsLeft(t *testing.T) {
	t.Parallel()
	for at := 1; ; at++ {
		if !leaveAt(t, at) {
			if at < 10 {
				t.Errorf("the stream has %d events", at)
			}
			return
		}
	}
}

// leaveAt leaves a stream at event number at. It reports false if the stream has fewer
// events.
func leaveAt(t *testing.T, at int) bool {
	t.Helper()
	left := false
	synctest.Test(t, func(t *testing.T) {
		var d logbook
		model := scriptOf(scripted.Step{Text: "a b", Calls: []scripted.Call{{Tool: "echo"}, {Tool: "echo"}}, Pace: scripted.Pace{Chunk: 1}}, says("one"), says("two"), says("three"))
		s := agentOf(t, model, &belay.Options{Tools: []belay.Tool{echoTool("echo")}, Hooks: []hook.Subscription{
			belay.TurnPostTurn.On("end", func(ctx context.Context, e belay.TurnEnded) (belay.Note, error) {
				d.notef("%s", e.Reason())
				return belay.Note{}, ctx.Err()
			}, nil),
		}}).Session("s")
		n := 0
		for range s.Run(t.Context(), "a") {
			if n++; n == at {
				left = true
				break
			}
		}
		ends := d.all()
		say(t, s, "b") // runs at once, because the first turn is over
		if len(ends) != 1 || left && ends[0] != "aborted" && ends[0] != "end_turn" {
			t.Errorf("left at event %d, turn.post_turn saw %q", at, ends)
		}
		storedResults(t, s)
		wantAnswered(t, model.Requests())
	})
	return left
}

// SPEC L-03: the end phases of an abandoned stream have a time limit.
func TestEndPhasesOfALeftStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reason belay.EndReason
		deaf := make(chan struct{})
		tool := anyTool("deaf", func(context.Context, *belay.Invocation) (belay.Result, error) {
			<-deaf // the tool ignores its context
			return belay.Result{}, nil
		}, nil)
		defer close(deaf)
		s := agentOf(t, scriptOf(calls("deaf")), &belay.Options{
			Tools: []belay.Tool{tool},
			Hooks: []hook.Subscription{belay.TurnPostTurn.On("end", func(ctx context.Context, e belay.TurnEnded) (belay.Note, error) {
				reason = e.Reason()
				<-ctx.Done()
				return belay.Note{}, ctx.Err()
			}, nil)},
			Limits: belay.Limits{Grace: 2 * time.Second, End: 3 * time.Second},
		}).Session("s")
		start := time.Now()
		for event := range s.Run(t.Context(), "a") {
			if event.Kind == belay.EventToolUse {
				synctest.Wait()
				break
			}
		}
		if took := time.Since(start); took != 5*time.Second || reason != belay.EndAborted {
			t.Errorf("it took %s to end %s", took, reason)
		}
		if class := onlyResult(t, s).Class; class != belay.ClassAborted {
			t.Errorf("the call's result is of class %s", class)
		}
	})
}

// SPEC L-03: if a turn is aborted, turn_end is its last event, and the error comes after
// it.
func TestStreamEndsWithTurnEnd(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	hang := scripted.Step{Compute: func(context.Context, *belay.Request) (scripted.Step, error) {
		cancel(cause)
		return scripted.Step{Fault: &scripted.Fault{Hang: true}}, nil
	}}
	s := agentOf(t, scriptOf(hang), nil).Session("s")
	var kinds []belay.EventKind
	var failure error
	for event, err := range s.Run(ctx, "a") {
		if failure != nil {
			t.Error("something follows on the error")
		}
		if failure = err; err == nil {
			kinds = append(kinds, event.Kind)
		}
	}
	if last(t, kinds) != belay.EventTurnEnd || !errors.Is(failure, cause) {
		t.Errorf("the events are %v, the error is %v", kinds, failure)
	}
	turn, err := belay.Await(s.Run(t.Context(), "b"))
	if err == nil || turn == nil || turn.Reason != belay.EndError {
		t.Errorf("Await returns %+v: %v", turn, err) // the script has no more steps, so an error is expected
	}
}

// SPEC L-08: a turn with tool calls, an approval, a compaction and a retry emits its events
// in this order.
func TestEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		visible := &hook.Options{Visibility: hook.VisibleToUser}
		model := scripted.New([]scripted.Step{
			{Thinking: "hm", Text: "let me", Calls: []scripted.Call{{Tool: "echo"}, {Tool: "asked"}, {Tool: "denied"}}, Usage: belay.Usage{In: 900}},
			says("gist"),
			{Fault: &scripted.Fault{Kind: belay.ModelServer}},
			says("done"),
		}, nil)
		s := agentOf(t, model, &belay.Options{
			Store: memstore.New(nil), Tools: []belay.Tool{echoTool("echo"), echoTool("asked"), echoTool("denied")},
			Compaction: belay.Compaction{Window: 1000},
			Approver: approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
				return belay.Decision{Allow: true, By: "ann"}, nil
			}),
			Hooks: []hook.Subscription{belay.ToolPre.On("gate", func(_ context.Context, c belay.ToolCall) (belay.ToolVerdict, error) {
				switch c.Tool() {
				case "asked":
					return belay.Ask("sure?"), nil
				case "denied":
					return belay.Deny("no"), nil
				}
				return belay.Pass, nil
			}, visible), belay.ToolPost.On("quiet", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
				return belay.ToolReaction{}, nil
			}, nil)},
		}).Session("s")
		all := takeTurn(t, s.Run(t.Context(), "a"), belay.EndTurn)
		wantEqual(t, "the order of events", kindsOf(all.events), []belay.EventKind{
			"turn_start", "thinking_delta", "text_delta", "hook_run", "model_response", "token_consumption", "tool_use", "tool_use_result",
			"approval_requested", "approval_decided", "tool_use_result", "compaction_start", "compaction_end", "error", "text_delta",
			"model_response", "token_consumption", "turn_end",
		})
		for i, e := range all.events {
			if e.Seq != uint64(i+1) || e.Session != "s" || e.Turn != all.ID || e.Agent != "main" || e.Time.IsZero() {
				t.Errorf("event %d is %+v", i+1, e)
			}
		}
		responses := all.of(belay.EventModelResponse)
		if m := responses[0].Message; m == nil || m.Seq != 2 || m.Step != 1 || len(m.Calls()) != 3 {
			t.Errorf("the first response is %+v", m)
		}
		results := map[string]belay.ResultClass{}
		for _, e := range all.of(belay.EventToolUseResult) {
			results[e.Call.Tool] = e.Result.Class
		}
		wantEqual(t, "the results", results, map[string]belay.ResultClass{"echo": "", "asked": "", "denied": belay.ClassDenied})
		if e := all.of(belay.EventApprovalDecided)[0]; e.Approval == nil || e.Approval.Decided == nil || e.Call.Tool != "asked" {
			t.Errorf("the decision is %+v", e)
		}
		runs := all.of(belay.EventHookRun)
		for _, e := range runs {
			if e.HookRun == nil || e.HookRun.Subscription != "gate" {
				t.Errorf("a run is %+v", e)
			}
		}
		if len(runs) != 3 {
			t.Errorf("there are events for %d runs, want the three runs of the visible gate", len(runs))
		}
		if e := all.of(belay.EventCompactionEnd)[0]; e.Message == nil || !e.Message.IsCompaction || e.Text != "window" {
			t.Errorf("the end of the compaction is %+v", e)
		}
	})
}

// SPEC L-08: the names of event kinds and the JSON form of an event are fixed.
func TestEventWire(t *testing.T) {
	t.Parallel()
	kinds := map[belay.EventKind]string{
		belay.EventTextDelta: "text_delta", belay.EventThinkingDelta: "thinking_delta", belay.EventToolUse: "tool_use",
		belay.EventToolUseResult: "tool_use_result", belay.EventModelResponse: "model_response", belay.EventCompactionStart: "compaction_start",
		belay.EventCompactionEnd: "compaction_end", belay.EventTokenConsumption: "token_consumption", belay.EventHookInvoked: "hook_invoked",
		belay.EventSkillInvoked: "skill_invoked", belay.EventSubagentInvoked: "subagent_invoked", belay.EventSubagentCompleted: "subagent_completed",
		belay.EventApprovalRequested: "approval_requested", belay.EventApprovalDecided: "approval_decided", belay.EventHookRun: "hook_run",
		belay.EventTurnStart: "turn_start", belay.EventTurnEnd: "turn_end", belay.EventError: "error",
		belay.EventHookOutput: "hook_output", belay.EventTurnContinued: "turn_continued",
	}
	if len(kinds) != 20 {
		t.Errorf("there are %d kinds", len(kinds))
	}
	for kind, name := range kinds {
		if string(kind) != name {
			t.Errorf("%s is called %s", name, kind)
		}
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	data, err := json.Marshal(belay.Event{
		Seq: 7, Kind: belay.EventToolUseResult, Time: at, Session: "s", Turn: "t", Step: 2, Agent: "main", Run: "r", Parent: "p", Depth: 1, Text: "x",
		Call:    &belay.CallPart{ID: "c", Tool: "echo", Input: json.RawMessage(`{}`), Final: json.RawMessage(`{"n":1}`), RewrittenBy: []string{"h"}},
		Result:  &belay.Result{Text: "no", IsError: true, Class: belay.ClassDenied, Render: json.RawMessage(`1`), Spilled: "f", Final: true},
		Message: &belay.Message{Seq: 1, Turn: "t", Role: belay.RoleUser, Kind: belay.KindCompaction, Parts: []belay.Part{belay.Text("x")}, Time: at, IsCompaction: true, Keep: 4},
		Usage:   &belay.Usage{In: 1, Out: 2, CacheRead: 3, CacheWrite: 4, Cost: 0.5},
		Retry:   true,
		End:     &belay.Turn{ID: "t", Reason: belay.EndMaxSteps, Text: "x", Steps: 2, By: "b", Why: "w"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"seq":7,"type":"tool_use_result","time":"2026-01-02T03:04:05Z","session":"s","turn":"t","step":2,"agent":"main","run":"r","parent":"p","depth":1,"text":"x",` +
		`"call":{"id":"c","tool":"echo","input":{},"final":{"n":1},"rewritten_by":["h"]},` +
		`"result":{"text":"no","is_error":true,"class":"denied","render":1,"spilled":"f","final":true},` +
		`"message":{"seq":1,"turn":"t","role":"user","kind":"compaction","parts":[{"type":"text","text":"x"}],"time":"2026-01-02T03:04:05Z","is_compaction":true,"keep":4},` +
		`"usage":{"in":1,"out":2,"cache_read":3,"cache_write":4,"cost":0.5},"retry":true,` +
		`"end":{"id":"t","reason":"max_steps","text":"x","steps":2,"usage":{"in":0,"out":0},"by":"b","why":"w"}}`
	if string(data) != want {
		t.Errorf("the event is\n%s\nnot\n%s", data, want)
	}
}
