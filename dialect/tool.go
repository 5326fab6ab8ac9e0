package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Call is a call of a tool.
type Call struct {
	// Tool is the name of the tool.
	Tool string
	// Input is a JSON object.
	Input json.RawMessage
	// Dir is the directory in which a shell command runs, if the call names one. Belay's
	// shell has no such input, so [Ours] returns the directory here.
	Dir string
}

// Belay's tools that have a counterpart elsewhere.
const (
	toolRead   = "read"
	toolWrite  = "write"
	toolEdit   = "edit"
	toolShell  = "shell"
	toolList   = "list"
	toolGlob   = "glob"
	toolGrep   = "grep"
	toolInvoke = "invoke_subagent"
	toolSkill  = "invoke_skill"
	toolAsk    = "ask_user"
	toolFetch  = "web_fetch"
	toolSearch = "web_search"
	toolTodo   = "todo_write"
	toolPlan   = "present_plan"
	toolOutput = "shell_output"
	toolStop   = "shell_stop"
)

// ours maps the tool names of all vendors, in lower case, to Belay's names.
var ours = map[string]string{
	// Claude Code
	"bash": toolShell, "read": toolRead, "write": toolWrite, "edit": toolEdit, "multiedit": toolEdit, "notebookedit": toolEdit, "notebookread": toolRead,
	"glob": toolGlob, "grep": toolGrep, "ls": toolList, "task": toolInvoke, "agent": toolInvoke, "skill": toolSkill, "askuserquestion": toolAsk,
	"webfetch": toolFetch, "websearch": toolSearch, "todowrite": toolTodo, "exitplanmode": toolPlan, "bashoutput": toolOutput, "taskoutput": toolOutput,
	"killshell": toolStop, "killbash": toolStop, "taskstop": toolStop,
	// Codex
	"shell": toolShell, "shell_command": toolShell, "local_shell": toolShell, "exec_command": toolShell, "container.exec": toolShell, "apply_patch": toolEdit, "applypatch": toolEdit,
	"spawn_agent": toolInvoke, "request_user_input": toolAsk, "list_dir": toolList, "grep_files": toolGrep, "view_image": toolRead, "update_plan": toolTodo,
	// Gemini CLI
	"run_shell_command": toolShell, "read_file": toolRead, "read_many_files": toolRead, "write_file": toolWrite, "replace": toolEdit, "list_directory": toolList,
	"search_file_content": toolGrep, "grep_search": toolGrep, "activate_skill": toolSkill, "ask_user": toolAsk, "invoke_agent": toolInvoke,
	"web_fetch": toolFetch, "google_web_search": toolSearch, "write_todos": toolTodo, "exit_plan_mode": toolPlan,
	// Cursor
	"strreplace": toolEdit, "tabwrite": toolEdit, "tabread": toolRead, "delete": toolEdit, "run_terminal_cmd": toolShell, "edit_file": toolEdit, "search_replace": toolEdit,
	"delete_file": toolEdit, "edit_notebook": toolEdit, "editnotebook": toolEdit, "codebase_search": toolGrep, "glob_file_search": toolGlob, "web_search": toolSearch,
	// GitHub Copilot, in the terminal and in editors
	"powershell": toolShell, "view": toolRead, "create": toolWrite, "str_replace": toolEdit, "insert": toolEdit, "str_replace_editor": toolEdit,
	"run_in_terminal": toolShell, "create_file": toolWrite, "replace_string_in_file": toolEdit, "multi_replace_string_in_file": toolEdit,
	"insert_edit_into_file": toolEdit, "rg": toolGrep, "edit_notebook_file": toolEdit, "file_search": toolGlob, "runsubagent": toolInvoke, "ask_questions": toolAsk,
	"fetch": toolFetch, "fetch_webpage": toolFetch, "update_todo": toolTodo, "manage_todo_list": toolTodo, "read_bash": toolOutput, "stop_bash": toolStop,
	// Belay's own names, for the tools that no vendor names so
	toolList: toolList, toolInvoke: toolInvoke, toolSkill: toolSkill, toolTodo: toolTodo, toolPlan: toolPlan, toolOutput: toolOutput, toolStop: toolStop,
}

