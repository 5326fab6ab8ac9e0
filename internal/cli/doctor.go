package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/sandbox"
	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
)

// finding is one line in the output of "belay doctor".
type finding struct {
	// Name says what was checked. Status is ok, missing, note or broken.
	Name   string `json:"name"`
	Status string `json:"status"`
	// Detail is the result. Remedy says how to fix it.
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
	// Essential means that doctor fails if Status is not ok.
	Essential bool `json:"essential,omitempty"`
}

const (
	found   = inspect.Found
	missing = inspect.Missing
	broken  = inspect.Broken
	note    = inspect.Noted
)

// report is the result of doctor. --json prints it.
type report struct {
	OK       bool             `json:"ok"`
	Project  string           `json:"project,omitempty"`
	Findings []finding        `json:"findings"`
	Settings []settingInForce `json:"settings,omitempty"`
	Build    build            `json:"build"`
}

// settingInForce is a setting, its value, and where the value comes from.
type settingInForce struct {
	Path  string        `json:"path"`
	Value any           `json:"value"`
	From  config.Source `json:"from"`
}

func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check keys, settings, store and sandbox, and say what is missing",
		Long: `Checks the keys and the model, the effective settings and their sources, the store and its integrity,
the floor and the sandbox, and other useful programs. Says how to get what is missing. If the exit code is 0, a task can run.`,
		Example: `  belay doctor
  belay doctor --json | jq '.findings[] | select(.status != "ok")'`,
		Args: arguments(0, 0, "doctor takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := a.examine(cmd.Context())
			if asJSON {
				if err := a.printJSON(r); err != nil {
					return err
				}
			} else if err := a.showReport(r); err != nil {
				return err
			}
			if !r.OK {
				return &exitError{code: exitFailed}
			}
			return nil
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object")
	return cmd
}

// examine makes all checks of doctor.
func (a *app) examine(ctx context.Context) *report {
	r := &report{OK: true, Build: thisBuild()}
	settings, err := a.settings()
	if err != nil {
		r.add(finding{"settings", broken, err.Error(), "correct the setting that the message names, or see `belay init`", true})
	} else {
		a.assembler().DefaultMode(ctx, settings)
		r.Project = settings.Project
		r.add(settingsFinding(settings))
		for _, path := range config.Paths() {
			r.Settings = append(r.Settings, settingInForce{path, shownValue(settings.Value(path)), settings.From(path)})
		}
		r.add(modelFinding(ctx, settings))
		r.add(providersFinding(settings))
		r.add(a.storeFinding(ctx, settings))
		r.add(a.floorFinding(ctx, settings))
		r.add(a.filesFinding(ctx, settings))
		r.add(a.unheededFinding(ctx, settings))
		r.add(a.otherAgentsFinding(ctx, settings))
		if len(settings.Channels) > 0 {
			r.add(channelsFinding(settings))
		}
	}
	r.add(a.sandboxFinding(ctx, settings))
	r.add(programFinding(ctx, "git", []string{"git", "--version"}, "install git: tasks on a project are easier to review and undo with it"))
	r.add(postgresFinding(ctx))
	r.add(a.terminalFinding())
	return r
}

func (r *report) add(f finding) {
	if f.Essential && f.Status != found {
		r.OK = false
	}
	r.Findings = append(r.Findings, f)
}

func settingsFinding(s *config.Loaded) finding {
	var files []string
	for _, f := range []string{s.UserFile, s.ProjectFile} {
		if f != "" {
			files = append(files, f)
		}
	}
	f := finding{Name: "settings", Status: found, Detail: strings.Join(files, ", "), Essential: true}
	if len(files) == 0 {
		f.Detail, f.Remedy = "no settings file: the defaults apply", "`belay init` writes one"
	}
	return f
}

// modelFinding reports which model would be used. It sends a request only to a server on
// this machine.
func modelFinding(ctx context.Context, s *config.Loaded) finding {
	f := finding{Name: "model", Status: found, Essential: true}
	model, err := assembly.OpenModel(s)
	if err != nil {
		f.Status, f.Detail = missing, "none"
		f.Remedy = err.Error()
		return f
	}
	f.Detail = assembly.ModelName(s)
	p, _, err := s.ModelOf(f.Detail)
	if err != nil || p.Name == config.Scripted || model == nil {
		return f
	}
	if key, where, _ := assembly.KeyOf(s, p); key != "" {
		f.Detail += fmt.Sprintf(", key %s from %s", assembly.MaskKey(key), where)
	}
	if s.From("providers."+p.Name+".url").Kind != "default" {
		f.Detail += ", at " + p.URL
	}
	if near, ok := model.(belay.ReachModel); ok && assembly.IsHere(p.URL) {
		if err := near.Reach(ctx); err != nil {
			f.Status, f.Remedy = broken, err.Error()
		}
	}
	return f
}

