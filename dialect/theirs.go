package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// A spelling says how a vendor names one of our tools and its inputs.
type spelling struct {
	// names are the vendor's names. The first is the usual one. A hook on one of the
	// others sees our tool too.
	names []string
	// inputs maps our names of inputs to the vendor's names. Other inputs keep their name.
	inputs map[string]string
}

var spellings = map[Vendor]map[string]spelling{
	ClaudeCode: {
		toolShell:  {[]string{"Bash"}, nil},
		toolRead:   {[]string{"Read"}, map[string]string{"path": "file_path"}},
		toolWrite:  {[]string{"Write"}, map[string]string{"path": "file_path"}},
		toolEdit:   {[]string{"Edit", "MultiEdit"}, map[string]string{"path": "file_path"}},
		toolGlob:   {[]string{"Glob"}, nil},
		toolGrep:   {[]string{"Grep"}, map[string]string{"ignore_case": "-i", "context": "-C", "limit": "head_limit"}},
		toolList:   {[]string{"LS"}, nil},
		toolInvoke: {[]string{"Agent", "Task"}, map[string]string{"name": "subagent_type"}},
		toolSkill:  {[]string{"Skill"}, map[string]string{"name": "skill", "arguments": "args"}},
		toolAsk:    {[]string{"AskUserQuestion"}, nil},
		toolFetch:  {[]string{"WebFetch"}, nil},
		toolSearch: {[]string{"WebSearch"}, nil},
		toolTodo:   {[]string{"TodoWrite"}, nil},
		toolPlan:   {[]string{"ExitPlanMode"}, nil},
		toolOutput: {[]string{"BashOutput", "TaskOutput"}, map[string]string{"id": "bash_id"}},
		toolStop:   {[]string{"KillShell", "KillBash", "TaskStop"}, map[string]string{"id": "shell_id"}},
	},
	Codex: {
		toolShell:  {[]string{"Bash"}, nil},
		toolWrite:  {[]string{"apply_patch", "Write", "Edit"}, nil},
		toolEdit:   {[]string{"apply_patch", "Write", "Edit"}, nil},
		toolInvoke: {[]string{"spawn_agent", "Agent"}, map[string]string{"name": "agent_type", "prompt": "message"}},
		toolAsk:    {[]string{"request_user_input"}, nil},
	},
	GeminiCLI: {
		toolShell:  {[]string{"run_shell_command"}, nil},
		toolRead:   {[]string{"read_file", "read_many_files"}, map[string]string{"path": "file_path"}},
		toolWrite:  {[]string{"write_file"}, map[string]string{"path": "file_path"}},
		toolEdit:   {[]string{"replace"}, map[string]string{"path": "file_path"}},
		toolGlob:   {[]string{"glob"}, map[string]string{"path": "dir_path"}},
		toolGrep:   {[]string{"grep_search", "search_file_content"}, map[string]string{"path": "dir_path", "glob": "include_pattern"}},
		toolList:   {[]string{"list_directory"}, map[string]string{"path": "dir_path"}},
		toolInvoke: {[]string{"invoke_agent"}, map[string]string{"name": "agent_name"}},
		toolSkill:  {[]string{"activate_skill"}, nil},
		toolAsk:    {[]string{"ask_user"}, nil},
		toolFetch:  {[]string{"web_fetch"}, nil},
		toolSearch: {[]string{"google_web_search"}, nil},
		toolTodo:   {[]string{"write_todos"}, nil},
		toolPlan:   {[]string{"exit_plan_mode"}, nil},
	},
	Cursor: {
		toolShell: {[]string{"Shell"}, nil},
		toolRead:  {[]string{"Read"}, map[string]string{"path": "file_path"}},
		toolWrite: {[]string{"Write"}, map[string]string{"path": "file_path"}},
		toolEdit:  {[]string{"Write", "StrReplace", "Edit"}, map[string]string{"path": "file_path"}},
		toolGlob:  {[]string{"Glob"}, nil},
		toolGrep:  {[]string{"Grep"}, nil},
		toolList:  {[]string{"LS"}, nil},

		toolInvoke: {[]string{"Task"}, map[string]string{"name": "subagent_type"}},
		toolFetch:  {[]string{"WebFetch"}, nil},
		toolSearch: {[]string{"WebSearch"}, map[string]string{"query": "search_term"}},
		toolTodo:   {[]string{"TodoWrite"}, nil},
	},
	Copilot: {
		toolShell: {[]string{"bash"}, nil},
		toolRead:  {[]string{"view"}, nil},
		toolWrite: {[]string{"create"}, map[string]string{"content": "file_text"}},
		toolEdit:  {[]string{"edit", "str_replace"}, map[string]string{"old_string": "old_str", "new_string": "new_str"}},
		toolGlob:  {[]string{"glob"}, nil},
		toolGrep:  {[]string{"grep", "rg"}, nil},

		toolInvoke: {[]string{"task"}, map[string]string{"name": "agent_type"}},
		toolAsk:    {[]string{"ask_user"}, nil},
		toolFetch:  {[]string{"web_fetch"}, nil},
		toolSearch: {[]string{"web_search"}, nil},
		toolTodo:   {[]string{"update_todo"}, nil},
	},
}

