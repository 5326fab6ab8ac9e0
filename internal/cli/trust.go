package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/diff"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/space"
	"github.com/spf13/cobra"
)

func (a *app) trustCommand() *cobra.Command {
	var grants []string
	var showDiff, forget, list, yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "trust [DIR|SPACE]",
		Short: "Trust the hooks of a project or a space, after you have looked at them",
		Long: `The hooks of a project or a space run programs only after a person has trusted their directory. Without an
argument, this is the project's .belay directory. The hooks of other agents are trusted in the same way: name .claude,
.codex or .gemini for those of the project, and ~/.claude for your own.

Trust covers the present content of the files that can run something: hooks, agents and MCP servers. When one of them changes,
gates deny and other hooks do not run until you trust the directory again. The file of a hook is covered with the tests in it.
Skills and files of tests, such as those in .belay/tests, are not covered.

Some abilities need a grant as well (--grant): ` + strings.Join(space.GrantNames(), ", ") + `.`,
		Example: `  belay trust --diff
  belay trust
  belay trust --grant rewrite_input
  belay trust .claude
  belay trust ./spaces/acme --grant webhook
  belay trust --forget`,
		Args: arguments(0, 1, "name one directory or space at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			if settings.UserDir == "" {
				return usage("there is no directory for the user's settings, where trust is kept: set HOME")
			}
			if list {
				return a.listTrust(settings, asJSON)
			}
			if err := space.CheckGrants(grants); err != nil {
				return usage("--grant: %w", err)
			}
			s, err := a.trustable(settings, args, !forget && !showDiff)
			if err != nil {
				return err
			}
			switch {
			case forget:
				return a.forgetTrust(settings, s)
			case showDiff:
				return a.showChanges(settings, s)
			default:
				return a.giveTrust(cmd.Context(), settings, s, grants, yes)
			}
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&showDiff, "diff", false, "only show what has changed since the directory was trusted")
	flags.StringSliceVar(&grants, "grant", nil, "also grant this ability")
	flags.BoolVar(&forget, "forget", false, "stop trusting the directory")
	flags.BoolVar(&list, "list", false, "list the trusted directories")
	flags.BoolVarP(&yes, "yes", "y", false, "trust the directory without a question")
	jsonFlag(cmd, &asJSON, "with --list, print one JSON object for each directory")
	complete(cmd, "grant", space.GrantNames())
	exclusive(cmd, "diff", "forget", "list", "grant")
	return cmd
}

// trustable loads the directory to trust: the project's, another directory, or a space by
// its id. Mistakes in its files are an error only if strict is true.
func (a *app) trustable(s *config.Loaded, args []string, strict bool) (*space.Space, error) {
	dir, kind := assembly.ProjectPlace(s), hook.OriginProject
	if place := a.otherPlace(s, args); place != nil {
		loaded, err := space.LoadForeign(place.Foreign)
		if err != nil && strict {
			return nil, &exitError{code: exitFailed, err: err, hint: "correct these first: a file that cannot be read cannot be trusted"}
		}
		return loaded, nil
	}
	if len(args) == 1 {
		found, err := a.findSpace(s, args[0])
		if err != nil {
			return nil, err
		}
		if dir = found; assembly.RealDir(found) != assembly.RealDir(assembly.ProjectPlace(s)) && !likeProject(found) {
			kind = hook.OriginSpace
		}
	}
	if _, err := os.Stat(dir); err != nil && len(args) == 0 {
		return nil, fmt.Errorf("the project has no hooks: there is no %s. `belay hooks new ID` writes one", assembly.ShownPath(s, filepath.Join(dir, "hooks")))
	}
	loaded, err := space.Load(dir, kind)
	if err != nil && strict {
		return nil, &exitError{code: exitFailed, err: err, hint: "correct these first: a file that cannot be read cannot be trusted"}
	}
	return loaded, nil
}

// likeProject reports whether a directory has the form of .belay: hooks, but no manifest of
// a space. `belay backtest --hooks` tries such directories.
func likeProject(dir string) bool {
	_, noManifest := os.Stat(filepath.Join(dir, "manifest.json"))
	hooks, err := os.Stat(filepath.Join(dir, "hooks"))
	return errors.Is(noManifest, fs.ErrNotExist) && err == nil && hooks.IsDir()
}