// providersFinding reports which providers can be used. It sends no requests.
func providersFinding(s *config.Loaded) finding {
	f := finding{Name: "providers", Status: found, Remedy: "`belay models` lists their models, `belay models --check` checks whether they answer"}
	offers, err := inspect.ListModels(s, nil)
	if err != nil {
		f.Status, f.Detail = broken, err.Error()
		return f
	}
	var lines, keyless, local []string
	for i := range offers.Providers {
		switch p := &offers.Providers[i]; {
		case p.Set || p.Status == broken:
			if p.Status != found {
				f.Status = note
			}
			lines = append(lines, strings.TrimSuffix(p.Name+": "+p.Detail+"; "+p.Remedy, "; "))
		case p.Status == missing:
			keyless = append(keyless, p.Name)
		default:
			local = append(local, p.Name)
		}
	}
	if len(keyless) > 0 {
		lines = append(lines, "without a key: "+strings.Join(keyless, ", "))
	}
	if len(local) > 0 {
		lines = append(lines, "usable if their local server runs: "+strings.Join(local, ", "))
	}
	f.Detail = strings.Join(lines, "\n")
	return f
}

// storeFinding checks the store if one exists. It does not create a store.
func (a *app) storeFinding(ctx context.Context, settings *config.Loaded) finding {
	path := settings.Store
	f := finding{Name: "store", Status: found, Detail: config.MaskDSN(path), Essential: true}
	if config.IsDSN(path) {
		if problem := a.checkStore(ctx, settings); problem != nil {
			f.Status, f.Remedy = broken, problem.Error()
		}
		return f
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		f.Detail += " (the first run creates it)"
		if problem := writable(settings); problem != nil {
			f.Status, f.Remedy = broken, problem.Error()
		}
		return f
	}
	if err != nil {
		f.Status, f.Remedy = broken, err.Error()
		return f
	}
	if problem := a.checkStore(ctx, settings); problem != nil {
		f.Status, f.Remedy = broken, problem.Error()
		return f
	}
	f.Detail += fmt.Sprintf(", %s, intact", bytesOf(info.Size()))
	return f
}

// writable returns why Belay could not create the store, or nil.
func writable(settings *config.Loaded) error {
	dir := filepath.Dir(settings.Store)
	if dir != filepath.Join(settings.Project, ".belay") {
		if err := assembly.StoreDir(settings); err != nil {
			return err
		}
	}
	for {
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
			continue
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", dir)
		}
		probe, err := os.CreateTemp(dir, ".belay-probe-*")
		if err != nil {
			return fmt.Errorf("%s cannot be written to: %w", dir, err)
		}
		return errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
}

// sandboxFinding reports how shell commands are confined.
func (a *app) sandboxFinding(ctx context.Context, settings *config.Loaded) finding {
	f := finding{Name: "sandbox", Status: found}
	mode := config.SandboxAuto
	if settings != nil {
		mode = settings.Sandbox.Mode
		f.Essential = mode == config.SandboxRequire
	}
	if mode == config.SandboxOff {
		f.Status, f.Detail = note, fmt.Sprintf("off (%s): shell commands are not confined, so their calls are one zone higher", settings.From("sandbox.mode"))
		return f
	}
	d := a.assembler().MachineSandbox(ctx).Describe()
	if d.Kind != sandbox.None {
		f.Detail = fmt.Sprintf("%s (%s): shell commands are confined", d.Kind, d.Means)
		var lacks []string
		for _, limit := range d.Lacks {
			lacks = append(lacks, limit.Text())
		}
		if len(lacks) > 0 {
			f.Remedy = "this sandbox cannot guarantee that " + strings.Join(lacks, "; ")
		}
		return f
	}
	f.Status, f.Detail = note, "none: shell commands are not confined, so their calls are one zone higher"
	if f.Essential {
		f.Status, f.Detail = missing, fmt.Sprintf("none, and %s requires one: shell commands are refused", settings.From("sandbox.mode"))
	}
	f.Remedy = "Belay has no sandbox for " + runtime.GOOS
	if runtime.GOOS == "linux" {
		f.Remedy = "install bubblewrap (Debian: apt install bubblewrap), or use Linux 5.13 or later with Landlock"
	}
	for _, attempt := range d.Failed {
		f.Remedy += fmt.Sprintf("\n%s: %v", attempt.Kind, attempt.Err)
	}
	return f
}

