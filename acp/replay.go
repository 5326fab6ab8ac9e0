package acp

import (
	"context"
	"encoding/base64"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay"
)

// replay sends the messages of a stored session.
func (s *session) replay(ctx context.Context) error {
	tools := make(map[string]*belay.CallPart)
	for m, err := range s.belay.Messages(ctx) {
		if err != nil {
			return err
		}
		switch m.Kind {
		case belay.KindUser:
			s.replayUser(m)
		case belay.KindAssistant:
			s.replayResponse(m, tools)
		case belay.KindResults:
			s.replayResults(m, tools)
		case belay.KindCompaction:
			s.note("The conversation before was summarized.")
		default: // what hooks and skills have added is not for people
		}
	}
	return nil
}

func (s *session) replayUser(m *belay.Message) {
	said := m.PreModifiedText
	if said != nil {
		s.update(sdk.UpdateUserMessageText(*said))
	}
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Type == belay.PartText && !p.IsReminder:
			if said == nil {
				s.update(sdk.UpdateUserMessageText(p.Text))
			}
			said = nil // later parts are files
		case p.Media != nil && strings.HasPrefix(p.Media.MIME, "image/") && len(p.Media.Data) > 0:
			s.update(sdk.UpdateUserMessage(sdk.ImageBlock(base64.StdEncoding.EncodeToString(p.Media.Data), p.Media.MIME)))
		case p.Media != nil:
			s.update(sdk.UpdateUserMessageText("(file " + p.Media.Name + ")"))
		}
	}
}

func (s *session) replayResponse(m *belay.Message, tools map[string]*belay.CallPart) {
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Type == belay.PartText && !p.IsReminder:
			s.update(sdk.UpdateAgentMessageText(p.Text))
		case p.Type == belay.PartThinking && p.Text != "":
			s.update(sdk.UpdateAgentThoughtText(p.Text))
		case p.Call != nil:
			tools[p.Call.ID] = p.Call
			if p.Call.Tool != toolTodo {
				s.update(sdk.SessionUpdate{ToolCall: s.startCall("", "", p.Call)})
			}
		}
	}
}

func (s *session) replayResults(m *belay.Message, tools map[string]*belay.CallPart) {
	for i := range m.Parts {
		r := m.Parts[i].Result
		if r == nil {
			continue
		}
		switch call := tools[r.Call]; {
		case r.Tool == toolTodo && call != nil && !r.IsError:
			s.showPlan(call)
		case r.Tool != toolTodo:
			s.update(sdk.SessionUpdate{ToolCallUpdate: s.endCall(r.Call, &r.Result)})
		}
	}
}
