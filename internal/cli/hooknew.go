package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/phasejson"
	"github.com/spf13/cobra"
)

var hookID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// newHook describes the hook to write.
type newHook struct {
	id     string
	phase  string
	tools  []string
	user   bool
	worker bool
	// withTool reports whether the phase is about a tool call.
	withTool bool
}

func (a *app) newHookCommand() *cobra.Command {
	var h newHook
	var tools string
	cmd := &cobra.Command{
		Use:   "new ID",
		Short: "Write a first hook: a file and a script",
		Long: `Writes a file that declares a hook, and the script that it runs, into .belay/hooks of the project, or with --user into the
user's settings. Then it prints how to try the hook. With --worker the script is a Python program that keeps running and
answers many calls.

A hook of a project runs only after you have trusted it. Its id has the prefix project/: "hooks new no-prod" makes
project/no-prod.`,
		Example: `  belay hooks new no-prod --tools write,edit
  belay hooks new greet --phase user.prompt.submit --user`,
		Args: arguments(1, 1, "give the hook an ID, such as no-prod"),
		RunE: func(_ *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			h.id, h.tools = args[0], strings.FieldsFunc(tools, func(r rune) bool { return r == ',' || r == ' ' })
			if !hookID.MatchString(h.id) {
				return usage("id %q: a hook's id is made of letters, digits, dots, hyphens and underscores", h.id)
			}
			if !slices.Contains(phaseNames(), h.phase) {
				return usage("there is no phase %q%s: `belay hooks phases` lists them", h.phase, near.Hint(h.phase, phaseNames()))
			}
			wire, err := phasejson.New(h.phase)
			if err != nil {
				return err
			}
			if h.withTool = slices.Contains(wire.Info().Labels, "tool"); len(h.tools) > 0 && !h.withTool {
				return usage("--tools: %s is not about a tool call: leave the flag out, or choose another phase, such as tool.pre", h.phase)
			}
			dir := filepath.Join(assembly.ProjectPlace(settings), "hooks")
			if h.user {
				if settings.UserDir == "" {
					return usage("--user: there is no directory for the user's settings: set HOME")
				}
				dir = filepath.Join(settings.UserDir, "hooks")
			}
			return a.newHook(settings, dir, &h)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&h.phase, "phase", belay.ToolPre.Name(), "the phase at which the hook runs: `belay hooks phases` lists the phases")
	flags.StringVar(&tools, "tools", "", "run the hook only for these tools, separated by commas")
	flags.BoolVar(&h.user, "user", false, "write the hook into the user's settings, for all projects")
	flags.BoolVar(&h.worker, "worker", false, "write a script that keeps running and answers many calls (needs python3)")
	complete(cmd, "phase", phaseNames())
	return cmd
}

func (a *app) newHook(s *config.Loaded, dir string, h *newHook) error {
	check, err := inspect.NewHookCheck(s)
	if err != nil {
		return err
	}
	for _, name := range h.tools {
		if odd := check.Tool(name); odd != "" {
			a.remarkf("%s --tools: %s", a.onErr.yellow("warning:"), odd)
		}
	}
	file, script := filepath.Join(dir, h.id+".yaml"), filepath.Join(dir, h.script())
	for _, path := range []string{file, script} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s exists already: choose another id, or edit that file", assembly.ShownPath(s, path))
		}
	}
	example, err := h.call()
	if err != nil {
		return err
	}
	call, err := json.Marshal(example)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(h.declaration()), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(script, []byte(h.text()), 0o700); err != nil {
		return err
	}
	id, next := "project/"+h.id, "trust the hook now, and again after each change:\n  belay trust\n"
	if h.user {
		id, next = h.id, ""
	}
	fmt.Fprintf(a.out, "%s\n%s\n\nshadow mode: Belay runs the hook and records its answer, but ignores the answer until you delete the line shadow: true\n%stry it:\n  echo '%s' | belay hooks try %s --input -\nsee when it runs:\n  belay hooks plan %s\n", assembly.ShownPath(s, file), assembly.ShownPath(s, script), next, call, id, h.phase)
	return nil
}

func (h *newHook) script() string {
	if h.worker {
		return h.id + ".py"
	}
	return h.id + ".sh"
}

// guards reports whether the hook is at tool.pre. The template of such a hook denies
// calls to production.
func (h *newHook) guards() bool { return h.phase == belay.ToolPre.Name() }

// commands reports whether the hook is only for calls of the tool "shell". The input of
// such a call has a command and no path.
func (h *newHook) commands() bool { return slices.Equal(h.tools, []string{"shell"}) }

