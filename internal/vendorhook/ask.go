package vendorhook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/childturn"
)

// Transcript writes a file with a conversation and returns its path.
type Transcript func(ctx context.Context, session string) (string, error)

// Event is an event as a profile sees it.
type Event struct {
	*worker.Envelope

	// Event is the vendor's event.
	Event dialect.Event
	// Call is the tool call in the vendor's form, at events of tools.
	Call dialect.Call
	// FilePath is the absolute path of the call's file, or empty.
	FilePath string

	in  input
	own dialect.Call // the call in Belay's form
}

// input has the fields of all phases that events map to.
type input struct {
	ID            string          `json:"id"`
	Call          string          `json:"call"`
	Tool          string          `json:"tool"`
	Input         json.RawMessage `json:"input"`
	Text          string          `json:"text"`
	IsError       bool            `json:"is_error"`
	Continuations int             `json:"continuations"`
	Source        string          `json:"source"`
	Trigger       string          `json:"trigger"`
	Name          string          `json:"name"`
	Run           string          `json:"run"`
	Subagent      string          `json:"subagent"`
	LatencyNS     int64           `json:"latency_ns"`
	Message       string          `json:"message"`
	Reason        string          `json:"reason"`
}

// proto is the protocol of one hook. It is a [declare.Protocol].
type proto struct {
	*Profile
	opts            *Options
	event           dialect.Event
	async           bool
	strict          bool // the file or the settings do not want Belay to continue after a failure
	readsTranscript bool
	when            *condition
	memory          *memory
	rewake          bool   // exit code 2 wakes the model, although nothing waits for the command
	rewakeMessage   string // stands before what such a command printed
	wakes           *Wakes // nil: nothing wakes the model here
	decl            *declare.Declaration
}

// read decodes the input of a phase.
func (p *proto) read(e *worker.Envelope) (*Event, error) {
	ev := &Event{Envelope: e, Event: p.event}
	if err := json.Unmarshal(e.Input, &ev.in); err != nil {
		return nil, failed("the input of the event cannot be read", err)
	}
	if ev.in.Tool == "" {
		return ev, nil
	}
	ev.own = dialect.Call{Tool: ev.in.Tool, Input: ev.in.Input}
	name, _ := p.when.name(ev.own)
	var err error
	if ev.Call, err = p.Vendor.Theirs(ev.own, p.opts.Project, name); err != nil {
		return nil, failed("the call cannot be translated for a hook of "+p.Vendor.Title(), err)
	}
	var path struct {
		FilePath string `json:"file_path"`
	}
	if call, err := dialect.ClaudeCode.Theirs(ev.own, p.opts.Project, ""); err == nil && json.Unmarshal(call.Input, &path) == nil {
		ev.FilePath = path.FilePath
	}
	return ev, nil
}

// failed returns the error of a hook that could not be asked or whose answer cannot be used.
func failed(what string, err error) error {
	return &hook.SafeError{Code: codes.Error, Message: what, Err: err}
}

// Ask returns the event as the vendor's commands read it.
func (p *proto) Ask(ctx context.Context, e *worker.Envelope) (*declare.Question, error) {
	ev, err := p.read(e)
	if err != nil {
		return nil, err
	}
	child := childturn.Of(ctx)
	main := cmp.Or(child.Session, e.Session) // all vendors report the session of the main agent
	in := map[string]any{
		"session_id": main, "cwd": p.opts.Project, "hook_event_name": p.event.Name, "permission_mode": PermissionMode(p.opts.Mode),
	}
	if child.ID != "" {
		in["agent_id"], in["agent_type"] = child.ID, child.Name
	}
	p.fields(ev, in)
	if in["transcript_path"], err = p.transcript(ctx, main); err != nil {
		return nil, err
	}
	if p.event.Kind == dialect.SubagentStop {
		if in["agent_transcript_path"], err = p.transcript(ctx, e.Session); err != nil {
			return nil, err
		}
	}
	if p.Fields != nil {
		p.Fields(ev, in)
	}
	stdin, err := json.Marshal(in)
	if err != nil {
		return nil, failed("the event cannot be written as JSON", err)
	}
	return &declare.Question{Stdin: append(stdin, '\n'), Env: p.Env(p.opts, ev)}, nil
}

