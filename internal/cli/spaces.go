package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/subagent"
	"github.com/spf13/cobra"
)

func (a *app) spaceCommand() *cobra.Command {
	cmd := parent(&cobra.Command{
		Use:   "space",
		Short: "Load directories of hooks, skills and agents",
		Long: `A space is a directory with a manifest.json, hooks/, skills/ and agents/. After "belay space load",
every agent that starts uses the space. Its hooks run programs only after "belay trust".`,
		Example: `  belay space check ./acme
  belay space load ./acme
  belay trust acme`,
	})
	cmd.AddCommand(a.listSpacesCommand(), a.loadSpaceCommand(), a.unloadSpaceCommand(), a.checkSpaceCommand())
	return cmd
}

// spaceLine is one space in the output of "belay space list".
type spaceLine struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Dir     string `json:"dir"`
	Project string `json:"project,omitempty"`
	Hooks   int    `json:"hooks"`
	Agents  int    `json:"agents"`
	// State is trusted, not trusted, changed since trusted, has mistakes, or gone.
	State   string   `json:"state"`
	Trusted bool     `json:"trusted"`
	Grants  []string `json:"grants,omitempty"`
	Error   string   `json:"error,omitempty"`
}

func (a *app) listSpacesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the spaces that are loaded",
		Long:    "Lists the loaded spaces, whether each is loaded for all projects or for one, and whether it is trusted.",
		Example: "  belay space list",
		Args:    arguments(0, 0, "list takes no arguments"),
		RunE: func(*cobra.Command, []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			list, err := assembly.ReadRegistry(settings)
			if err != nil {
				return err
			}
			host := space.NewHost(&space.Options{Trust: assembly.OpenTrust(settings)})
			out := a.newList(asJSON, "SPACE", "VERSION", "HOOKS", "AGENTS", "STATE", "FOR", "DIRECTORY")
			for _, r := range list {
				line := lineOfSpace(host, r)
				state := line.State
				if state == "trusted" {
					state += withGrants(line.Grants)
				}
				out.add(line, cmp.Or(line.ID, "-"), visible.All(oneLine(line.Version)), fmt.Sprint(line.Hooks), fmt.Sprint(line.Agents), state, forWhom(r, settings), assembly.ShownPath(settings, r.Dir))
			}
			if len(list) == 0 && !asJSON {
				fmt.Fprintln(a.out, "no space is loaded: `belay space load DIR` loads one")
				return nil
			}
			return out.end("")
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object for each space")
	return cmd
}

func lineOfSpace(host *space.Host, r assembly.Registered) spaceLine {
	loaded, err := space.Load(r.Dir, hook.OriginSpace)
	line := spaceLine{
		ID: cmp.Or(loaded.Manifest.ID, r.ID), Name: loaded.Manifest.Name, Version: loaded.Manifest.Version, Dir: r.Dir, Project: r.Project,
		Hooks: len(loaded.Hooks), Agents: len(loaded.Agents), State: "not trusted",
	}
	if err != nil {
		if line.State, line.Error = "has mistakes", err.Error(); r.Gone() {
			line.State = "gone"
		}
		return line
	}
	st, err := host.Standing(loaded)
	switch {
	case err != nil:
		line.State, line.Error = "has mistakes", err.Error()
	case st.Trusted:
		line.State, line.Trusted = "trusted", true
		if st.Record != nil {
			line.Grants = st.Record.Grants
		}
	case st.Record != nil:
		line.State = "changed since trusted"
	}
	return line
}

// forWhom returns which projects load a space.
func forWhom(r assembly.Registered, s *config.Loaded) string {
	if r.Project == "" {
		return "all projects"
	}
	if r.In(s.Project) {
		return "this project"
	}
	return assembly.ShownPath(s, r.Project)
}

func (a *app) loadSpaceCommand() *cobra.Command {
	var here bool
	cmd := &cobra.Command{
		Use:   "load DIR",
		Short: "Load a space into every agent",
		Long: `Checks the space in DIR and records its path. Every agent that starts after this uses the space; with --here, only agents
of this project do. The files stay in DIR.`,
		Example: "  belay space load ./acme",
		Args:    arguments(1, 1, "name the DIR of the space"),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			loaded, err := a.installable(cmd.Context(), settings, a.at(args[0]))
			if err != nil {
				return &exitError{code: exitFailed, err: err, hint: "the space was not loaded: correct these mistakes first"}
			}
			entry := assembly.Registered{Dir: loaded.Dir, ID: loaded.Manifest.ID}
			if here {
				entry.Project = assembly.RealDir(settings.Project)
			}
			return a.register(settings, loaded, entry)
		},
	}
	cmd.Flags().BoolVar(&here, "here", false, "only for this project")
	return cmd
}

