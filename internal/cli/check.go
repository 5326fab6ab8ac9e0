package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
	"github.com/spf13/cobra"
)

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check everything that would be loaded, without running anything",
		Long: `Reads the settings, and all hooks, skills, agents and spaces that an agent in this directory would use. Prints every mistake
with file and line: those that ` + "`belay run`, `belay agents list` and `belay skills check`" + ` would find. Nothing runs.

Some problems are warnings, not mistakes: hooks that nobody has trusted yet, tool names in hooks and their tests that match no tool,
programs and keys that are missing on this machine, and files in .claude that Belay cannot use.`,
		Example: "  belay check",
		Args:    arguments(0, 0, "check takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := a.settings()
			if mistake, ok := errors.AsType[*settingsError](err); ok { // like every other mistake in a file
				return &exitError{code: exitFailed, err: mistake}
			}
			if err != nil {
				return err
			}
			return a.check(cmd.Context(), settings)
		},
	}
}

// check looks for mistakes in everything that an agent of this project would load.
func (a *app) check(ctx context.Context, s *config.Loaded) error {
	places := a.assembler().OpenPlaces(ctx, s)
	problems := []error{a.checkSettings(s), places.Err}
	agents, found := assembly.Agents(s)
	for i := range found {
		switch {
		case assembly.Foreign(s, found[i].Path): // ReportOtherFiles reports those
		case assembly.IsReplaced(&found[i]):
			a.warn(fmt.Sprintf("%s: %s", assembly.ShownPath(s, found[i].Path), found[i].Message))
		default:
			problems = append(problems, &found[i])
		}
	}
	for _, d := range agents {
		if assembly.UnreadHooks(s, d) == nil { // otherwise ReportOtherFiles reports it
			problems = append(problems, inspect.CheckOwnHooks(ctx, places, d))
		}
	}
	problems = append(problems, a.checkAgents(ctx, s, agents), a.checkSkills(ctx, s, places), a.checkTests(s, places))
	_, _, err := a.assembler().ReadMCP()
	problems = append(problems, err)
	tally := tallyOf(ctx, places, agents, s)
	a.assembler().ReportOtherFiles(ctx, s, places.Counts...)
	if places.Err == nil {
		problems = append(problems, a.checkOrder(ctx))
	}
	if err := errors.Join(problems...); err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	fmt.Fprintf(a.out, "no mistakes: %s\n", tally)
	return nil
}

// checkSettings finds settings that are valid but would stop a run: the model, the tools or
// the store. A missing key on this machine is only a warning.
func (a *app) checkSettings(s *config.Loaded) error {
	problems := []error{assembly.CheckStore(s), assembly.MissingStoreDir(s)}
	if s.Model != "" {
		_, err := assembly.OpenModel(s)
		if lacks, ok := errors.AsType[*assembly.NoKeyError](err); ok {
			a.warn(fmt.Sprintf("%s: model: %v", s.From("model"), lacks))
		} else if err != nil {
			problems = append(problems, fmt.Errorf("%s: model: %w", s.From("model"), err))
		}
	}
	names, err := toolNames(s)
	if err == nil {
		err = assembly.UnknownTools(s, names)
	}
	return errors.Join(append(problems, err)...)
}

// checkAgents finds mistakes that appear only when Belay builds the agents. Problems of
// agents in .claude, and missing keys on this machine, are only warnings.
func (a *app) checkAgents(ctx context.Context, s *config.Loaded, own []*subagent.Declaration) error {
	check, err := a.assembler().NewAgentCheck(ctx, s)
	if err != nil {
		return err
	}
	var problems []error
	for _, d := range assembly.AddSpaceAgents(own, assembly.SpacesHere(s)) {
		if assembly.UnreadHooks(s, d) != nil {
			continue // ReportOtherFiles reports it
		}
		looked := *d
		if _, err := assembly.FindModel(s, d.Model); d.Model != "" {
			if lacks, ok := errors.AsType[*assembly.NoKeyError](err); ok {
				a.warn(fmt.Sprintf("%s: model: %v", assembly.RelativePath(s, d.Path), lacks))
				looked.Model = ""
			}
		}
		found := check.Mistakes(&looked)
		if assembly.Foreign(s, d.Path) {
			a.assembler().ReportAgentProblems(s, "not used", found)
			continue
		}
		for i := range found {
			problems = append(problems, &found[i])
		}
	}
	return errors.Join(problems...)
}

// checkSkills finds skills that cannot be loaded. It also checks skills against the
// specification and against Belay's additional fields. The skills in .claude are written
// for another program, so they only need to be loadable.
func (a *app) checkSkills(ctx context.Context, s *config.Loaded, places *assembly.Places) error {
	catalog := assembly.AllSkills(ctx, s)
	var problems []error
	told := make(map[string]bool)
	for _, p := range catalog.Problems() {
		if p.Kind == skill.NotLoaded && !assembly.OtherSkill(s, p.Path) { // ReportOtherFiles reports those
			problems = append(problems, &p)
			told[p.Path] = true
		}
	}
	dirs := assembly.SkillDirs(s)
	for _, place := range places.All {
		err := skillMistakes(place, told)
		problems = append(problems, err)
		foreign := assembly.OtherSkill(s, filepath.Join(place.Dir, "skills", "SKILL.md")) // a plugin
		if err == nil && place.Origin.Kind == hook.OriginSpace && !foreign {
			dirs = append(dirs, filepath.Join(place.Dir, "skills"))
		}
	}
	for _, dir := range assembly.Existing(dirs) {
		if !slices.ContainsFunc(catalog.List(), func(one *skill.Skill) bool { return within(dir, one.Path) }) {
			continue // no skill of this directory was loaded, or the problem is already reported
		}
		found, err := skill.Check(dir, false)
		if err != nil {
			problems = append(problems, err)
		}
		for i := range found {
			if !told[found[i].Path] {
				problems = append(problems, &found[i])
			}
		}
	}
	return errors.Join(problems...)
}