// otherPlace returns the directory of another agent that the arguments mean, or nil. Without
// arguments, it is the only such directory of a project whose .belay has nothing to trust.
func (a *app) otherPlace(s *config.Loaded, args []string) *assembly.HookPlace {
	if len(args) == 1 {
		return cmp.Or(assembly.FindHookPlace(s, args[0]), assembly.FindHookPlace(s, a.at(args[0])))
	}
	if own, _ := space.Load(assembly.ProjectPlace(s), hook.OriginProject); len(own.Changes(nil)) > 0 { // ignore mistakes: the caller reports them
		return nil
	}
	if r, err := assembly.OpenTrust(s).Lookup(assembly.RealDir(assembly.ProjectPlace(s))); err != nil || r != nil {
		return nil
	}
	var here []*assembly.HookPlace
	for _, p := range assembly.HookPlaces(s, nil) {
		if p.Origin.Kind == hook.OriginProject {
			here = append(here, p)
		}
	}
	if len(here) != 1 {
		return nil
	}
	return here[0]
}

// findSpace finds the directory of a space by its id, its path or its own name.
func (a *app) findSpace(s *config.Loaded, word string) (string, error) {
	list, err := assembly.ReadRegistry(s)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, r := range list {
		loaded, _ := space.Load(r.Dir, hook.OriginSpace) // ignore mistakes: the caller loads the space again and reports them
		if id := cmp.Or(loaded.Manifest.ID, r.ID); id != "" {
			if ids = append(ids, id); id == word {
				return r.Dir, nil
			}
		}
	}
	dir, err := filepath.Abs(a.at(word))
	if err != nil {
		return "", err
	}
	for _, r := range list { // also finds a space whose directory no longer exists
		if r.Dir == dir || r.Dir == assembly.RealDir(dir) || filepath.Base(r.Dir) == word {
			return r.Dir, nil
		}
	}
	if r, err := assembly.OpenTrust(s).Lookup(dir); err == nil && r != nil { // also finds a trusted directory that no longer exists
		return dir, nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", usage("there is neither a directory nor a loaded space %q%s", word, near.Hint(word, ids))
	}
	return assembly.RealDir(dir), nil
}

func (a *app) giveTrust(ctx context.Context, s *config.Loaded, loaded *space.Space, grants []string, yes bool) error {
	trust := assembly.OpenTrust(s)
	record, err := trust.Lookup(loaded.Dir)
	if err != nil {
		return err
	}
	changes := loaded.Changes(record)
	if record == nil && len(changes) == 0 {
		return fmt.Errorf("there is nothing to trust in %s: it has no hooks, agents or servers", assembly.TrustedName(s, loaded))
	}
	if record != nil {
		if lost := slices.DeleteFunc(slices.Clone(record.Grants), func(name string) bool { return slices.Contains(grants, name) }); len(lost) > 0 {
			a.remarkf("the directory had the grants %s. To keep them, add --grant %s", strings.Join(lost, ", "), strings.Join(lost, ","))
		}
	}
	if record != nil && len(changes) == 0 && loaded.Hash == record.Hash && slices.Equal(record.Grants, slices.Compact(slices.Sorted(slices.Values(grants)))) {
		fmt.Fprintf(a.out, "%s is trusted already%s: nothing has changed since %s\n", assembly.TrustedName(s, loaded), withGrants(record.Grants), record.At.Local().Format(time.DateTime))
		return nil
	}
	a.tellPrograms(s, loaded)
	for _, odd := range assembly.Misplaced(s, loaded) {
		a.warn(odd)
	}
	for _, c := range changes {
		fmt.Fprintf(a.out, "  %s %s\n", changeWord(c), visible.All(c.Name))
	}
	if missing := slices.DeleteFunc(loaded.Needs(), func(name string) bool { return slices.Contains(grants, name) }); len(missing) > 0 {
		a.remarkf("some hooks need a grant. Without it gates deny and other hooks do not run: add --grant %s", strings.Join(missing, ","))
	}
	if !yes {
		if !a.inTerminal {
			return usage("input is not a terminal: look at the changes with --diff, then add --yes")
		}
		fmt.Fprintf(a.err, "trust these files of %s%s? [y/N] ", assembly.TrustedName(s, loaded), withGrants(grants))
		line, err := a.readLine(ctx)
		if err != nil {
			return err
		}
		if word := strings.ToLower(strings.TrimSpace(line)); word != "y" && word != "yes" {
			return &exitError{code: exitFailed, err: errors.New("nothing was trusted")}
		}
	}
	if _, err := trust.Add(loaded, who(), grants...); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s is now trusted%s, until one of its files changes\n", assembly.TrustedName(s, loaded), withGrants(grants))
	return nil
}