// Names returns the vendor's names for one of our tools. The first is the usual one. A tool
// of an MCP server has the vendor's form of its name. Another tool that the vendor does not
// have keeps its name.
func (v Vendor) Names(tool string) []string {
	if s, ok := spellings[v][tool]; ok {
		return slices.Clone(s.names)
	}
	server, name, ok := strings.Cut(tool, "__")
	if !ok || server == "" || name == "" {
		return []string{tool}
	}
	switch v {
	case GeminiCLI: // newer versions have the shorter form
		return []string{"mcp__" + tool, "mcp_" + server + "_" + name}
	case ClaudeCode, Codex:
		names := []string{"mcp__" + tool}
		for _, alias := range ServerAliases(server, name) {
			if !slices.Contains(names, alias) && strings.HasPrefix(alias, "mcp__") {
				names = append(names, alias)
			}
		}
		return names
	case Cursor:
		return []string{"MCP:" + name}
	case Copilot:
		return []string{server + "-" + name}
	default:
		return []string{tool}
	}
}

// NamesOf is like [Vendor.Names], for a call. A change of a notebook has the name of Claude
// Code's tool for notebooks, too.
func (v Vendor) NamesOf(call Call) []string {
	names := v.Names(call.Tool)
	if v == ClaudeCode && (call.Tool == toolEdit || call.Tool == toolWrite) {
		if in, err := object(call.Input); err == nil {
			if path := in.text("path"); path != nil && strings.HasSuffix(strings.ToLower(*path), ".ipynb") {
				names = append(names, notebookEdit)
			}
		}
	}
	return names
}

// notebookEdit is Claude Code's tool that changes notebooks.
const notebookEdit = "NotebookEdit"

