package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/dialect"
)

// Setup says how an agent is told to call Belay.
type Setup struct {
	agent dialect.Vendor
	// Project is the file of the project, relative to the project. User is the file of the
	// user, relative to the home directory.
	Project, User string
	// Note says what the user must do after the installation. It may be empty.
	Note   string
	empty  string // the content of a new file, before hooks are added
	events []string
	entry  func(command, event string) any
}

// gates are the events at which the installed command must block if Belay itself cannot
// run, for example because it was removed.
var gates = []string{"PreToolUse", "UserPromptSubmit", "BeforeTool", "BeforeAgent", "preToolUse", "beforeSubmitPrompt"}

type commandEntry struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

type matcherEntry struct {
	Matcher string         `json:"matcher,omitempty"`
	Hooks   []commandEntry `json:"hooks"`
}

// cursorEntry has no timeout: sources contradict each other about its unit.
type cursorEntry struct {
	Command    string `json:"command"`
	FailClosed bool   `json:"failClosed,omitempty"`
}

type copilotEntry struct {
	Type    string `json:"type"`
	Bash    string `json:"bash"`
	Timeout int    `json:"timeoutSec"`
}

// hookSeconds is the time limit of the installed command. Belay's hooks have their own.
const hookSeconds = 60

// claudeEntry is an entry of Claude Code or Codex, with a timeout in seconds.
func claudeEntry(command, event string) any {
	matcher := ""
	if strings.HasSuffix(event, "ToolUse") || strings.HasSuffix(event, "Failure") {
		matcher = "*"
	}
	return matcherEntry{matcher, []commandEntry{{"command", command, hookSeconds}}}
}