// declaration returns the text of the YAML file. The key match has the conditions that
// need no program.
func (h *newHook) declaration() string {
	var b strings.Builder
	fmt.Fprintf(&b, "hooks:\n  - id: %s\n    phase: %s\n", h.id, h.phase)
	if len(h.tools) > 0 || h.guards() {
		b.WriteString("    match:\n")
	}
	if len(h.tools) > 0 {
		fmt.Fprintf(&b, "      tools: [%s]\n", strings.Join(h.tools, ", "))
	}
	switch {
	case h.guards() && h.commands():
		b.WriteString(`      # The script runs only if this is true. A command can be written in many ways, so this condition does not catch all of them.
      when: 'args.command.contains("/srv/prod")'
`)
	case h.guards():
		b.WriteString(`      # The script runs only if this is true. clean() removes //, . and .. from a path. It does not follow links.
      when: 'has(args.path) && (clean(args.path) + "/").startsWith("/srv/prod/")'
`)
	}
	if h.worker {
		fmt.Fprintf(&b, "    worker: [./%s]\n", h.script())
	} else {
		fmt.Fprintf(&b, "    run: ./%s\n", h.script())
	}
	b.WriteString("    timeout: 5s\n    shadow: true   # runs and is recorded, but changes nothing. Delete this line when the hook works\n")
	return b.String()
}

// call returns an example input for "hooks try", with the required fields of the phase.
func (h *newHook) call() (map[string]any, error) {
	described, err := phasejson.Describe(h.phase)
	if err != nil {
		return nil, err
	}
	var schema struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type string   `json:"type"`
			Enum []string `json:"enum"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(described.Input, &schema); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", h.phase, err)
	}
	tool := "write"
	if len(h.tools) > 0 && !strings.ContainsAny(h.tools[0], "*?[") {
		tool = h.tools[0]
	}
	input := map[string]any{"path": "/srv//prod/notes.md"}
	if tool == "shell" {
		input = map[string]any{"command": "ls /srv/prod"}
	}
	call := make(map[string]any)
	for _, name := range schema.Required {
		switch p := schema.Properties[name]; {
		case name == "tool":
			call[name] = tool
		case name == "input":
			call[name] = input
		case name == "id":
			call[name] = "call-1"
		case name == "text":
			call[name] = "hello"
		case len(p.Enum) > 0:
			call[name] = p.Enum[0]
		case p.Type == "string":
			call[name] = "some " + name
		case p.Type == "integer", p.Type == "number":
			call[name] = 1
		case p.Type == "boolean":
			call[name] = false
		case p.Type == "array":
			call[name] = []any{}
		default:
			call[name] = map[string]any{}
		}
	}
	return call, nil
}

// says returns what exit code 2 means at the phase, and an example of a JSON answer.
func (h *newHook) says() (exit, object string) {
	wire, err := phasejson.New(h.phase)
	switch {
	case h.phase == belay.TurnStop.Name():
		return "the turn continues; standard error is the reason", `{"decision": "continue", "reason": "…"}`
	case err == nil && wire.Info().Kind == hook.Gate:
		return "deny; standard error is the reason", `{"decision": "deny", "reason": "…"}`
	case err == nil && wire.Info().Kind == hook.Collect:
		return "recorded, but stops nothing at this phase", `{"context": [{"text": "…"}]}`
	default:
		return "recorded, but stops nothing at this phase", `{"output": "…"}`
	}
}

func (h *newHook) text() string {
	rest := "\n# Users see what the script prints.\necho \"" + h.id + " was at $BELAY_PHASE\"\n"
	if h.guards() {
		rest = "\n# The match in the YAML file selects the calls, and the script denies all of them. A script can also check the machine first:\n#   [ -e /srv/prod/UNLOCKED ] && exit 0\necho \"production is off limits\" >&2\nexit 2\n"
	}
	if !h.worker {
		exit, object := h.says()
		read := "field=$(jq -r .input.FIELD)"
		if h.withTool {
			read = "tool=$(jq -r .input.tool)"
		}
		if h.guards() {
			read = "path=$(jq -r .input.input.path)\n# Do not search the text for a path: other fields hold paths too, and a path can be written in many ways."
		}
		return fmt.Sprintf(newScript, h.phase, h.phase, read, exit, object) + rest
	}
	answer := `{"output": "` + h.id + ` was at ` + h.phase + `"}  # users see it`
	if h.guards() {
		answer = `{"decision": "deny", "reason": "production is off limits"}  # None: no opinion`
	}
	return fmt.Sprintf(newWorker, h.phase, h.phase, answer)
}

const newScript = `#!/bin/sh
# Standard input is one JSON object: {"phase": %q, "session": …, "cwd": …, "input": …}. The schema of "input":
#   belay hooks schema %s
# This script does not read it. To read a field:
#   %s
# How to answer:
#   Exit 0 and print nothing: no opinion
#   Exit 2: %s
#   Or print one JSON object and exit 0: %s
`

const newWorker = `#!/usr/bin/env python3
# A worker reads one JSON object per line from standard input, and writes one answer per line to standard output.
# Write messages for people to standard error. The worker ends when standard input ends.
import json
import sys


def answer(envelope):
    # envelope["input"] is the input of %s. Its schema: belay hooks schema %s
    return %s


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue  # a cancel: nothing to do, this worker answers at once
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        reply["result"] = {"v": 1} if message["method"] == "hello" else answer(message["params"])
    except Exception as error:  # the run fails; at a gate, a failed run denies
        reply["error"] = {"code": -32000, "message": repr(error)}
    print(json.dumps(reply), flush=True)
`
