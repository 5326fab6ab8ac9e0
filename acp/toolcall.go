package acp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/label"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
	"github.com/belay-run/belay/toolbox"
	"github.com/belay-run/belay/webtool"
)

// Names of tools that editors show in a special way.
const (
	toolRead  = "read"
	toolWrite = "write"
	toolEdit  = "edit"
	toolShell = "shell"
	toolTodo  = "todo_write"
	toolPlan  = "present_plan"
)

// kinds are the kinds of the tools of Belay. Other tools, such as those of MCP servers, have
// the kind other.
var kinds = map[string]sdk.ToolKind{
	toolRead: sdk.ToolKindRead, "list": sdk.ToolKindRead, skill.ReadTool: sdk.ToolKindRead, "shell_output": sdk.ToolKindRead, "shell_list": sdk.ToolKindRead,
	"glob": sdk.ToolKindSearch, "grep": sdk.ToolKindSearch, memory.SearchTool: sdk.ToolKindSearch, memory.LookupTool: sdk.ToolKindSearch,
	toolWrite: sdk.ToolKindEdit, toolEdit: sdk.ToolKindEdit,
	toolShell: sdk.ToolKindExecute, "shell_stop": sdk.ToolKindExecute,
	webtool.FetchTool: sdk.ToolKindFetch, webtool.SearchTool: sdk.ToolKindFetch,
	toolTodo: sdk.ToolKindThink, toolPlan: sdk.ToolKindSwitchMode,
}

func kindOf(tool string) sdk.ToolKind {
	if kind, ok := kinds[tool]; ok {
		return kind
	}
	return sdk.ToolKindOther
}

// verbs are the first words of titles.
var verbs = map[string]string{toolRead: "Read", "list": "List", "glob": "Find", "grep": "Search", toolWrite: "Write", toolEdit: "Edit", webtool.FetchTool: "Fetch", webtool.SearchTool: "Search the web for", toolPlan: "Plan", toolbox.AskUserTool: "Ask"}

// calls remembers which calls the editor knows.
type calls struct {
	mu    sync.Mutex
	known map[string]*shownCall
	files map[string]string // texts of the files that calls will replace, by the id of the call and the path
}

// expect reads the files that the calls of a response will replace. It must be called before
// the next event of the turn is taken: the turn waits until then, so no call has run yet.
func (s *session) expect(ctx context.Context, run string, m *belay.Message) {
	files := make(map[string]string)
	for _, call := range m.Calls() {
		var in fileInput
		if call.Tool != toolWrite || json.Unmarshal(call.Input, &in) != nil || in.Path == "" {
			continue
		}
		path := s.absolute(in.Path)
		if text, ok := s.textOf(ctx, path); ok {
			files[callID(run, call.ID)+" "+path] = text
		}
	}
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	if run == "" || s.calls.files == nil {
		s.calls.files = make(map[string]string) // the calls of earlier responses have begun
	}
	maps.Copy(s.calls.files, files)
}

// textOf returns the present text of a file, if it may be shown.
func (s *session) textOf(ctx context.Context, path string) (string, bool) {
	if s.space.ReadFile == nil {
		return "", false
	}
	return s.space.ReadFile(ctx, path)
}

// expected returns the text that a file had before a call.
func (c *calls) expected(id, path string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, ok := c.files[id+" "+path]
	return text, ok
}

// shownCall is a call that the editor shows.
type shownCall struct {
	tool     string
	diff     bool   // its content is a diff, which the result must not replace
	terminal bool   // its output is shown as a terminal
	output   string // the output so far
}

// mostOutput is how much of a running command's output an editor without display terminals
// gets with each update.
const mostOutput = 8 << 10

func (c *calls) add(id string, call *shownCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = make(map[string]*shownCall)
	}
	c.known[id] = call
}

func (c *calls) of(id string) *shownCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[id]
}

func (c *calls) done(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, id)
}

