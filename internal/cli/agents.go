package cli

import (
	"cmp"
	"strings"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/subagent"
	"github.com/spf13/cobra"
)

func (a *app) agentsCommand() *cobra.Command {
	agents := parent(&cobra.Command{
		Use:   "agents",
		Short: "List the agents that are declared in files, and run one",
		Long: "Each agent is declared in a file, in .belay/agents of the project or in the directory agents of the user's settings. The file\nis YAML, JSON or Markdown, with name, description, model, prompt, tools, skills, mode and budget. Other agents delegate tasks to\n" +
			"it with the tool invoke_subagent.",
		Example: `  belay agents list
  belay agents run reviewer "look at the last commit"`,
	})
	agents.AddCommand(a.listAgentsCommand(), a.runAgentCommand())
	return agents
}

func (a *app) listAgentsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the agents that are declared",
		Long:    "Lists the declared agents, including those of loaded spaces, and the mistakes in their files.",
		Example: "  belay agents list",
		Args:    arguments(0, 0, "agents list takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			own, problems := assembly.Agents(settings)
			spaces := assembly.SpacesHere(settings)
			declared := assembly.AddSpaceAgents(own, spaces)
			check, err := a.assembler().NewAgentCheck(cmd.Context(), settings)
			if err != nil {
				return err
			}
			var mistakes []subagent.Problem
			out := a.newList(asJSON, "AGENT", "MODEL", "TOOLS", "FROM", "WHAT FOR")
			for _, d := range declared {
				wrong := check.Mistakes(d)
				mistakes = append(mistakes, wrong...)
				line := inspect.AgentOf(d, spaces, wrong)
				tools := "all"
				if d.Tools != nil {
					tools = cmp.Or(strings.Join(d.Tools, ","), "none")
				}
				out.add(line, d.Name, cmp.Or(d.Model, "inherited"), oneLine(tools), a.onOut.dim(oneLine(assembly.RelativePath(settings, d.Path)+ofSpace(spaces, d.Path))), short(oneLine(d.Description), max(a.width-60, 30)))
			}
			a.assembler().ReportAgentProblems(settings, "not loaded", problems)
			a.assembler().ReportAgentProblems(settings, "has mistakes", mistakes)
			return out.end("no agents are declared: put a file into .belay/agents, see docs/subagents.md")
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object per line")
	return cmd
}

// agentNames returns the names of the declared agents, for shell completion.
func (a *app) agentNames() []string {
	settings, err := a.settings()
	if err != nil {
		return nil
	}
	var names []string
	declared, _ := assembly.Agents(settings)
	for _, d := range assembly.AddSpaceAgents(declared, assembly.SpacesHere(settings)) {
		names = append(names, d.Name)
	}
	return names
}

func (a *app) runAgentCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:     `run NAME "PROMPT"`,
		Short:   "Run a declared agent",
		Long:    "Runs one turn of a declared agent. `belay run` does the same with the agent that the settings describe.",
		Example: `  belay agents run reviewer "look at the last commit"`,
		Args:    arguments(2, 2, "name the agent, and give the task as one argument, in quotes"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.agentNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.agent = args[0]
			return a.run(cmd, &o, args[1:])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.as, "as", "", "give the new session this id")
	jsonFlag(cmd, &o.json, "print events as JSON lines")
	o.settingFlags(cmd)
	return cmd
}