// floorFinding reports the rules of the floor and the protections that the settings relax.
func (a *app) floorFinding(ctx context.Context, s *config.Loaded) finding {
	f := finding{Name: "floor", Status: found, Remedy: "`belay permit rules` lists them"}
	mode := a.assembler().ModeOfTurn(ctx, s, nil)
	others := assembly.OtherPermissions(ctx, s)
	f.Detail = fmt.Sprintf("%s mode, %s, %s, %s", mode.Name, visible.Counted(len(permit.Protections())-len(s.Permit.Relax), "protection"),
		visible.Counted(len(s.Permit.Rules)+len(others.Rules), "rule"), visible.Counted(len(s.Permit.Guards)+len(others.Guards), "guard"))
	if len(s.Permit.Relax) > 0 {
		f.Status = note
		f.Detail += fmt.Sprintf("; relaxed: %s (%s)", strings.Join(s.Permit.Relax, ", "), s.From("permit.relax"))
	}
	for _, list := range []string{"permit.roots", "sandbox.write"} {
		dirs := *s.Value(list).(*[]string) //nolint:forcetypeassert // both are lists
		for _, dir := range dirs {
			if len(assembly.Existing([]string{dir})) == 0 {
				f.Status = note
				f.Detail += fmt.Sprintf("; %s does not exist and is left out (%s)", dir, s.From(list))
			}
		}
	}
	return f
}

// programFinding runs a program to print its version.
func programFinding(ctx context.Context, name string, argv []string, remedy string) finding {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return finding{Name: name, Status: note, Detail: "not installed; optional", Remedy: remedy}
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, argv[1:]...).Output() //nolint:gosec // one of two programs, found on the path
	if err != nil {
		return finding{Name: name, Status: note, Detail: fmt.Sprintf("%s does not run: %v", path, err), Remedy: remedy}
	}
	return finding{Name: name, Status: found, Detail: oneLine(string(out))}
}

// filesFinding looks for mistakes in hooks, spaces, agents and MCP servers, as "belay
// check" does.
func (a *app) filesFinding(ctx context.Context, s *config.Loaded) finding {
	f := finding{Name: "hooks", Status: found, Essential: true}
	places := a.assembler().OpenPlaces(ctx, s)
	_, _, err := a.assembler().ReadMCP()
	if err := errors.Join(places.Err, err); err != nil {
		f.Status, f.Detail, f.Remedy = broken, oneLine(err.Error()), "`belay check` prints all mistakes with file and line"
		return f
	}
	hooks := 0
	for _, p := range places.All {
		hooks += len(p.Hooks)
		for _, d := range p.Agents {
			hooks += len(p.AgentHooks(d.Name))
		}
	}
	f.Detail = visible.Counted(hooks, "declared hook") + "; `belay hooks list` shows which run"
	return f
}

// otherAgentsFinding reports the files of other coding agents, and what Belay does with each.
func (a *app) otherAgentsFinding(ctx context.Context, s *config.Loaded) finding {
	f := finding{Name: "other agents", Status: found, Detail: "no files of other coding agents"}
	files := a.assembler().OtherFiles(ctx, s)
	if len(files) == 0 {
		return f
	}
	var lines []string
	for _, one := range files {
		if one.Partly {
			f.Status = note
		}
		lines = append(lines, visible.All(oneLine(one.String())))
	}
	f.Detail, f.Remedy = strings.Join(lines, "\n"), "docs/other-agents-files.md explains them; other_agents.ignore switches kinds off"
	return f
}

// unheededFinding reports files that look like hooks or rules, but are not read.
func (a *app) unheededFinding(ctx context.Context, s *config.Loaded) finding {
	places := a.assembler().OpenPlaces(ctx, s)
	odd := append(assembly.Unheeded(s, places), places.Remarks...)
	if len(odd) == 0 {
		return finding{Name: "unread files", Status: found, Detail: "none that look like hooks or rules"}
	}
	return finding{Name: "unread files", Status: note, Detail: visible.All(strings.Join(odd, "\n"))}
}