// callID returns the id of a call for the editor. Calls of subagents may have the same ids as
// those of their parents.
func callID(run, id string) string {
	if run == "" {
		return id
	}
	return run + "/" + id
}

// startCall describes a call that begins, or an old call that is shown again. The input is the
// final one, if it is known.
func (s *session) startCall(run, agent string, call *belay.CallPart) *sdk.SessionUpdateToolCall {
	input := call.Input
	if call.Final != nil {
		input = call.Final
	}
	id := callID(run, call.ID)
	shown := &shownCall{tool: call.Tool}
	start := &sdk.SessionUpdateToolCall{
		ToolCallId: sdk.ToolCallId(id), Title: titleOfCall(call.Tool, input), Kind: kindOf(call.Tool), Status: sdk.ToolCallStatusPending,
		RawInput: input, Locations: s.locations(call.Tool, input),
		Content: s.before(call.Tool, input, func(path string) (string, bool) { return s.calls.expected(id, path) }),
	}
	if agent != "" {
		start.Title = visible.OneLine(agent) + ": " + start.Title
	}
	shown.diff = len(start.Content) > 0
	if call.Tool == toolShell && s.e.client.terminals {
		shown.terminal = true
		start.Content = []sdk.ToolCallContent{sdk.ToolTerminalRef(id)}
		start.Meta = map[string]any{"terminal_info": map[string]any{"terminal_id": id, "cwd": s.space.Dir}}
	}
	s.calls.add(id, shown)
	return start
}

// titleOfCall says in one line what a call does.
func titleOfCall(tool string, input json.RawMessage) string {
	const longest = 120
	if tool == toolPlan {
		return verbs[toolPlan]
	}
	about := visible.OneLine(label.Of(input))
	if short := []rune(about); len(short) > longest {
		about = string(short[:longest-1]) + "…"
	}
	about = strings.ReplaceAll(about, "`", "'")
	switch verb, known := verbs[tool]; {
	case tool == toolShell && about != "":
		return "`" + about + "`"
	case about == "" || about == "{}":
		return tool
	case known:
		return verb + " `" + about + "`"
	default:
		return tool + " `" + about + "`"
	}
}

// fileInput are the fields of the inputs of read, write and edit.
type fileInput struct {
	Path      string `json:"path"`
	Offset    int    `json:"offset"`
	Content   string `json:"content"`
	OldString string `json:"old_string"`
	NewString string `json:"new_string"`
	Plan      string `json:"plan"`
}

func (s *session) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.space.Dir, filepath.FromSlash(path))
}

// locations returns the files that a call is about.
func (s *session) locations(tool string, input json.RawMessage) []sdk.ToolCallLocation {
	switch tool {
	case toolRead, toolWrite, toolEdit, "list", "grep":
	default:
		return nil
	}
	var in fileInput
	if json.Unmarshal(input, &in) != nil || in.Path == "" {
		return nil
	}
	at := sdk.ToolCallLocation{Path: s.absolute(in.Path)}
	if tool == toolRead && in.Offset > 0 {
		at.Line = &in.Offset
	}
	return []sdk.ToolCallLocation{at}
}

// before returns what an editor can show before a call has a result: the diff of a change, or
// the text of a plan. text returns the present text of a file, if it may be shown.
func (s *session) before(tool string, input json.RawMessage, text func(path string) (string, bool)) []sdk.ToolCallContent {
	var in fileInput
	if json.Unmarshal(input, &in) != nil {
		return nil
	}
	switch {
	case tool == toolEdit && in.Path != "":
		return []sdk.ToolCallContent{sdk.ToolDiffContent(s.absolute(in.Path), in.NewString, in.OldString)}
	case tool == toolWrite && in.Path != "":
		path := s.absolute(in.Path)
		if old, ok := text(path); ok {
			return []sdk.ToolCallContent{sdk.ToolDiffContent(path, in.Content, old)}
		}
		return []sdk.ToolCallContent{sdk.ToolDiffContent(path, in.Content)}
	case tool == toolPlan && in.Plan != "":
		return []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(in.Plan))}
	default:
		return nil
	}
}