// OurName returns Belay's name for a tool of another agent. The bool is false if Belay has
// no such tool.
func OurName(theirs string) (string, bool) {
	if server, tool, ok := mcpTool(theirs); ok {
		return server + "__" + tool, true
	}
	name, ok := ours[strings.ToLower(theirs)]
	return name, ok
}

// mcpTool splits the name that other agents give to a tool of an MCP server.
func mcpTool(theirs string) (server, tool string, ok bool) {
	rest, found := strings.CutPrefix(theirs, "mcp__")
	if !found {
		return "", "", false
	}
	server, tool, ok = strings.Cut(rest, "__")
	return server, tool, ok && server != "" && tool != ""
}

// absent are tools of other agents that Belay does not have, in lower case.
var absent = []string{
	"todoread", "enterplanmode", "slashcommand", "toolsearch", "taskcreate", "taskupdate", "tasklist", "taskget", "enterworktree", "exitworktree", "lsp", "monitor",
	"croncreate", "crondelete", "cronlist", "schedulewakeup", "artifact", "endconversation", "listagents", "sendmessage", "pushnotification", "remotetrigger", "reportfindings",
	"senduserfile", "workflow", "waitformcpservers", "listmcpresourcestool", "readmcpresourcetool",
	"save_memory", "write_stdin", "enter_plan_mode", "get_internal_docs", "report_intent",
}

// Absent reports whether a name is of a tool that another agent has and Belay does not
// have.
func Absent(theirs string) bool { return slices.Contains(absent, strings.ToLower(theirs)) }

// Ours returns the calls of Belay's tools that a call of another agent's tool stands for.
// A call that changes several files, such as a patch, stands for several calls. Ours
// returns a call of an unknown tool unchanged. An error means that the input of a known
// tool cannot be understood: then a guard must not let the call pass.
func Ours(theirs Call) ([]Call, error) {
	tool, known := OurName(theirs.Tool)
	if !known || strings.Contains(tool, "__") {
		if known {
			theirs.Tool = tool
		}
		return []Call{theirs}, nil
	}
	in, err := object(theirs.Input)
	if err != nil {
		return nil, fmt.Errorf("tool %s: its input %w", theirs.Tool, err)
	}
	calls, err := translate(tool, strings.ToLower(theirs.Tool), in)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", theirs.Tool, err)
	}
	if len(calls) > mostCalls {
		return nil, fmt.Errorf("tool %s: it changes or reads %d files at once, and at most %d can be checked", theirs.Tool, len(calls), mostCalls)
	}
	return calls, nil
}

// mostCalls limits how many calls one call of a vendor can be. Hooks are asked about each, and
// the vendor does not wait for long.
const mostCalls = 200

// translate returns the calls of our tool for the input of a vendor's tool with this name
// in lower case.
func translate(tool, name string, in fields) ([]Call, error) {
	switch tool {
	case toolShell:
		return shellCalls(in)
	case toolRead:
		return readCalls(in)
	case toolWrite:
		return writeCall(in)
	case toolEdit:
		return changeCalls(name, in)
	case toolList:
		out := fields{}
		path, err := in.only(pathKeys...)
		if err != nil {
			return nil, err
		}
		out.put("path", path)
		return one(tool, out)
	case toolGlob:
		out := fields{}
		path, err := in.only(pathKeys...)
		if err != nil {
			return nil, err
		}
		pattern, err := in.only("pattern", "glob_pattern", "query", "globPattern")
		if err != nil {
			return nil, err
		}
		out.put("pattern", pattern)
		out.put("path", path)
		return one(tool, out)
	case toolGrep:
		return grepCalls(in)
	case toolInvoke:
		out := fields{}
		out.put("name", in.text("subagent_type", "agent_type", "agent_name", "agentName", "name"))
		out.put("prompt", in.text("prompt", "message", "objective", "description"))
		return one(tool, out)
	case toolSkill:
		out := fields{}
		out.put("name", in.text("name", "skill", "command"))
		out.copy("arguments", in, "arguments", "args")
		return one(tool, out)
	case toolFetch:
		return fetchCalls(name, in)
	case toolSearch:
		out := fields{}
		out.put("query", in.text("query", "search_term", "q"))
		return one(tool, out)
	case toolTodo:
		return todoCall(in)
	case toolPlan:
		out := fields{}
		out.put("plan", in.text("plan"))
		return one(tool, out)
	case toolOutput, toolStop:
		out := fields{}
		out.put("id", in.text("id", "bash_id", "shell_id", "task_id", "shellId", "sessionId"))
		return one(tool, out)
	default: // questions have a form of their own in each agent
		data, err := in.encode()
		return []Call{{Tool: tool, Input: data}}, err
	}
}