func (a *app) register(s *config.Loaded, loaded *space.Space, entry assembly.Registered) error {
	list, err := assembly.ReadRegistry(s)
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.Dir == entry.Dir && (r.Project == "" || r.Project == entry.Project) {
			return fmt.Errorf("space %s is loaded already, for %s: unload it first", loaded.Manifest.ID, forWhom(r, s))
		}
		other, _ := space.Load(r.Dir, hook.OriginSpace) // ignore mistakes: only the id is needed
		if cmp.Or(other.Manifest.ID, r.ID) == loaded.Manifest.ID && r.Dir != entry.Dir {
			return fmt.Errorf("a space %s from %s is loaded already: unload it first, or change the id in one manifest", loaded.Manifest.ID, r.Dir)
		}
	}
	if entry.Project == "" { // for all projects: replace the entries of single projects
		list = slices.DeleteFunc(list, func(r assembly.Registered) bool { return r.Dir == entry.Dir })
	}
	if err := assembly.WriteRegistry(s, append(list, entry)); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "space %s is loaded for %s: %s, %s, %s\n", loaded.Manifest.ID, forWhom(entry, s), visible.Counted(len(loaded.Hooks), "hook"), visible.Counted(len(loaded.Agents), "agent"), visible.Counted(len(loaded.Servers), "MCP server"))
	a.assembler().ReportSkillProblems(s, loaded.SkillProblems())
	st, err := space.NewHost(&space.Options{Trust: assembly.OpenTrust(s)}).Standing(loaded)
	if err != nil {
		return err
	}
	if !st.Trusted && len(loaded.Programs())+len(loaded.Servers) > 0 {
		a.remarkf("%s", st.Reason)
	}
	return nil
}

// installable loads a space, and checks that Belay can install it. Nothing runs.
func (a *app) installable(ctx context.Context, s *config.Loaded, dir string) (*space.Space, error) {
	loaded, err := space.Load(dir, hook.OriginSpace)
	if err := errors.Join(err, assembly.UnfitAgents(loaded)); err != nil {
		return loaded, err
	}
	host := a.assembler().NewHost(ctx, s)
	runtime, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Grants: host.Grants, Queue: inspect.NoQueue{}})
	if err != nil {
		return loaded, err
	}
	subagents, err := subagent.New(nil)
	if err != nil {
		return loaded, err
	}
	lease, err := host.Install(ctx, loaded, &space.Target{Hooks: runtime, Subagents: subagents, Idle: true, Build: func(context.Context, *subagent.Task, *subagent.Declaration, belay.Extension) (*belay.Agent, error) {
		return nil, errors.New("this command does not run agents")
	}})
	if err != nil {
		return loaded, err
	}
	return loaded, lease.Unload(context.WithoutCancel(ctx))
}

// skillMistakes joins the problems of a space's skills. It leaves out the files in told,
// which were already reported.
func skillMistakes(s *space.Space, told map[string]bool) error {
	var problems []error
	for _, p := range s.SkillProblems() {
		if !told[p.Path] {
			problems = append(problems, &p)
		}
	}
	return errors.Join(problems...)
}

func (a *app) unloadSpaceCommand() *cobra.Command {
	var here bool
	cmd := &cobra.Command{
		Use:   "unload SPACE",
		Short: "Unload a space",
		Long: `Unloads a space. SPACE is its id or its directory. If the space was loaded only for this project, add --here. Running agents
keep the space until they end.`,
		Example: "  belay space unload acme",
		Args:    arguments(1, 1, "name the SPACE: `belay space list` lists them"),
		RunE: func(_ *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			return a.unregister(settings, args[0], here)
		},
	}
	cmd.Flags().BoolVar(&here, "here", false, "only for this project")
	return cmd
}

// unregister removes a space from the registry, and prints which projects had it.
func (a *app) unregister(s *config.Loaded, word string, here bool) error {
	list, err := assembly.ReadRegistry(s)
	if err != nil {
		return err
	}
	dir, err := a.findSpace(s, word)
	if err != nil {
		return err
	}
	var had []string
	kept := slices.DeleteFunc(slices.Clone(list), func(r assembly.Registered) bool {
		gone := r.Dir == dir && (!here || r.Project != "" && r.In(s.Project))
		if gone {
			had = append(had, forWhom(r, s))
		}
		return gone
	})
	switch {
	case len(had) == 0 && here && slices.ContainsFunc(list, func(r assembly.Registered) bool { return r.Dir == dir && r.Project == "" }):
		return fmt.Errorf("%s is loaded for all projects: unload it without --here", word)
	case len(had) == 0:
		return fmt.Errorf("%s is not loaded", word)
	}
	if err := assembly.WriteRegistry(s, kept); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s is unloaded, for %s\n", word, strings.Join(had, ", "))
	return nil
}

func (a *app) checkSpaceCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "check DIR...",
		Short:   "Check spaces, without running anything",
		Long:    "Reads spaces as they would be loaded and prints every mistake with file and line. Nothing runs.",
		Example: "  belay space check ./acme",
		Args:    arguments(1, 100, "name the DIR of a space"),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			var problems []error
			for _, dir := range args {
				loaded, err := a.installable(cmd.Context(), settings, a.at(dir))
				if err := errors.Join(err, skillMistakes(loaded, nil)); err != nil {
					problems = append(problems, err)
					continue
				}
				fmt.Fprintf(a.out, "%s: no mistakes in %s and %s", loaded.Manifest.ID, visible.Counted(len(loaded.Hooks), "hook"), visible.Counted(len(loaded.Agents), "agent"))
				if needs := loaded.Needs(); len(needs) > 0 {
					fmt.Fprintf(a.out, "; they need the grants %s", strings.Join(needs, ", "))
				}
				fmt.Fprintln(a.out)
			}
			if err := errors.Join(problems...); err != nil {
				return &exitError{code: exitFailed, err: err}
			}
			return nil
		},
	}
}
