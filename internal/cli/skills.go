package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/space"
	"github.com/spf13/cobra"
)

// ofSpace returns a suffix with the space that contains a file, or "".
func ofSpace(spaces []*space.Space, file string) string {
	if id := inspect.SpaceOf(spaces, file); id != "" {
		return " (space " + id + ")"
	}
	return ""
}

func (a *app) skillsCommand() *cobra.Command {
	skills := parent(&cobra.Command{
		Use:   "skills",
		Short: "List, show, check and match skills",
		Long: "A skill is a text that teaches an agent something: a directory with a SKILL.md, or a Markdown or YAML file. Skills are\nread from the user's directory of settings, then from .claude/skills and .belay/skills of the project, then from loaded\n" +
			"spaces. If two skills have the same name, the one that is read later is used. Type /NAME in a message to add a skill to it.",
		Example: `  belay skills list
  belay skills check --strict .belay/skills
  belay skills match "review this change"`,
	})
	skills.AddCommand(a.listSkillsCommand(), a.showSkillCommand(), a.checkSkillsCommand(), a.matchSkillsCommand())
	return skills
}

func (a *app) listSkillsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the skills that an agent here has",
		Long:    "Lists the skills of an agent in this project, where each is from, and the problems of the files: skills that could\nnot be loaded, skills that another skill replaces, and deviations from the specification that Belay tolerates.",
		Example: "  belay skills list",
		Args:    arguments(0, 0, "skills list takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			catalog := assembly.AllSkills(cmd.Context(), settings)
			spaces := assembly.SpacesHere(settings)
			out := a.newList(asJSON, "SKILL", "GETS IN", "FROM", "WHAT FOR")
			for _, s := range catalog.List() {
				out.add(inspect.SkillOf(s), oneLine(s.Name), waysIn(s), a.onOut.dim(oneLine(assembly.RelativePath(settings, s.Path)+ofSpace(spaces, s.Path))), short(oneLine(s.Description), max(a.width-60, 30)))
			}
			a.assembler().ReportSkillProblems(settings, append(catalog.Problems(), a.assembler().Clashes(catalog)...))
			return out.end("there are no skills: make a directory with a SKILL.md in .belay/skills, see docs/skills.md")
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object per line")
	return cmd
}

// waysIn returns how a skill can enter a conversation, apart from /NAME. It also says if
// users cannot type /NAME.
func waysIn(s *skill.Skill) string {
	var ways []string
	if !s.Hidden && !s.UserOnly {
		ways = append(ways, "read")
	}
	if s.ModelOnly {
		ways = append(ways, "not /name")
	}
	if len(s.Triggers) > 0 {
		ways = append(ways, visible.Counted(len(s.Triggers), "trigger"))
	}
	return cmp.Or(strings.Join(ways, ", "), "only /name")
}

// chatCommands returns the names of the commands that the chat itself defines.
func chatCommands() []string {
	var names []string
	for _, d := range chat.Commands() {
		names = append(names, d.Name)
	}
	return names
}

func (a *app) showSkillCommand() *cobra.Command {
	var section string
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Print a skill as the model reads it",
		Long:    "Prints the text of a skill, or of one of its sections.",
		Example: "  belay skills show release-notes --section style",
		Args:    arguments(1, 1, "name one skill: `belay skills list` lists them"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			settings, err := a.settings()
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return assembly.SkillNames(assembly.AllSkills(cmd.Context(), settings)), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			catalog := assembly.AllSkills(cmd.Context(), settings)
			reading, err := catalog.Read(cmd.Context(), args[0], section)
			if errors.Is(err, skill.ErrNotFound) {
				hint := near.Hint(args[0], assembly.SkillNames(catalog)) // the catalog's own hint leaves out skills that the model does not see
				if strings.Contains(err.Error(), "did you mean") {
					hint = ""
				}
				return usage("%w%s", err, hint)
			}
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(a.out, strings.TrimRight(visible.All(reading.Text), "\n")); err != nil {
				return fmt.Errorf("show: %w", err)
			}
			if len(reading.Sections) > 0 {
				a.remarkf("sections: %s", oneLine(strings.Join(reading.Sections, ", ")))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&section, "section", "", "print only this section of the skill")
	return cmd
}

func (a *app) checkSkillsCommand() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "check [DIR|FILE]",
		Short: "Check skills against the Agent Skills specification",
		Long: "Checks the skills of a directory, or one skill, against the Agent Skills specification, and prints each\nviolation with file and line. Without --strict the additional fields of Belay are allowed. Without DIR it\n" +
			"checks all directories with skills. The exit code is 1 if there is a violation.",
		Example: "  belay skills check\n  belay skills check --strict ./my-skill",
		Args:    arguments(0, 1, "name at most one DIR or FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			dirs := args
			if len(dirs) == 0 {
				dirs = assembly.Existing(append(assembly.SkillDirs(settings), filepath.Join(settings.Project, ".claude", "skills")))
			}
			found := 0
			for _, dir := range dirs {
				problems, err := skill.Check(a.at(dir), strict)
				if err != nil {
					return usage("%w", err)
				}
				for i := range problems {
					p := problems[i]
					if _, err := fmt.Fprintln(a.out, oneLine(p.Error())); err != nil {
						return fmt.Errorf("check: %w", err)
					}
				}
				found += len(problems)
			}
			if found > 0 {
				return &exitError{code: exitFailed, err: fmt.Errorf("%s", visible.Counted(found, "violation"))}
			}
			a.remarkf("no violations: %s", cmp.Or(strings.Join(dirs, ", "), "there are no skills"))
			return nil
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "allow nothing beyond the specification")
	return cmd
}

func (a *app) matchSkillsCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:     `match "TASK"`,
		Short:   "Show which skills a task activates, and why",
		Long:    "Shows which skills a task activates: which of their triggers match, and which words of the task.",
		Example: `  belay skills match "review this change"`,
		Args:    arguments(1, 1, "give the task as one argument, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			out := a.newList(false, "SKILL", "TRIGGER", "FOUND")
			for _, m := range assembly.AllSkills(cmd.Context(), settings).Match(args[0], agent) {
				trigger := "named"
				if m.Trigger.Pattern != "" {
					trigger = fmt.Sprintf("%s %s", m.Trigger.Type, m.Trigger.Pattern)
				}
				out.row(oneLine(m.Skill.Name), oneLine(trigger), oneLine(m.Found))
			}
			return out.end("the task activates no skill")
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "main", "match the skills of this agent")
	return cmd
}
