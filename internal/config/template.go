package config

import (
	"fmt"
	"strings"

	"github.com/belay-run/belay/permit"
)

// Template is a file that says what can be set. All of it is commented out.
func Template() string {
	var modes strings.Builder
	for _, m := range permit.Modes() {
		fmt.Fprintf(&modes, "#   %-11s %s\n", m.Name, m.Means())
	}
	return fmt.Sprintf(template, modes.String())
}

const template = `# Settings of this project for belay. Every line is optional; "belay doctor" shows what is in force and from where.
# The user's own file comes first, then this one, then variables (limits.steps is BELAY_LIMITS_STEPS), then flags.
# What loosens (mode, budget, floor, sandbox, memory) or tells where keys are counts only in the user's own file, as a variable or as a flag.

# Which model to ask: PROVIDER/NAME, of anthropic, openai, gemini, openrouter, ollama, llama.cpp, vllm, lmstudio, or of one that
# the user's own file sets under "providers", which says where servers and keys are. With a key in the environment there is a
# default; "belay models" shows all of it.
# model: anthropic/claude-sonnet-4-5

# How far the agent may go by itself; a project may tighten this, not loosen it:
%s# mode: strict

# Where sessions are kept, seen from this file.
# store: .belay/belay.db

# What the agent is told about its work here.
# instructions: |
#   Run the tests before you say that you are done.

# Which tools it has. Without this line: all of them. With ask_user it asks you something.
# tools: [read, list, glob, grep, write, edit, shell, ask_user]

# limits:
#   steps: 100                 # model calls of a turn
#   parallel: 16               # calls of one response at a time
#   result_characters: 50000   # of one tool result
#   tool: 5m                   # how long a tool may run
#   idle: 5m                   # how long a model may send nothing before the request is made again
#   listing_tokens: 4000       # of the list of skills, and of that of agents, in each request; default: 2 %% of the model's window, at least 2000

# budget:                      # a turn that reaches it ends
#   turn_tokens: 500000
#   turn_cost: 1.00            # US dollars
#   session_tokens: 5000000
#   session_cost: 10.00

# The floor: what may run by itself, what is asked about, what never runs. A project may ask and deny; allow, and the keys
# relax, roots and tools, count only in the user's own file. "belay permit rules" shows what holds, "belay permit explain"
# what it says about a call.
# permit:
#   rules: ["deny shell(git push *)", {rule: "ask *(path:migrations/**)", reason: "migrations are reviewed first"}]
#   guards: [{id: no-prod, tools: [shell], deny: 'prod-[0-9]+', reason: "production is off limits"}]

# sandbox:                     # confines the commands of the shell
#   mode: require              # auto (where the machine can), require (else they do not run), off (user's own file only)
# How much of the machine a confined command may use is set in the user's own file, or by a variable: sandbox.memory (half of
# the machine's if not set), sandbox.processes (4096) and sandbox.cpu_time (one hour for each CPU).
# So are network.private_hosts (host names of webhooks and MCP servers that may lead to private addresses) and network.proxy.

# skills:
#   enforce_allowed_tools: false # whether the allowed-tools of an active skill is a limit

# memory:                      # whether facts are remembered across sessions, in a file of the user's
#   mode: off                  # off, read (recall alone), propose (what is new waits for "belay memory accept") or on

# Switches about hooks that files declare are the user's alone: hooks.disable, hooks.allow_commands and
# hooks.webhook_allowlist. "belay hooks list" shows which hooks run here.

# approvals:
#   on_ask: wait               # wait (at a terminal, else park), park, or deny
#   expiry: 24h                # how long a question stands

# retention:                   # what "belay store prune" keeps
#   age: 90d
#   size: 500MB
`
