package acp

import (
	"context"
	"encoding/json"
	"iter"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/visible"
)

// relay runs a turn and shows its events. It returns the end of the turn.
func (s *session) relay(ctx context.Context, stream iter.Seq2[belay.Event, error]) (*belay.Turn, error) {
	var end *belay.Turn
	for event, err := range stream {
		if err != nil {
			return nil, err
		}
		s.show(context.WithoutCancel(ctx), &event)
		if event.End != nil && event.Depth == 0 {
			end = event.End
		}
	}
	if end == nil {
		return nil, errLeft
	}
	return end, nil
}

// show shows an event. The texts of subagents are not shown: their results are.
func (s *session) show(ctx context.Context, e *belay.Event) {
	switch e.Kind {
	case belay.EventTextDelta:
		if e.Depth == 0 {
			s.update(sdk.UpdateAgentMessageText(e.Text))
		}
	case belay.EventThinkingDelta:
		if e.Depth == 0 {
			s.update(sdk.UpdateAgentThoughtText(e.Text))
		}
	case belay.EventToolUse, belay.EventToolProgress, belay.EventToolUseResult, belay.EventApprovalDecided:
		s.showCall(e)
	case belay.EventModelResponse:
		if e.Message != nil {
			s.expect(ctx, e.Run, e.Message)
		}
	case belay.EventTokenConsumption:
		s.showUsage(e)
	case belay.EventCompactionStart:
		s.note("Summarizing the conversation to free space.")
	case belay.EventHookOutput, belay.EventTurnContinued:
		s.note(e.By + ": " + visible.All(e.Text))
	case belay.EventHookFailed:
		if e.Diagnostic != nil {
			s.note("The hook " + e.By + " failed: " + visible.All(e.Diagnostic.Message))
		}
	case belay.EventError:
		if e.Retry {
			s.note("The request is sent again: " + visible.All(e.Text))
		}
	default: // the other events are details that editors have no place for
	}
}

// showCall shows an event about a call.
func (s *session) showCall(e *belay.Event) {
	if e.Call == nil {
		return
	}
	if e.Call.Tool == toolTodo { // the list is shown as the plan
		if e.Kind == belay.EventToolUseResult && e.Result != nil && !e.Result.IsError && e.Depth == 0 {
			s.showPlan(e.Call)
		}
		return
	}
	id := callID(e.Run, e.Call.ID)
	switch e.Kind {
	case belay.EventToolUse:
		agent := ""
		if e.Depth > 0 {
			agent = e.Agent
		}
		s.update(sdk.SessionUpdate{ToolCall: s.startCall(e.Run, agent, e.Call)})
	case belay.EventToolProgress:
		if u := s.progress(id, e.Text); u != nil {
			s.update(sdk.SessionUpdate{ToolCallUpdate: u})
		}
	case belay.EventApprovalDecided:
		if e.Approval != nil && e.Approval.Decided != nil && e.Approval.Decided.Allow {
			s.update(sdk.UpdateToolCall(sdk.ToolCallId(id), sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress)))
		}
	case belay.EventToolUseResult:
		if e.Result != nil {
			s.update(sdk.SessionUpdate{ToolCallUpdate: s.endCall(id, e.Result)})
			s.tellMode() // the approval of a plan changes it
		}
	default:
	}
}

// showPlan shows the list of tasks of the agent.
func (s *session) showPlan(call *belay.CallPart) {
	input := call.Input
	if call.Final != nil {
		input = call.Final
	}
	var in struct {
		Todos []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"todos"`
	}
	if json.Unmarshal(input, &in) != nil {
		return
	}
	entries := []sdk.PlanEntry{}
	for _, todo := range in.Todos {
		status := sdk.PlanEntryStatus(todo.Status)
		switch status {
		case sdk.PlanEntryStatusPending, sdk.PlanEntryStatusInProgress, sdk.PlanEntryStatusCompleted:
			entries = append(entries, sdk.PlanEntry{Content: todo.Content, Status: status, Priority: sdk.PlanEntryPriorityMedium})
		default: // the protocol has no word for a cancelled task
		}
	}
	s.update(sdk.UpdatePlan(entries...))
}

// showUsage shows how full the context is, and what the session has cost.
func (s *session) showUsage(e *belay.Event) {
	if e.Usage == nil || e.Depth > 0 || s.space.Window == 0 {
		return
	}
	u := &sdk.SessionUsageUpdate{Size: s.space.Window, Used: e.Usage.In + e.Usage.CacheRead + e.Usage.CacheWrite + e.Usage.Out}
	if cost := s.belay.Usage().Cost; cost > 0 {
		u.Cost = &sdk.Cost{Amount: cost, Currency: "USD"}
	}
	s.update(sdk.SessionUpdate{UsageUpdate: u})
}

// giveTitle gives a new session its first message as the title.
func (s *session) giveTitle(info *belay.SessionInfo, text string) {
	s.mu.Lock()
	titled := s.titled
	s.titled = true
	s.mu.Unlock()
	if title := titleOf(text); !titled && info.Title == "" && info.Last == 0 && title != "" {
		s.update(sdk.SessionUpdate{SessionInfoUpdate: &sdk.SessionSessionInfoUpdate{Title: &title}})
	}
}
