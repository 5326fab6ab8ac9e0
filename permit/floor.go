package permit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/near"
)

// Options are the options of [New]. A nil *Options is valid.
type Options struct {
	// Mode is how far the agent goes without a person. Defaults to Build if Sandboxed is set,
	// and to Standard otherwise.
	Mode Mode
	// Rules apply in every mode. Defaults to none.
	Rules []Rule
	// Guards are checked before everything else. Defaults to none.
	Guards []Guard
	// Relax has the ids of protections that are switched off. Defaults to none.
	Relax []string
	// Tools describes tools that are not part of package toolbox, by name or by a
	// pattern of path.Match. If several match, the exact name wins, then the longest
	// pattern. The tools of package toolbox are known: naming one is an error, and
	// patterns do not apply to them. Defaults to none: tools without a description are
	// zone 5.
	Tools map[string]Profile
	// Roots are further directories that file tools may use, as absolute paths. They
	// need not exist yet. Defaults to none.
	Roots []string
	// Protect has further files and directories that must not change, such as those of
	// loaded spaces. Defaults to none.
	Protect []string
	// Sandboxed says that the commands of the tool shell run in a sandbox. Commands of
	// other tools count as not confined. The zone of a command that is not confined
	// rises by one. Defaults to false.
	Sandboxed bool
	// Shell is the program that runs the commands of the tool shell: bash, or another
	// shell that follows POSIX. Defaults to bash.
	Shell string
	// Home is the user's home directory. Defaults to the home directory of the process.
	Home string
	// Temp is the directory for temporary files. If it is set, commands must get it as
	// TMPDIR. Defaults to the temporary directory of the process.
	Temp string
}

// Floor judges calls. It is safe for concurrent use.
type Floor struct {
	mode       Mode
	project    root
	extra      []root
	home, temp root
	givesTemp  bool // commands have temp as TMPDIR
	protected  []root
	hooks      []root // further files that git runs, besides .git/hooks
	sandboxed  bool
	plainShell bool // commands are not run by bash
	commands   *commands
	tools      *profiles
	guards     []guard
	rules      *rules
	relaxed    map[string]bool
	decisions  map[string]belay.ToolDecision // of the protections
}

var _ belay.Authorizer = (*Floor)(nil)

// New returns the floor of a project, the directory that agents work in. The error names
// every mistake in the options.
func New(project string, opts *Options) (*Floor, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	f := &Floor{mode: o.Mode, sandboxed: o.Sandboxed, commands: knownCommands(), relaxed: map[string]bool{}, decisions: map[string]belay.ToolDecision{}}
	if f.mode == (Mode{}) {
		if f.mode = Standard; o.Sandboxed {
			f.mode = Build
		}
	}
	f.plainShell = o.Shell != "" && filepath.Base(o.Shell) != "bash"
	var problems []error
	place := func(dir string) root {
		r, err := newRoot(dir)
		problems = append(problems, err)
		return r
	}
	f.project = place(project)
	if info, err := os.Stat(project); err != nil || !info.IsDir() {
		problems = append(problems, fmt.Errorf("permit: the project %q is not a directory", project))
	}
	problems = append(problems, f.mode.check())
	for _, dir := range o.Roots {
		if info, err := os.Stat(dir); !filepath.IsAbs(dir) || err == nil && !info.IsDir() {
			problems = append(problems, fmt.Errorf("permit: the root %q is not the absolute path of a directory", dir))
		}
		f.extra = append(f.extra, place(dir))
	}
	for _, path := range o.Protect {
		f.protected = append(f.protected, place(path))
	}
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir() // without one, ~ is unknown
	}
	if o.Home != "" {
		f.home = place(o.Home)
	}
	f.temp = place(cmp.Or(o.Temp, os.TempDir()))
	f.givesTemp = o.Temp != "" || os.Getenv("TMPDIR") != "" // commands inherit the variable
	f.findHooks()
	var ids []string
	for _, p := range Protections() {
		ids = append(ids, p.ID)
		f.decisions[p.ID] = p.Decision
	}
	for _, id := range o.Relax {
		if !slices.Contains(ids, id) {
			problems = append(problems, fmt.Errorf("permit: there is no protection %q to relax%s", id, near.Hint(id, ids)))
		}
		f.relaxed[id] = true
	}
	var err error
	f.tools, err = newProfiles(o.Tools)
	problems = append(problems, err)
	f.guards, err = newGuards(o.Guards, f.tools)
	problems = append(problems, err)
	f.rules, err = newRules(o.Rules, f.tools)
	problems = append(problems, err)
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return f, nil
}

// In returns the same floor in another mode.
func (f *Floor) In(mode Mode) *Floor {
	if mode == f.mode {
		return f
	}
	other := *f
	other.mode = mode
	return &other
}

// Mode returns the floor's mode.
func (f *Floor) Mode() Mode { return f.mode }

// CheckTool returns an error if the floor knows no tool of this name, but one with a
// similar name. A name that is similar to none is fine, because tools come from many
// places.
func (f *Floor) CheckTool(tool string) error {
	if err := f.tools.misspelt(tool); err != nil {
		return fmt.Errorf("permit: %w", err)
	}
	return nil
}

// Relaxed returns the protections that are switched off.
func (f *Floor) Relaxed() []Protection {
	return slices.DeleteFunc(Protections(), func(p Protection) bool { return !f.relaxed[p.ID] })
}

// holds returns the decision of a protection. An unknown protection denies.
func (f *Floor) holds(protection string) belay.ToolDecision {
	return cmp.Or(f.decisions[protection], belay.ToolDeny)
}

// Authorize judges a call.
func (f *Floor) Authorize(ctx context.Context, call belay.ToolCall) (belay.Authorization, error) {
	e := f.Explain(ctx, call.Tool(), call.Input())
	return belay.Authorization{Decision: e.Decision, Reason: e.Asks(), By: e.By, Places: e.Places()}, nil
}

// Explain returns what the floor decides about a call of a tool with an input, and why.
func (f *Floor) Explain(ctx context.Context, tool string, input json.RawMessage) *Explanation {
	e := &Explanation{Tool: tool, Mode: f.mode}
	profile := f.tools.of(tool)
	fields, err := members(input)
	if err != nil {
		e.Zone = ZoneMachine
		e.Findings = []Finding{{Kind: KindUnknown, Subject: tool, Zone: ZoneMachine, Why: err.Error(), Protection: inputReadings}}
	} else {
		e.Findings = f.findings(tool, profile, fields)
	}
	shell := profile.Command != "" && (!f.sandboxed || tool != shellTool)
	for i := range e.Findings {
		if z := &e.Findings[i].Zone; shell && *z < ZoneMachine {
			*z++ // without a sandbox, only this analysis contains the command
			e.Findings[i].Raised = true
		}
		e.Zone = max(e.Zone, e.Findings[i].Zone)
	}
	f.consider(ctx, e, input, fields)
	return e
}