// The names of inputs. If a call has several of them with different values, it is refused.
var (
	pathKeys = []string{
		"file_path", "path", "absolute_path", "filePath", "filepath", "notebook_path", "dir_path", "target_file", "target_directory", "target_notebook", "directory_path", "dirPath", "uri",
	}
	contentKeys = []string{"content", "contents", "file_text", "new_source", "code_edit", "code", "text"}
	oldKeys     = []string{"old_string", "old_str", "oldString"}
	newKeys     = []string{"new_string", "new_str", "newString", "new_source", "insert_line_text", "content", "contents", "code_edit", "code", "file_text"}
	dirKeys     = []string{"workdir", "directory", "dir_path", "working_directory", "cwd"}
)

// one returns one call. The inputs in needed must not be empty: without them a guard has
// nothing to look at.
func one(tool string, in fields, needed ...string) ([]Call, error) {
	for _, key := range needed {
		if string(in[key]) == `""` || in[key] == nil {
			return nil, fmt.Errorf("its input has no %s", key)
		}
	}
	data, err := in.encode()
	return []Call{{Tool: tool, Input: data}}, err
}

func writeCall(in fields) ([]Call, error) {
	path, err := in.only(pathKeys...)
	if err != nil {
		return nil, err
	}
	content, err := in.only(contentKeys...)
	if err != nil {
		return nil, err
	}
	out := fields{}
	out.put("path", path)
	out.put("content", content)
	return one(toolWrite, out, "path")
}

func shellCalls(in fields) ([]Call, error) {
	plain := fields{}
	for _, key := range []string{"command", "cmd"} {
		plain[key] = in[key]
		var argv []string
		if json.Unmarshal(in[key], &argv) == nil && len(argv) > 0 { // Codex passes a list of arguments
			text := commandLine(argv)
			plain.put(key, &text)
		}
	}
	command, err := plain.only("command", "cmd")
	if err != nil {
		return nil, err
	}
	if command == nil {
		return nil, errors.New("its input has no command")
	}
	dir, err := in.only(dirKeys...)
	if err != nil {
		return nil, err
	}
	out := fields{}
	out.put("command", command)
	out.copy("description", in, "description")
	calls, err := one(toolShell, out, "command")
	if err != nil {
		return nil, err
	}
	if dir != nil {
		calls[0].Dir = *dir
	}
	files, err := patchInCommand(*command)
	for i := range files {
		files[i].Dir = calls[0].Dir
	}
	return append(calls, files...), err
}

// commandLine returns the command that a list of arguments runs. A shell that gets its
// command with -c is left out: guards look at the command.
func commandLine(argv []string) string {
	if len(argv) == 3 && slices.Contains([]string{"-c", "-lc", "-ic", "-Command"}, argv[1]) {
		switch filepath.Base(argv[0]) {
		case "sh", "bash", "zsh", "dash", "powershell", "pwsh":
			return argv[2]
		}
	}
	quoted := make([]string, 0, len(argv))
	for _, arg := range argv {
		quoted = append(quoted, shellQuoted(arg))
	}
	return strings.Join(quoted, " ")
}

