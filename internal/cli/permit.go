package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/permit"
	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"
)

func (a *app) permitCommand() *cobra.Command {
	cmd := parent(&cobra.Command{
		Use:   "permit",
		Short: "Show what the floor allows, and why",
		Long: `Every tool call passes the floor: guards, protections, rules and the mode decide whether it runs, needs approval or is
denied. Hooks can only make that stricter. Shell commands also run in a sandbox, if the
machine has one. These commands show the rules that apply here, and what the floor decides about a call, without running anything.`,
		Example: `  belay permit explain -- git push --force
  belay permit rules`,
	})
	cmd.AddCommand(a.permitExplain(), a.permitRules())
	return cmd
}

func (a *app) permitExplain() *cobra.Command {
	var tool, input, mode string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain [--tool TOOL --input JSON | -- COMMAND...]",
		Short: "Show what the floor decides about a call, and why",
		Long: `Shows which zone a call is in, what it does, which rules apply and which one decides, and how a command would
run. COMMAND is a shell command: a single argument is used as it is, several arguments are the words of the command. Nothing runs.`,
		Example: `  belay permit explain -- git push --force
  belay permit explain 'curl https://example.com | sh' --mode build
  belay permit explain --json --tool read --input '{"path": ".env"}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			call, err := callToExplain(tool, input, args)
			if err != nil {
				return err
			}
			settings, err := a.settings()
			if err == nil && mode != "" {
				err = settings.Override("mode", "mode", mode)
			}
			if err != nil {
				return asUsage(err)
			}
			return a.explain(cmd.Context(), settings, call, asJSON)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &exitError{code: exitUsage, err: unknownFlag(cmd, err), hint: "if this is a flag of the COMMAND, put -- before the COMMAND: belay permit explain -- git push -f"}
	})
	flags := cmd.Flags()
	flags.StringVar(&tool, "tool", "", "the tool that is called; shell if left out")
	flags.StringVar(&input, "input", "", "the input of the call, as JSON")
	flags.StringVar(&mode, "mode", "", "use this mode instead of the one in the settings: "+strings.Join(config.ModeNames(), ", "))
	jsonFlag(cmd, &asJSON, "print one JSON object")
	complete(cmd, "mode", config.ModeNames())
	complete(cmd, "tool", []string{"read", "list", "glob", "grep", "write", "edit", "shell"})
	return cmd
}

type explainedCall struct {
	tool  string
	input json.RawMessage
}

// callToExplain returns the call that the command line describes.
func callToExplain(tool, input string, words []string) (explainedCall, error) {
	call := explainedCall{cmp.Or(tool, "shell"), json.RawMessage(input)}
	switch {
	case len(words) > 0 && input != "":
		return call, usage("give a COMMAND or --input, not both")
	case len(words) > 0 && call.tool != "shell":
		return call, usage("a COMMAND is for the shell: use --input for %s", call.tool)
	case len(words) == 0 && input == "":
		return call, &exitError{
			code: exitUsage, err: errors.New("there is no call to explain: give a shell COMMAND, or --tool and --input"),
			hint: `such as: belay permit explain -- git push --force`,
		}
	case len(words) == 0 && !json.Valid(call.input):
		return call, usage(`--input is not JSON: write %s`, `'{"path": "notes.md"}'`)
	case len(words) == 0:
		return call, nil
	}
	command := words[0]
	if len(words) > 1 {
		quoted := make([]string, len(words))
		for i, word := range words {
			var err error
			if quoted[i], err = syntax.Quote(word, syntax.LangBash); err != nil {
				return call, usage("%q cannot be a word of a command: %w", word, err)
			}
		}
		command = strings.Join(quoted, " ")
	}
	var err error
	call.input, err = json.Marshal(struct {
		Command string `json:"command"`
	}{command})
	if err != nil {
		return call, fmt.Errorf("input: %w", err)
	}
	return call, nil
}

// asUsage turns an error into a usage error, unless it already is one.
func asUsage(err error) error {
	if exitCode(err) == exitUsage {
		return err
	}
	return usage("%w", err)
}

// explained is the explanation of a call. --json prints it.
type explained struct {
	*permit.Explanation

	Decision string `json:"decision"`
	// Pattern covers this call and similar calls.
	Pattern string `json:"pattern,omitempty"`
	// Runs says how a command would run.
	Runs string `json:"runs,omitempty"`
}

func (a *app) explain(ctx context.Context, settings *config.Loaded, call explainedCall, asJSON bool) error {
	f, err := a.assembler().NewFloor(ctx, settings, assembly.SpillDir(settings))
	if err != nil {
		return err
	}
	if err := f.CheckTool(call.tool); err != nil {
		return usage("%s", strings.NewReplacer("permit: ", "", " (Options.Tools)", "").Replace(err.Error()))
	}
	declared, err := assembly.DeclaredTools(settings)
	if err != nil {
		return err
	}
	for _, odd := range unknownFields(declared, call.tool, call.input) {
		a.warn(odd)
	}
	in := f.Of(nil)
	e := in.Explain(ctx, call.tool, call.input)
	told := explained{Explanation: e, Decision: cmp.Or(string(e.Decision), "pass"), Runs: f.Confinement(e)}
	if e.Decision == belay.ToolAsk {
		told.Pattern = in.Suggest(ctx, call.tool, call.input)
	}
	if e.Decision == belay.ToolDeny {
		told.Runs = ""
	}
	if asJSON {
		return a.printJSON(told)
	}
	var text bytes.Buffer
	text.WriteString(e.String())
	if told.Pattern != "" {
		fmt.Fprintf(&text, "  a pattern for such calls: %s\n", told.Pattern)
	}
	if told.Runs != "" {
		fmt.Fprintf(&text, "  would run %s\n", told.Runs)
	}
	if _, err := fmt.Fprint(a.out, visible.All(text.String())); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
