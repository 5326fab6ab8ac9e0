package config

import (
	"fmt"
	"strings"

	"github.com/belay-run/belay/permit"
)

// Template returns a settings file with all settings, each commented out.
func Template() string {
	var modes strings.Builder
	for _, m := range permit.Modes() {
		fmt.Fprintf(&modes, "#   %-11s %s\n", m.Name, m.Means())
	}
	return fmt.Sprintf(template, modes.String())
}

const template = `# Settings of this project for belay. Every line is optional; "belay doctor" shows the effective values and their sources.
# Order, later ones win: the user's own file, this file, variables (limits.steps is BELAY_LIMITS_STEPS), flags.
# Settings that loosen a limit (mode, budget, floor, sandbox, memory) or say where keys are work only in the user's own file, as a variable or as a flag.

# The model: PROVIDER/NAME, of anthropic, openai, gemini, openrouter, ollama, llama.cpp, vllm, lmstudio, or of one that
# the user's own file adds under "providers", with its URL and key. With a key in the environment there is a
# default; "belay models" lists providers and models.
# model: anthropic/claude-sonnet-4-5

# What the agent may do without asking; a project may tighten this, not loosen it:
%s# mode: strict

# Where sessions are kept, relative to this file.
# store: .belay/belay.db

# Instructions for the agent in this project.
# instructions: |
#   Run the tests before you say that you are done.

# The agent's tools. Default: all of them. ask_user lets it ask you questions.
# tools: [read, list, glob, grep, write, edit, shell, ask_user, todo_write]

# limits:
#   steps: 100                 # model calls per turn
#   parallel: 16               # tool calls that run at the same time
#   result_characters: 50000   # length of one tool result
#   tool: 5m                   # timeout of a tool
#   idle: 5m                   # retry the request if the model sends nothing for this long
#   listing_tokens: 4000       # size of the list of skills, and of the list of agents, in each request; default: 2 %% of the model's window, at least 2000

# budget:                      # a turn that reaches it ends
#   turn_tokens: 500000
#   turn_cost: 1.00            # US dollars
#   session_tokens: 5000000
#   session_cost: 10.00

# The floor: what runs without asking, what needs approval, what never runs. A project may ask and deny; allow, and the keys
# relax, roots and tools, work only in the user's own file. "belay permit rules" lists the rules, "belay permit explain"
# explains the decision about a call.
# permit:
#   rules: ["deny shell(git push *)", {rule: "ask *(path:migrations/**)", reason: "migrations are reviewed first"}]
#   guards: [{id: no-prod, tools: [shell], deny: 'prod-[0-9]+', reason: "production is off limits"}]

# sandbox:                     # confines the commands of the shell
#   mode: require              # auto (if the machine supports it), require (otherwise commands do not run), off (user's own file only)
# The resource limits of a command are set in the user's own file, or by a variable: sandbox.memory (default half of
# the machine's), sandbox.processes (4096) and sandbox.cpu_time (one hour for each CPU).
# network.private_hosts (host names of webhooks and MCP servers that may resolve to private addresses) and network.proxy are set there, too.

# skills:
#   enforce_allowed_tools: false # true: while a skill is active, only its allowed-tools may run

# The agent can read web pages with the tool web_fetch. The tool web_search needs a search engine. These settings work only in
# the user's own file, or as variables: web.search (searxng or brave), web.url (its address) and web.key_env (the variable with its key).

# Files are kept as they were before the agent changed them, so that "belay rewind" and the chat can bring them back.
# A project may keep more, not less.
# snapshots: all               # all, files (only what write and edit change, not commands) or off

# other_agents:                # files that were written for other coding agents, such as .claude and AGENTS.md
#   strict: false              # true: when one of their gates fails, it denies. Otherwise the agent's own rule applies: mostly, continue
# other_agents.ignore (which of these files have no effect: agents, commands, hooks, instructions, mcp, permissions, plugins,
# skills, or all) works only in the user's own file, or as a variable.

# memory:                      # remember facts across sessions, in a file of the user
#   mode: off                  # off, read (recall only), propose (new facts wait for "belay memory accept") or on

# hooks:
#   no_previews: false         # true: hooks at the end of a turn do not get the texts of the user and the model

# Other settings for hooks in files work only in the user's own file: hooks.disable, hooks.allow_commands and
# hooks.webhook_allowlist. "belay hooks list" shows which hooks run here.

# Settings of "belay serve" work only in the user's own file, or as variables: serve.listen (127.0.0.1:7717), serve.hosts
# (names of the server), serve.url (its address, for links in messages), serve.workers (4; 0 leaves turns to "belay worker"),
# serve.trust_proxy, serve.max_body (1MB), serve.connections (4096), serve.rate (500 requests in a second for each token)
# and serve.streams (2000 for each token). The key "channels" of the user's own file sends approvals to Slack, Telegram or a
# webhook. Also only there: server (use the server at this address instead of the sessions of the project) and token_file (the token for it). The variable BELAY_TOKEN
# has the token itself.

# approvals:
#   on_ask: wait               # wait (at a terminal, else park), park, or deny
#   expiry: 24h                # how long a question stays open

# retention:                   # what "belay store prune" keeps
#   age: 90d
#   size: 500MB
`