// SetupOf returns how to set up an agent.
func SetupOf(agent dialect.Vendor) (Setup, error) {
	plain, versioned := "{\n}\n", "{\n  \"version\": 1\n}\n"
	switch agent {
	case dialect.ClaudeCode:
		return Setup{
			agent: agent, Project: ".claude/settings.json", User: ".claude/settings.json", empty: plain, entry: claudeEntry,
			events: []string{"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SubagentStop", "SessionStart", "SessionEnd", "PreCompact"},
			Note:   "Claude Code reads its hooks when it starts: start it again. /hooks shows them.",
		}, nil
	case dialect.Codex:
		return Setup{
			agent: agent, Project: ".codex/hooks.json", User: ".codex/hooks.json", empty: plain, entry: claudeEntry,
			events: []string{"PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop", "SessionStart", "PreCompact"},
			Note:   "Codex runs hooks only after you have trusted them: start Codex and enter /hooks. Older versions also need codex_hooks = true under [features] in config.toml.",
		}, nil
	case dialect.GeminiCLI:
		return Setup{
			agent: agent, Project: ".gemini/settings.json", User: ".gemini/settings.json", empty: plain,
			entry: func(command, event string) any {
				matcher := ""
				if strings.HasSuffix(event, "Tool") {
					matcher = ".*"
				}
				return matcherEntry{matcher, []commandEntry{{"command", command, hookSeconds * 1000}}} // milliseconds
			},
			events: []string{"BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "SessionStart", "SessionEnd", "PreCompress"},
			Note:   "Gemini CLI reads its hooks when it starts: start it again. /hooks shows them.",
		}, nil
	case dialect.Cursor:
		return Setup{
			agent: agent, Project: ".cursor/hooks.json", User: ".cursor/hooks.json", empty: versioned,
			entry: func(command, event string) any {
				return cursorEntry{command, slices.Contains(gates, event)}
			},
			events: []string{"preToolUse", "postToolUse", "beforeSubmitPrompt", "stop", "subagentStop", "sessionStart", "sessionEnd", "preCompact"},
			Note:   "The settings of Cursor have a tab with its hooks.",
		}, nil
	case dialect.Copilot:
		return Setup{
			agent: agent, Project: ".github/hooks/belay.json", User: ".copilot/hooks/belay.json", empty: versioned,
			entry:  func(command, _ string) any { return copilotEntry{"command", command, hookSeconds} },
			events: []string{"preToolUse", "postToolUse", "postToolUseFailure", "userPromptSubmitted", "agentStop", "subagentStop", "sessionStart", "sessionEnd", "preCompact"},
		}, nil
	default:
		return Setup{}, fmt.Errorf("there is no setup for the agent %q", agent)
	}
}

// command returns the command for an event. program is the shell word for Belay.
func (s Setup) command(program, event string) string {
	line := program + " hook --agent " + string(s.agent)
	if s.agent == dialect.Copilot {
		line += " --event " + event
		if slices.Contains(gates, event) { // Copilot continues after a failed command
			line += ` || echo '{"permissionDecision":"deny","permissionDecisionReason":"belay hook failed"}'`
		}
		return line
	}
	if slices.Contains(gates, event) { // the agents continue after every exit code except 2
		line += " || exit 2"
	}
	return line
}

// ours reports whether an entry of a list calls Belay as this agent's hook.
func (s Setup) ours(entry []byte) bool {
	var found bool
	var look func(value any)
	look = func(value any) {
		switch value := value.(type) {
		case string:
			words := strings.Fields(value)
			for i := 0; i+3 < len(words); i++ {
				name := strings.Trim(filepath.Base(words[i]), `'"`)
				found = found || name == "belay" && words[i+1] == "hook" && words[i+2] == "--agent" && words[i+3] == string(s.agent)
			}
		case []any:
			for _, v := range value {
				look(v)
			}
		case map[string]any:
			for _, v := range value {
				look(v)
			}
		}
	}
	var value any
	if json.Unmarshal(entry, &value) == nil {
		look(value)
	}
	return found
}

// Install returns the text of the agent's file with Belay's hooks. A nil text means that
// there is no file. Install changes no other byte of the file, and adds nothing that is
// there already. program is the shell word for Belay.
func (s Setup) Install(text []byte, program string) ([]byte, error) {
	if strings.TrimSpace(string(text)) == "" {
		text = []byte(s.empty)
	}
	for _, event := range s.events {
		hooks, err := s.hooks(text)
		if err != nil {
			return nil, err
		}
		entry, err := json.Marshal(s.entry(s.command(program, event), event))
		if err != nil {
			return nil, fmt.Errorf("encode the hook: %w", err)
		}
		entry = unescaped(entry)
		list, listed := member{}, false
		if hooks != nil {
			list, listed = hooks.find(event)
		}
		switch {
		case hooks == nil:
			top, err := readObject(text, 0)
			if err != nil {
				return nil, err
			}
			text = top.add(text, "hooks", "{"+newline(1)+`"`+event+`": [`+string(entry)+"]"+newline(0)+"}", 0)
		case !listed:
			text = hooks.add(text, event, "["+string(entry)+"]", 1)
		default:
			elements, err := readArray(text, list.start)
			if err != nil {
				return nil, fmt.Errorf("hooks.%s: %w", event, err)
			}
			if !slices.ContainsFunc(elements.members, func(m member) bool { return s.ours(text[m.start:m.end]) }) {
				text = elements.append(text, string(entry))
			}
		}
	}
	return text, nil
}

// unescaped writes the characters <, > and & as they are, for people who read the file.
func unescaped(data []byte) []byte {
	return []byte(strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(string(data)))
}

// hooks returns the object with the hooks, or nil if there is none.
func (s Setup) hooks(text []byte) (*container, error) {
	top, err := readObject(text, 0)
	if err != nil {
		return nil, err
	}
	m, ok := top.find("hooks")
	if !ok {
		return nil, nil //nolint:nilnil // there is none
	}
	hooks, err := readObject(text, m.start)
	if err != nil {
		return nil, fmt.Errorf("hooks: %w", err)
	}
	return hooks, nil
}

// Installed returns the events for which a file has Belay's hooks, and those for which it
// has none.
func (s Setup) Installed(text []byte) (has, lacks []string, err error) {
	if strings.TrimSpace(string(text)) == "" {
		return nil, s.events, nil
	}
	hooks, err := s.hooks(text)
	if err != nil {
		return nil, nil, err
	}
	for _, event := range s.events {
		if hooks != nil && s.listed(text, hooks, event) {
			has = append(has, event)
		} else {
			lacks = append(lacks, event)
		}
	}
	return has, lacks, nil
}

func (s Setup) listed(text []byte, hooks *container, event string) bool {
	list, ok := hooks.find(event)
	if !ok {
		return false
	}
	elements, err := readArray(text, list.start)
	return err == nil && slices.ContainsFunc(elements.members, func(m member) bool { return s.ours(text[m.start:m.end]) })
}

// Uninstall returns the text of the agent's file without Belay's hooks. It returns nil if
// nothing is left of a file that Install created. If nobody has changed the file since
// Install, the result is the text before Install.
func (s Setup) Uninstall(text []byte) ([]byte, error) {
	for {
		next, err := s.removeOne(text)
		if err != nil {
			return nil, err
		}
		if next == nil {
			break
		}
		text = next
	}
	if string(text) == s.empty {
		return nil, nil
	}
	return text, nil
}

// removeOne removes the first of Belay's entries, or returns nil if there is none.
func (s Setup) removeOne(text []byte) ([]byte, error) {
	hooks, err := s.hooks(text)
	if err != nil || hooks == nil {
		return nil, err
	}
	for i, list := range hooks.members {
		elements, err := readArray(text, list.start)
		if err != nil {
			continue // not a list of hooks
		}
		for j, m := range elements.members {
			if !s.ours(text[m.start:m.end]) {
				continue
			}
			if group, err := readObject(text, m.start); err == nil { // an entry of the user in the same group stays
				if inner, ok := group.find("hooks"); ok {
					if own, err := readArray(text, inner.start); err == nil && len(own.members) > 1 {
						at := slices.IndexFunc(own.members, func(one member) bool { return s.ours(text[one.start:one.end]) })
						return own.remove(text, at), nil
					}
				}
			}
			switch {
			case len(elements.members) > 1 || !elements.tight():
				return elements.remove(text, j), nil
			case len(hooks.members) > 1:
				return hooks.remove(text, i), nil
			default:
				return s.removeHooks(text, hooks, i)
			}
		}
	}
	return nil, nil
}

// removeHooks removes the last event, and the object hooks if Install created it.
func (s Setup) removeHooks(text []byte, hooks *container, i int) ([]byte, error) {
	if !strings.HasPrefix(string(text[hooks.open:]), "{"+newline(1)+`"`) {
		return hooks.remove(text, i), nil
	}
	top, err := readObject(text, 0)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(top.members, func(m member) bool { return m.key == "hooks" })
	if at < 0 {
		return nil, errors.New("the object hooks is gone")
	}
	return top.remove(text, at), nil
}