func withGrants(grants []string) string {
	if len(grants) == 0 {
		return ""
	}
	return ", with " + strings.Join(grants, ", ")
}

func changeWord(c space.Change) string {
	switch {
	case c.New:
		return "new     "
	case c.Gone:
		return "gone    "
	default:
		return "changed "
	}
}

// tellPrograms prints the programs and servers of a place that would run if it is trusted.
func (a *app) tellPrograms(s *config.Loaded, loaded *space.Space) {
	for _, d := range loaded.Programs() {
		what := strings.Join(d.Argv, " ")
		if d.Webhook != nil {
			what = "calls " + d.Webhook.URL
		}
		var names []string
		for _, e := range d.Env {
			name, _, _ := strings.Cut(e, "=")
			names = append(names, name)
		}
		if d.Webhook != nil && d.Webhook.Secret != "" {
			names = append(names, d.Webhook.Secret)
		}
		if len(names) > 0 {
			what += "  gets the variables " + strings.Join(names, ", ")
		}
		where := strings.ReplaceAll(fmt.Sprintf("%s:%d", assembly.ShownPath(s, d.File), d.Line), "\n", "␊")
		if d.Options.Shadow {
			what += "  shadow mode: Belay ignores its answer"
		}
		fmt.Fprintf(a.out, "%s at %s: %s  %s\n", inspect.PrefixedID(loaded, d), d.Phase, visible.All(what), a.onOut.dim(visible.All(where)))
	}
	for i := range loaded.Servers {
		server := &loaded.Servers[i]
		what, given := strings.Join(append([]string{server.Command}, server.Args...), " "), server.Env
		if server.URL != "" {
			what, given = "calls "+server.URL, server.Headers
		}
		if len(given) > 0 {
			what += "  gets " + strings.Join(slices.Sorted(maps.Keys(given)), ", ")
		}
		where := strings.ReplaceAll(fmt.Sprintf("%s:%d", assembly.ShownPath(s, server.File), server.Line), "\n", "␊")
		fmt.Fprintf(a.out, "MCP server %s: %s  %s\n", visible.All(oneLine(server.Name)), visible.All(what), a.onOut.dim(visible.All(where)))
	}
}

func (a *app) showChanges(s *config.Loaded, loaded *space.Space) error {
	record, err := assembly.OpenTrust(s).Lookup(loaded.Dir)
	if err != nil {
		return err
	}
	changes := loaded.Changes(record)
	if record == nil && len(changes) == 0 {
		fmt.Fprintln(a.out, "there is nothing to trust: no hooks, agents or servers")
		return nil
	}
	if len(changes) == 0 {
		fmt.Fprintf(a.out, "nothing has changed since %s trusted it, %s\n", record.By, record.At.Local().Format(time.DateTime))
		return nil
	}
	for _, c := range changes {
		before, after := "a/"+c.Name, "b/"+c.Name
		if c.New {
			before = ""
		}
		if c.Gone {
			after = ""
		}
		if c.Opaque {
			fmt.Fprintf(a.out, "%s%s: its content cannot be shown\n", changeWord(c), visible.All(c.Name))
			continue
		}
		text, _, _ := diff.Unified(visible.All(before), visible.All(after), c.Before, c.After)
		if text == "" {
			text = fmt.Sprintf("%s%s: only the executable bit\n", changeWord(c), visible.All(c.Name))
		}
		fmt.Fprint(a.out, visible.All(text))
	}
	return nil
}

func (a *app) forgetTrust(s *config.Loaded, loaded *space.Space) error {
	had, err := assembly.OpenTrust(s).Remove(loaded.Dir)
	if err != nil {
		return err
	}
	if !had {
		return fmt.Errorf("%s was not trusted", assembly.ShownPath(s, loaded.Dir))
	}
	fmt.Fprintf(a.out, "%s is no longer trusted\n", assembly.ShownPath(s, loaded.Dir))
	return nil
}

func (a *app) listTrust(s *config.Loaded, asJSON bool) error {
	records, err := assembly.OpenTrust(s).Records()
	if err != nil {
		return err
	}
	out := a.newList(asJSON, "DIRECTORY", "AS", "STATE", "GRANTS", "BY", "SINCE")
	host := space.NewHost(&space.Options{Trust: assembly.OpenTrust(s)})
	for _, r := range records {
		r.Files = nil
		out.add(r, assembly.ShownPath(s, r.Dir), r.Origin.String(), inspect.TrustState(s, host, r), strings.Join(r.Grants, ","), r.By, r.At.Local().Format(time.DateOnly))
	}
	return out.end("nothing is trusted")
}
