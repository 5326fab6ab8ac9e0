package dialect

// Contract says where the hooks of a vendor are defined.
type Contract struct {
	// Sources are what Belay was written from.
	Sources []Source
	// Conflicts are sentences for the docs: where sources differ, or where the documents and
	// the behaviour differ, and what Belay does.
	Conflicts []string
}

// Source is a document or a repository.
type Source struct {
	// Title says what it is, and Address is where it is.
	Title, Address string
	// Date is the day of the version that was read, or the month in which it was read.
	Date string
}

// Contract returns the sources of what Belay knows about the vendor's hooks.
func (v Vendor) Contract() Contract {
	switch v {
	case ClaudeCode:
		return Contract{
			Sources: []Source{
				{"hooks reference", claudeSource, "22 August 2026"},
				{"tools reference", "https://code.claude.com/docs/en/tools-reference", "22 August 2026"},
				{"plugins reference", "https://code.claude.com/docs/en/plugins-reference", "22 August 2026"},
				{"issues", "https://github.com/anthropics/claude-code/issues", "November 2026"},
			},
			Conflicts: []string{
				"Shell: the reference names both `sh -c` and bash as the shell of a command. Belay takes bash, and sh if there is no bash.",
				"`additionalContext` at tool events: some versions of Claude Code lose it ([#19432](https://github.com/anthropics/claude-code/issues/19432), [#43750](https://github.com/anthropics/claude-code/issues/43750), [#55889](https://github.com/anthropics/claude-code/issues/55889)). Belay follows the reference: the model reads it.",
				"`PreCompact`: the reference does not say that plain output becomes instructions for the summary, but Claude Code does it. Belay does it, too.",
				"`asyncRewake`: the reference says that it implies `async`, but some versions of Claude Code wait for such a hook ([#89960](https://github.com/anthropics/claude-code/issues/89960)). Belay follows the reference. Claude Code starts a turn if the session is idle; in Belay, the message waits for the next turn.",
				"`CLAUDE_TOOL_FILE_PATH` and `CLAUDE_FILE_PATHS`: the reference does not have them any more, but many hooks use them. Belay sets them.",
				"Exit code 1 with a valid JSON output: older versions ignored the output. Belay follows the reference and reads it, but such a hook never allows or changes a call. If a failure of the hook denies (`strict`, `onFailure: block`), only a denial, a stop or a question counts.",
			},
		}
	case Codex:
		return Contract{
			Sources: []Source{
				{"source code of the hooks", codexSource, "22 August 2026"},
				{"documentation of hooks", "https://developers.openai.com/codex/hooks", "November 2026"},
			},
			Conflicts: []string{
				"Outputs that Codex rejects, such as `permissionDecision: ask`: Codex counts the hook as failed and continues. Belay takes the stricter meaning.",
				"Exit code 2 without a reason: in the code it is a failure, and Codex continues. In Belay it denies.",
			},
		}
	case GeminiCLI:
		return Contract{
			Sources: []Source{
				{"hooks reference", geminiSource, "21 August 2026"},
				{"source code", "https://github.com/google-gemini/gemini-cli/tree/main/packages/core/src/hooks", "21 August 2026"},
			},
			Conflicts: []string{
				"Names of MCP tools: the reference has `mcp__server__tool`, and newer versions have `mcp_server_tool`. A matcher of either form sees the call.",
			},
		}
	case Cursor:
		return Contract{
			Sources: []Source{{"documentation of hooks", "https://cursor.com/docs/hooks", "November 2026"}},
			Conflicts: []string{
				"`permission: ask` at `preToolUse`: the schema accepts it, and the documentation says that it is not enforced. So a question denies there, and an approval waits.",
				"`timeout`: the documentation says seconds, and older texts say milliseconds. Belay installs its hooks without it.",
			},
		}
	case Copilot:
		return Contract{
			Sources: []Source{{"hooks reference", "https://docs.github.com/en/copilot/reference/hooks-reference", "November 2026"}},
			Conflicts: []string{
				"Exit codes at `preToolUse`: every code but 0 denies; the documentation of older versions said that Copilot continues. Belay denies with JSON and exit code 0, which is right in all versions.",
			},
		}
	default:
		return Contract{}
	}
}
