package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
)

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Look for mistakes in everything that would be loaded, without running anything",
		Long: `Reads the settings and all hooks, skills, agents and spaces that an agent here would have, and tells every mistake with file
and line. Nothing runs. Hooks that would not run because nobody trusts them yet are no mistake, and are told; so are names of
tools that there are not, and programs that are not on this machine.`,
		Example: "  belay check",
		Args:    arguments(0, 0, "check takes none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			return a.check(cmd.Context(), settings)
		},
	}
}

// check looks for mistakes in everything that would be loaded.
func (a *app) check(ctx context.Context, s *config.Loaded) error {
	places := a.openPlaces(ctx, s)
	problems := []error{places.err}
	agents, found := openAgents(s)
	for i := range found {
		problems = append(problems, &found[i])
	}
	for _, d := range agents {
		problems = append(problems, checkOwnHooks(ctx, places, d))
	}
	catalog := openAllSkills(ctx, s)
	for _, p := range catalog.Problems() {
		if p.Kind == skill.NotLoaded {
			problems = append(problems, &p)
		}
	}
	_, _, err := a.readMCP()
	problems = append(problems, err)
	tally := tallyOf(ctx, places, agents, s)
	if places.err == nil {
		problems = append(problems, a.checkOrder(ctx))
	}
	if err := errors.Join(problems...); err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	fmt.Fprintf(a.out, "no mistakes: %s\n", tally)
	return nil
}

// tallyOf counts what would be loaded, and says how much of it spaces and agents bring.
func tallyOf(ctx context.Context, places *places, agents []*subagent.Declaration, s *config.Loaded) string {
	hooks, ofAgents, ofSpaces, spaceAgents := 0, 0, 0, 0
	for _, p := range places.all {
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
	all, own := len(openAllSkills(ctx, s).List()), len(openSkills(ctx, s).List())
	return strings.Join([]string{
		counted(hooks, "declared hook") + parts(ofAgents, "of agents", ofSpaces, "of spaces"),
		counted(len(agents)+spaceAgents, "agent") + parts(0, "", spaceAgents, "of spaces"),
		counted(all, "skill") + parts(0, "", all-own, "of spaces"),
	}, ", ")
}

// parts says in brackets what a number is made of, as far as there is something to say.
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

// checkOwnHooks looks at the hooks that an agent declares.
func checkOwnHooks(ctx context.Context, places *places, d *subagent.Declaration) error {
	place := places.of(d.Path)
	if place == nil {
		if unread := hooksUnread(d); unread != nil {
			return unread
		}
		return nil
	}
	own, _, err := places.host.AgentHooks(place, d.Name)
	if err != nil {
		return err
	}
	return own.Close(ctx)
}

// checkOrder sees whether the hooks go together, and tells which of them do not run.
func (a *app) checkOrder(ctx context.Context) error {
	v, err := a.seeHooks(ctx)
	if err != nil {
		return err
	}
	for _, l := range v.leases {
		a.tellNotes(l.Notes())
	}
	check, err := newHookCheck(v.settings)
	if err != nil {
		return errors.Join(err, v.close(ctx))
	}
	for _, odd := range check.all(v) {
		a.remarkf("%s %s", a.onErr.yellow("warning:"), visible.All(oneLine(odd)))
	}
	return v.close(ctx)
}

func (a *app) configCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "config [KEY]",
		Short: "Show the settings that are in force, and where each is from",
		Long: `Shows the settings that are in force and where each is from: the machine's file, the user's, the project's, a variable or a
flag. Those that nobody set are shown with --all.`,
		Example: `  belay config
  belay config mode
  belay config --all`,
		Args: arguments(0, 1, "name one KEY at most"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return config.Paths(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			return a.showConfig(settings, args, all, asJSON)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show those that nobody set too")
	jsonFlag(cmd, &asJSON, "print one JSON object for each setting")
	return cmd
}

// showConfig shows settings, one to a line.
func (a *app) showConfig(s *config.Loaded, args []string, all, asJSON bool) error {
	paths := config.Paths()
	if len(args) == 1 {
		paths = slices.DeleteFunc(paths, func(path string) bool { return path != args[0] && !strings.HasPrefix(path, args[0]+".") })
		if len(paths) == 0 {
			return usage("there is no setting %q%s", args[0], near.Hint(args[0], config.Paths()))
		}
	}
	var t table
	t.add("SETTING", "VALUE", "FROM")
	for _, path := range paths {
		line := settingInForce{path, shownValue(s.Value(path)), s.From(path)}
		if line.From.Kind == "default" && !all && len(args) == 0 {
			continue
		}
		if asJSON {
			if err := a.printJSON(line); err != nil {
				return err
			}
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
		t.add(path, visible.All(short(oneLine(text), 60)), line.From.String())
	}
	if asJSON {
		return nil
	}
	if len(t.rows) == 1 {
		fmt.Fprintln(a.out, "nothing is set: `belay config --all` shows what holds then")
		return nil
	}
	return t.write(a.out, a.onOut.dim)
}