func postgresFinding(ctx context.Context) finding {
	f := programFinding(ctx, "postgresql", []string{"psql", "--version"}, "needed only if several machines share one store (Debian: apt install postgresql)")
	if f.Status != found {
		return f
	}
	f.Detail += "; optional, for a store on many machines"
	if _, err := exec.LookPath("postgres"); err != nil {
		f.Detail += "; the program postgres is not in PATH"
	}
	return f
}

func (a *app) terminalFinding() finding {
	f := finding{Name: "terminal", Status: found, Detail: "output is not a terminal: plain text"}
	if a.outTerminal {
		f.Detail = fmt.Sprintf("%d columns, TERM=%s", a.width, os.Getenv("TERM"))
		if !a.onOut {
			f.Detail += ", no colours"
		}
	}
	if !a.inTerminal {
		f.Detail += "; input is not a terminal: turns park instead of asking"
	}
	return f
}

// showReport prints the report as text.
func (a *app) showReport(r *report) error {
	s := a.onOut
	dress := map[string]func(string) string{found: s.green, missing: s.red, broken: s.red, note: s.dim}
	var t table
	for _, f := range r.Findings {
		lines := a.wrapped(f.Detail)
		t.add(dress[f.Status](f.Status), f.Name, lines[0])
		for _, line := range lines[1:] {
			t.add("", "", line)
		}
		if f.Remedy == "" {
			continue
		}
		for i, line := range a.wrapped(f.Remedy) {
			t.add("", "", s.dim([]string{"→ ", "  "}[min(i, 1)]+line))
		}
	}
	if err := t.write(a.out, nil); err != nil {
		return err
	}
	if len(r.Settings) > 0 {
		var set table
		for _, v := range r.Settings {
			if v.From.Kind != "default" {
				set.add("  "+v.Path, short(oneLine(fmt.Sprint(v.Value)), 50), s.dim(v.From.String()))
			}
		}
		if len(set.rows) > 0 {
			fmt.Fprintf(a.out, "\n%s\n", s.dim("settings that are not the default"))
			if err := set.write(a.out, nil); err != nil {
				return err
			}
		}
	}
	verdict := s.green("ready") + `: belay run "a task"`
	if !r.OK {
		verdict = s.red("not ready") + ": see what is missing or broken above"
	}
	_, err := fmt.Fprintf(a.out, "\n%s\n", verdict)
	return err
}

// besideNames is the width of the columns to the left of the last column.
const besideNames = 24

// wrapped splits a text into lines that fit the terminal.
func (a *app) wrapped(text string) []string {
	text = visible.All(text)
	if a.outTerminal {
		text = ansi.Wordwrap(text, max(a.width-besideNames, narrowest), "")
	}
	return strings.Split(text, "\n")
}

// shownValue returns the value to print for a setting: names for rules and guards, and text
// for a duration.
func shownValue(pointer any) any {
	switch v := reflect.ValueOf(pointer).Elem().Interface().(type) {
	case time.Duration:
		return v.String()
	case string:
		return config.MaskDSN(v)
	case []permit.Rule:
		return namesOf(v, func(r permit.Rule) string { return r.String() })
	case []config.Guard:
		return namesOf(v, func(g config.Guard) string { return g.ID })
	case map[string]permit.Profile:
		return slices.Sorted(maps.Keys(v))
	case map[string]config.Provider:
		return slices.Sorted(maps.Keys(v))
	default:
		return v
	}
}

func namesOf[T any](list []T, name func(T) string) []string {
	var names []string
	for _, item := range list {
		names = append(names, name(item))
	}
	return names
}

// bytesOf formats a size as text, such as "1.2 MB".
func bytesOf(n int64) string {
	switch {
	case n >= 1_000_000_000:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%d B", n)
	}
}

// checkStore opens the store and checks its integrity.
func (a *app) checkStore(ctx context.Context, settings *config.Loaded) (err error) {
	store, err := a.assembler().OpenStore(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	health, err := healthOf(ctx, store)
	if err != nil {
		return err
	}
	if len(health.Problems) > 0 {
		return fmt.Errorf("the store is damaged: %s; `belay store check` says more", health.Problems[0])
	}
	return nil
}