// transcript writes the file with the conversation of a session, if the hook reads it. It
// returns the path of the file, or "".
func (p *proto) transcript(ctx context.Context, session string) (string, error) {
	if !p.readsTranscript || p.opts.Transcript == nil {
		return "", nil
	}
	path, err := p.opts.Transcript(ctx, session)
	if err != nil {
		return "", failed("the transcript for the hook cannot be written", err)
	}
	return path, nil
}

// fields adds the fields of an event that all vendors have.
func (p *proto) fields(ev *Event, in map[string]any) {
	if ev.in.Tool != "" && isTool(p.event.Kind) {
		in["tool_name"], in["tool_input"] = ev.Call.Tool, ev.Call.Input
		if p.event.Kind != dialect.PermissionRequest {
			in["tool_use_id"] = ev.in.ID
		}
	}
	switch p.event.Kind {
	case dialect.PostToolUse:
		in["tool_response"], in["duration_ms"] = p.response(ev), ev.in.LatencyNS/int64(time.Millisecond)
	case dialect.PostToolUseFailure:
		in["error"], in["is_interrupt"], in["duration_ms"] = ev.in.Text, false, ev.in.LatencyNS/int64(time.Millisecond)
	case dialect.Stop:
		in["stop_hook_active"], in["last_assistant_message"] = ev.in.Continuations > 0, ev.in.Text
	case dialect.SubagentStart:
		in["agent_id"], in["agent_type"] = ev.in.Run, ev.in.Name
	case dialect.SubagentStop:
		in["agent_id"], in["agent_type"] = ev.in.Run, ev.in.Subagent
		in["stop_hook_active"], in["last_assistant_message"] = ev.in.Continuations > 0, ev.in.Text
	case dialect.SessionStart:
		in["source"] = sourceOf(p.Vendor, ev.in.Source)
	case dialect.SessionEnd:
		in["reason"] = endReason
	case dialect.UserPromptSubmit:
		in["prompt"] = ev.in.Text
	case dialect.PreCompact:
		in["trigger"], in["custom_instructions"] = triggerOf(ev.in.Trigger), ""
	case dialect.Notification:
		in["message"] = fmt.Sprintf("Belay needs your approval to use %s", ev.Call.Tool)
		in["notification_type"] = notificationType(p.Profile)
	case dialect.PermissionRequest:
		in["permission_suggestions"] = []any{}
	case dialect.PreToolUse:
	}
}

// response returns the result of a call in the vendor's form. Belay has the text of the
// result and no more.
func (p *proto) response(ev *Event) any {
	switch {
	case p.Vendor == dialect.GeminiCLI:
		r := map[string]any{"llmContent": ev.in.Text, "returnDisplay": ev.in.Text}
		if ev.in.IsError {
			r["error"] = map[string]any{"message": ev.in.Text}
		}
		return r
	case p.Vendor == dialect.Codex:
		return ev.in.Text
	case ev.in.Tool == "invoke_subagent":
		return map[string]any{"status": "completed", "content": []any{map[string]any{"type": "text", "text": ev.in.Text}}}
	case ev.in.Tool == "shell":
		return map[string]any{"stdout": ev.in.Text, "stderr": "", "interrupted": false, "isImage": false}
	case ev.FilePath != "":
		return map[string]any{"filePath": ev.FilePath, "success": !ev.in.IsError, "content": ev.in.Text}
	default:
		return map[string]any{"content": ev.in.Text, "success": !ev.in.IsError}
	}
}

// endReason is the reason of SessionEnd. Belay does not know the vendors' reasons.
const endReason = "other"

// sourceOf translates the source of session.start.
func sourceOf(v dialect.Vendor, source string) string {
	switch {
	case source == "new":
		return "startup"
	case source == "forked" && v == dialect.ClaudeCode:
		return "fork"
	default:
		return "resume"
	}
}

// triggerOf translates the trigger of turn.pre_compaction.
func triggerOf(trigger string) string {
	if trigger == "forced" {
		return "manual"
	}
	return "auto"
}

func notificationType(p *Profile) string {
	if p.Vendor == dialect.GeminiCLI {
		return "ToolPermission"
	}
	return "permission_prompt"
}

// PermissionMode translates a mode of Belay to the word of Claude Code and Codex.
func PermissionMode(mode string) string {
	switch mode {
	case "read-only":
		return "plan"
	case "build", "permissive":
		return "acceptEdits"
	case "unattended":
		return "dontAsk"
	default:
		return "default"
	}
}
