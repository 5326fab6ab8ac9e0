package declare_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
)

// SPEC B-07
func TestAHookInTheDialectOfAnotherAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, fault string }{
		"a hook":             {"phase: tool.pre, dialect: {agent: claude-code, event: PreToolUse, matcher: Bash}, command: [x]", ""},
		"another agent":      {"phase: tool.pre, dialect: {agent: claude, event: PreToolUse}, command: [x]", `did you mean "claude-code"`},
		"no hooks there":     {"phase: tool.pre, dialect: {agent: cursor, event: preToolUse}, command: [x]", `no agent "cursor" whose hooks Belay runs`},
		"another event":      {"phase: tool.pre, dialect: {agent: claude-code, event: PreTool}, command: [x]", `did you mean "PreToolUse"`},
		"an event of no use": {"phase: tool.pre, dialect: {agent: claude-code, event: WorktreeCreate}, command: [x]", "runs no hooks"},
		"another phase":      {"phase: turn.stop, dialect: {agent: claude-code, event: PreToolUse}, command: [x]", "event of the phase tool.pre"},
		"no command":         {"phase: tool.pre, dialect: {agent: claude-code, event: PreToolUse}, action: deny", "works only for commands"},
		"a when":             {"phase: tool.pre, dialect: {agent: claude-code, event: PreToolUse}, match: {when: 'true'}, command: [x]", "has no when"},
		"a phase that moved": {"phase: subagent.stop, dialect: {agent: claude-code, event: SubagentStop}, command: [x]", "write phase: turn.stop (files of an older `belay import`"},
		"a copy that wakes":  {`phase: tool.pre, dialect: {agent: claude-code, event: PreToolUse, async: true, rewake: true, original: "c1413ab9379d"}, failure: open, command: [x]`, ""},
		"rewake alone":       {"phase: tool.pre, dialect: {agent: claude-code, event: PreToolUse, rewake: true}, failure: open, command: [x]", "rewake works only with async: true"},
		"async":              {"phase: tool.pre, dialect: {agent: claude-code, event: PreToolUse, async: true}, failure: open, command: [x]", ""},
		"async and closed":   {"phase: tool.pre, failure: closed, dialect: {agent: claude-code, event: PreToolUse, async: true}, command: [x]", "failure: closed has no effect"},
		"closed and async":   {"phase: tool.pre, dialect: {agent: claude-code, event: PreToolUse, async: true}, failure: closed, command: [x]", "failure: closed has no effect"},
		"async, a fallback":  {"phase: tool.pre, dialect: {agent: claude-code, event: PreToolUse, async: true}, failure: {fallback: {decision: deny, reason: x}}, capabilities: [block], command: [x]", "failure: fallback has no effect"},
		"async, a denial":    {"phase: tool.pre, dialect: {agent: claude-code, event: PreToolUse, async: true}, capabilities: [block, audit], command: [x]", "it cannot use the capabilities block"},
		"async, a record":    {"phase: tool.pre, dialect: {agent: claude-code, event: PreToolUse, async: true}, capabilities: [audit], command: [x]", ""},
		"a message":          {"phase: turn.stop, dialect: {agent: claude-code, event: Stop, async: true, rewake: true, rewake_message: look}, command: [x]", ""},
		"a lonely message":   {"phase: turn.stop, dialect: {agent: claude-code, event: Stop, async: true, rewake_message: look}, command: [x]", "rewake_message works only with rewake: true"},
		"an unknown key":     {"phase: tool.pre, dialect: {agent: claude-code, event: PreToolUse, match: x}, command: [x]", `unknown key "match"`},
	} {
		_, err := declare.Parse("hooks.yaml", []byte("hooks:\n  - {id: a, "+c.text+"}\n"))
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v, want %q", name, err, c.fault)
		}
	}
}

// A hook that a program makes is not checked by Parse.
func TestAsyncAndClosedContradict(t *testing.T) { // SPEC B-02
	t.Parallel()
	for _, failure := range []hook.Failure{{}, hook.Open, hook.Closed} {
		d := &declare.Declaration{
			ID: "a", Phase: "tool.pre", File: "x", Line: 1, Dir: t.TempDir(), Kind: hook.HandlerCommand, Argv: []string{"x"},
			Dialect: &declare.Dialect{Agent: dialect.ClaudeCode, Event: "PreToolUse", Async: true}, Options: hook.Options{Failure: failure},
		}
		_, err := declare.New([]*declare.Declaration{d}, hook.Origin{Kind: hook.OriginOperator}, &declare.Options{Speak: func(*declare.Declaration) error { return nil }})
		if (err != nil) != (failure == hook.Closed) || err != nil && !strings.Contains(err.Error(), "failure: closed has no effect") {
			t.Errorf("failure %s: the error is %v", failure, err)
		}
	}
}

// A program that does not know the dialect must not run the command as one of Belay's.
func TestAnUnknownDialectIsAMistake(t *testing.T) { // SPEC B-07
	t.Parallel()
	list, err := declare.Parse("hooks.yaml", []byte("hooks:\n  - {id: a, phase: tool.pre, dialect: {agent: claude-code, event: PreToolUse}, command: [x]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := declare.New(list, hook.Origin{Kind: hook.OriginOperator}, nil); err == nil || !strings.Contains(err.Error(), "does not know the hooks of Claude Code") {
		t.Errorf("the error is %v", err)
	}
}