// AllNames returns every name that the vendor's hooks can meet here, except the names of
// the tools of MCP servers.
func (v Vendor) AllNames() []string {
	var all []string
	if v == ClaudeCode {
		all = append(all, notebookEdit)
	}
	for _, tool := range slices.Sorted(maps.Keys(spellings[v])) {
		for _, name := range spellings[v][tool].names {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// Theirs returns a call of Belay's tool as the vendor's hooks read it. Paths of files
// become absolute, below dir. The name is one of [Vendor.Names]. The empty name means the
// usual one.
func (v Vendor) Theirs(call Call, dir, name string) (Call, error) {
	s, known := spellings[v][call.Tool]
	usual := v.Names(call.Tool)[0]
	if name == "" || v == Codex { // Codex always tells its own name
		name = usual
	}
	if !known {
		return Call{Tool: name, Input: call.Input}, nil
	}
	in, err := object(call.Input)
	if err != nil {
		return Call{}, fmt.Errorf("tool %s: its input %w", call.Tool, err)
	}
	if path := in.text("path"); path != nil && *path != "" && !filepath.IsAbs(*path) {
		in.put("path", new(filepath.Join(dir, *path)))
	}
	out := fields{}
	for key, value := range in {
		if theirs, ok := s.inputs[key]; ok {
			key = theirs
		}
		out[key] = value
	}
	switch {
	case v == Codex && usual == "apply_patch":
		out = fields{}
		out.put("command", new(patchOf(call.Tool, in)))
	case name == notebookEdit:
		source := out.text("new_string", "content")
		path := out.text("file_path")
		out = fields{}
		out.put("notebook_path", path)
		out.put("new_source", source)
		out.put("edit_mode", new("replace"))
	case name == "MultiEdit":
		change := fields{}
		for _, key := range []string{"old_string", "new_string", "replace_all"} {
			change.copy(key, out, key)
			delete(out, key)
		}
		if out["edits"], err = json.Marshal([]fields{change}); err != nil {
			return Call{}, fmt.Errorf("tool %s: %w", call.Tool, err)
		}
	case call.Tool == toolShell:
		shellInput(v, out)
	case call.Tool == toolTodo:
		out["todos"] = theirTodos(v, out["todos"])
	case call.Tool == toolFetch && v == GeminiCLI: // its tool finds the addresses in a text
		out.copy("prompt", out, "url")
	case name == "TaskOutput" || name == "TaskStop":
		out.copy("task_id", out, "bash_id", "shell_id")
	case v == ClaudeCode && call.Tool == toolGrep:
		if mode := out.text("mode"); mode != nil {
			delete(out, "mode")
			out.put("output_mode", new(map[string]string{"lines": "content", "count": "count"}[*mode]))
			if *out.text("output_mode") == "" {
				out.put("output_mode", new("files_with_matches"))
			}
		}
	}
	data, err := out.encode()
	return Call{Tool: name, Input: data}, err
}

// shellInput translates the time limit of a command. Belay has seconds.
func shellInput(v Vendor, out fields) {
	var seconds int64
	if json.Unmarshal(out["timeout_seconds"], &seconds) == nil && seconds > 0 && v == ClaudeCode {
		out["timeout"] = json.RawMessage(fmt.Sprint(seconds * 1000))
	}
	delete(out, "timeout_seconds")
}

// Updated returns the input of Belay's call after a vendor's hook has replaced the input
// that [Vendor.Theirs] made. Inputs that the hook left as they were keep Belay's value. An
// error means that Belay cannot express the new input.
func (v Vendor) Updated(call Call, dir, name string, updated json.RawMessage) (json.RawMessage, error) {
	before, err := v.Theirs(call, dir, name)
	if err != nil {
		return nil, err
	}
	if _, known := spellings[v][call.Tool]; !known {
		if _, err := object(updated); err != nil {
			return nil, fmt.Errorf("the new input %w", err)
		}
		return updated, nil
	}
	if before.Tool == notebookEdit {
		return nil, errors.New("notebooks are changed as files, and not by cells")
	}
	was, err := oneOurs(before)
	if err != nil {
		return nil, err
	}
	now, err := oneOurs(Call{Tool: before.Tool, Input: updated})
	if err != nil {
		return nil, err
	}
	if was.Tool != now.Tool {
		return nil, fmt.Errorf("the new input is for %s and not for %s", now.Tool, was.Tool)
	}
	out, err := object(call.Input)
	if err != nil {
		return nil, fmt.Errorf("tool %s: its input %w", call.Tool, err)
	}
	wasIn, _ := object(was.Input) // oneOurs has made both
	nowIn, _ := object(now.Input)
	for key, value := range nowIn {
		if !bytes.Equal(value, wasIn[key]) {
			out[key] = value
		}
	}
	for key := range wasIn {
		if _, ok := nowIn[key]; !ok {
			delete(out, key)
		}
	}
	return out.encode()
}

// oneOurs translates a call that must stand for exactly one call.
func oneOurs(theirs Call) (Call, error) {
	calls, err := Ours(theirs)
	switch {
	case err != nil:
		return Call{}, fmt.Errorf("the new input: %w", err)
	case len(calls) != 1:
		return Call{}, errors.New("the new input stands for several calls, but a call can only be replaced by one")
	default:
		return calls[0], nil
	}
}