func shellQuoted(arg string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	if arg != "" && !strings.ContainsFunc(arg, func(r rune) bool { return !plain(r) }) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

func readCalls(in fields) ([]Call, error) {
	path, err := in.only(pathKeys...)
	if err != nil {
		return nil, err
	}
	var many []string
	for _, key := range []string{"paths", "include", "file_paths"} {
		var some []string
		if json.Unmarshal(in[key], &some) != nil || len(some) == 0 {
			continue
		}
		if many != nil || path != nil {
			return nil, fmt.Errorf("its inputs have more than one list of files, and %s is one of them", key)
		}
		many = some
	}
	if many == nil {
		out := fields{}
		out.put("path", path)
		out.copy("offset", in, "offset", "start_line", "startLine")
		out.copy("limit", in, "limit")
		return one(toolRead, out, "path")
	}
	var calls []Call
	for _, path := range many {
		out, tool := fields{}, toolRead
		if strings.ContainsAny(path, "*?[{") { // a pattern reads what it matches, as grep does
			tool = toolGrep
			out.put("pattern", new("."))
			out.put("glob", &path)
		} else {
			out.put("path", &path)
		}
		data, err := out.encode()
		if err != nil {
			return nil, err
		}
		calls = append(calls, Call{Tool: tool, Input: data})
	}
	return calls, nil
}

func grepCalls(in fields) ([]Call, error) {
	out := fields{}
	path, err := in.only(pathKeys...)
	if err != nil {
		return nil, err
	}
	out.put("pattern", in.text("pattern", "query", "regex"))
	out.put("path", path)
	out.put("glob", in.text("glob", "include", "include_pattern", "includePattern"))
	out.copy("ignore_case", in, "-i", "ignore_case", "case_insensitive")
	out.copy("context", in, "-C", "context")
	out.copy("limit", in, "head_limit", "limit")
	switch mode := in.text("output_mode"); {
	case mode == nil:
	case *mode == "content" || *mode == "count":
		out.put("mode", map[string]*string{"content": new("lines"), "count": new("count")}[*mode])
	case *mode == "files_with_matches":
		out.put("mode", new("files"))
	}
	return one(toolGrep, out)
}

// changeCalls returns the calls for a tool that changes a file: with one change, with
// several, or with a patch.
func changeCalls(name string, in fields) ([]Call, error) {
	if name == "apply_patch" || name == "applypatch" {
		patch := in.text("command", "input", "patch", "patchText", "diff")
		if patch == nil {
			return nil, errors.New("its input has no patch")
		}
		return patchCalls(*patch)
	}
	top, err := in.only(pathKeys...)
	if err != nil {
		return nil, err
	}
	var calls []Call
	for _, edit := range append(in.list("edits"), in.list("replacements")...) {
		own, err := edit.only(pathKeys...)
		switch {
		case err != nil:
			return nil, err
		case own != nil && top != nil && *own != *top:
			return nil, fmt.Errorf("its inputs name two files, %s and %s", *top, *own)
		case own == nil:
			edit.put("path", top)
		}
		next, err := changeCall(edit)
		if err != nil {
			return nil, err
		}
		calls = append(calls, next...)
	}
	if len(calls) > 0 && in.text(oldKeys...) == nil && in.text(newKeys...) == nil {
		return calls, nil
	}
	own, err := changeCall(in) // an agent may use this change instead of the list
	return append(calls, own...), err
}

func changeCall(in fields) ([]Call, error) {
	path, err := in.only(pathKeys...)
	if err != nil {
		return nil, err
	}
	before, err := in.only(oldKeys...)
	if err != nil {
		return nil, err
	}
	after, err := in.only(newKeys...)
	if err != nil {
		return nil, err
	}
	out := fields{}
	out.put("path", path)
	if before == nil {
		before = new("") // a tool that inserts, deletes or replaces without saying what was there
	}
	if after == nil {
		after = new("")
	}
	out.put("old_string", before)
	out.put("new_string", after)
	out.copy("replace_all", in, "replace_all", "replaceAll", "allow_multiple")
	return one(toolEdit, out, "path")
}