// progress describes new output of a call that runs.
func (s *session) progress(id, text string) *sdk.SessionToolCallUpdate {
	shown := s.calls.of(id)
	if shown == nil {
		return nil
	}
	u := &sdk.SessionToolCallUpdate{ToolCallId: sdk.ToolCallId(id), Status: sdk.Ptr(sdk.ToolCallStatusInProgress)}
	if shown.terminal {
		u.Meta = map[string]any{"terminal_output": map[string]any{"terminal_id": id, "data": text}}
		shown.output += "…" // it has been shown: the result must not repeat it
		return u
	}
	shown.output = tail(shown.output+text, mostOutput)
	u.Content = []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(fenced(visible.All(shown.output))))}
	return u
}

// tail returns the end of a text.
func tail(text string, most int) string {
	if len(text) <= most {
		return text
	}
	from := len(text) - most
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}

// endCall describes the result of a call.
func (s *session) endCall(id string, r *belay.Result) *sdk.SessionToolCallUpdate {
	shown := s.calls.of(id)
	s.calls.done(id)
	if shown == nil {
		shown = &shownCall{}
	}
	u := &sdk.SessionToolCallUpdate{ToolCallId: sdk.ToolCallId(id), Status: sdk.Ptr(sdk.ToolCallStatusCompleted)}
	if r.IsError {
		u.Status = sdk.Ptr(sdk.ToolCallStatusFailed)
	}
	switch {
	case shown.terminal && r.Class != belay.ClassDenied:
		u.Meta = map[string]any{"terminal_exit": terminalExit(id, r)}
		if shown.output == "" {
			u.Meta["terminal_output"] = map[string]any{"terminal_id": id, "data": r.Text}
		}
	case shown.diff && !r.IsError: // the diff stays
	default:
		u.Content = resultContent(shown.tool, r)
	}
	return u
}

// terminalExit says how a command ended.
func terminalExit(id string, r *belay.Result) map[string]any {
	var view struct {
		ExitCode int    `json:"exit_code"`
		Signal   string `json:"signal"`
	}
	exit := map[string]any{"terminal_id": id, "exit_code": nil, "signal": nil}
	if json.Unmarshal(r.Render, &view) == nil {
		exit["exit_code"] = view.ExitCode
		if view.Signal != "" {
			exit["exit_code"], exit["signal"] = nil, view.Signal
		}
	}
	return exit
}

// asText are the tools whose results are prose or Markdown. Other results are shown as code.
var asText = map[string]bool{
	subagent.InvokeTool: true, subagent.DelegateTool: true, toolbox.AskUserTool: true, webtool.FetchTool: true, webtool.SearchTool: true,
	skill.ReadTool: true, skill.InvokeTool: true,
}

// resultContent returns a result as content.
func resultContent(tool string, r *belay.Result) []sdk.ToolCallContent {
	var all []sdk.ToolCallContent
	if text := visible.All(r.Text); strings.TrimSpace(text) != "" {
		if !r.IsError && !asText[tool] || r.IsError && tool == toolShell && r.Class != belay.ClassDenied {
			text = fenced(text)
		}
		all = append(all, sdk.ToolContent(sdk.TextBlock(text)))
	}
	for i := range r.Media {
		if m := &r.Media[i]; strings.HasPrefix(m.MIME, "image/") && len(m.Data) > 0 {
			all = append(all, sdk.ToolContent(sdk.ImageBlock(base64.StdEncoding.EncodeToString(m.Data), m.MIME)))
		} else {
			all = append(all, sdk.ToolContent(sdk.TextBlock(fmt.Sprintf("(%s %s)", m.MIME, m.Name))))
		}
	}
	return all
}