// within reports whether the path of a file is below a directory. It does not resolve
// links.
func within(dir, file string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}

func (a *app) warn(odd string) {
	a.remarkf("%s %s", a.onErr.yellow("warning:"), visible.All(oneLine(odd)))
}

// tallyOf counts the hooks, agents and skills that would be loaded. It adds how many come
// from spaces and from agents.
func tallyOf(ctx context.Context, places *assembly.Places, agents []*subagent.Declaration, s *config.Loaded) string {
	hooks, ofAgents, ofSpaces, spaceAgents := 0, 0, 0, 0
	for _, p := range places.All {
		own := 0
		for _, d := range p.Agents {
			own += len(p.AgentHooks(d.Name))
		}
		hooks += len(p.Hooks) + own
		ofAgents += own
		if p.Origin.Kind == hook.OriginSpace {
			ofSpaces += len(p.Hooks) + own
			spaceAgents += len(p.Agents)
		}
	}
	all, own := foundSkills(assembly.AllSkills(ctx, s)), foundSkills(assembly.OwnSkills(ctx, s))
	return strings.Join([]string{
		visible.Counted(hooks, "declared hook") + parts(ofAgents, "of agents", ofSpaces, "of spaces"),
		visible.Counted(len(agents)+spaceAgents, "agent") + parts(0, "", spaceAgents, "of spaces"),
		visible.Counted(all, "skill") + parts(0, "", all-own, "of spaces"),
	}, ", ")
}

// foundSkills returns how many skills of a catalog come from files.
func foundSkills(catalog *skill.Catalog) int {
	return len(slices.DeleteFunc(catalog.List(), assembly.IsBuiltin))
}

// parts returns the two counts in brackets, such as " (2 of agents, 1 of spaces)". It
// leaves out zeros.
func parts(n int, of string, m int, from string) string {
	var said []string
	if n > 0 {
		said = append(said, fmt.Sprint(n, " ", of))
	}
	if m > 0 {
		said = append(said, fmt.Sprint(m, " ", from))
	}
	if len(said) == 0 {
		return ""
	}
	return " (" + strings.Join(said, ", ") + ")"
}

// checkOrder checks that the hooks can be ordered. It prints the hooks that do not run, and
// warnings about hooks and files.
func (a *app) checkOrder(ctx context.Context) error {
	v, err := a.seeHooks(ctx)
	if err != nil {
		return err
	}
	for _, l := range v.Leases {
		a.assembler().ReportPlace(l.Space(), l.Notes())
	}
	check, err := inspect.NewHookCheck(v.Settings)
	if err != nil {
		return errors.Join(err, v.Close(ctx))
	}
	for _, odd := range check.All(v) {
		a.warn(odd)
	}
	return v.Close(ctx)
}

func (a *app) configCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "config [KEY]",
		Short: "Show the effective settings, and where each comes from",
		Long: `Shows the effective settings and where each comes from: the file of the machine, the user or the project, a variable or a
flag. --all also shows the defaults.`,
		Example: `  belay config
  belay config mode
  belay config --all`,
		Args: arguments(0, 1, "name one KEY at most"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return config.Paths(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			a.assembler().DefaultMode(cmd.Context(), settings)
			return a.showConfig(settings, args, all, asJSON)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show the defaults too")
	jsonFlag(cmd, &asJSON, "print one JSON object for each setting")
	return cmd
}

// unset returns the text of a default value. It replaces an empty value by "all" or "none".
func unset(path, text string) string {
	switch {
	case path == "tools" && text == "null":
		return "all"
	case text == "null", text == "[]", text == "{}", text == "0", text == "0s":
		return "none"
	default:
		return text
	}
}

// showConfig prints one setting per line. If all is false and args is empty, it leaves out
// settings with their default value.
func (a *app) showConfig(s *config.Loaded, args []string, all, asJSON bool) error {
	paths := config.Paths()
	if len(args) == 1 {
		paths = slices.DeleteFunc(paths, func(path string) bool { return path != args[0] && !strings.HasPrefix(path, args[0]+".") })
		if len(paths) == 0 {
			return usage("there is no setting %q%s", args[0], near.Hint(args[0], config.Paths()))
		}
	}
	out := a.newList(asJSON, "SETTING", "VALUE", "FROM")
	for _, path := range paths {
		line := settingInForce{path, shownValue(s.Value(path)), s.From(path)}
		if line.From.Kind == "default" && !all && len(args) == 0 {
			continue
		}
		value, err := json.Marshal(line.Value)
		if err != nil {
			return err
		}
		text := string(value)
		if word, ok := line.Value.(string); ok {
			text = word
		}
		if line.From.Kind == "default" {
			text = unset(path, text)
		}
		out.add(line, path, visible.All(short(oneLine(text), 60)), line.From.String())
	}
	if out.rows() == 0 && !asJSON {
		fmt.Fprintln(a.out, "nothing is set: `belay config --all` shows the defaults")
		return nil
	}
	return out.end("")
}
