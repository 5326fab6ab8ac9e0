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
	// Mode says which calls run without a person. Defaults to Build if Sandboxed is set,
	// and to Standard otherwise.
	Mode Mode
	// Rules apply in every mode. Defaults to none.
	Rules []Rule
	// Guards are checked before everything else. Defaults to none.
	Guards []Guard
	// Relax has the ids of protections to switch off. Defaults to none.
	Relax []string
	// Tools describes tools that are not part of package toolbox. A key is a name, or a
	// pattern of path.Match. If several keys match, the exact name wins, then the longest
	// pattern. The floor already knows the tools of package toolbox: a key that names one
	// is an error, and patterns do not apply to them. Defaults to none. A tool without a
	// description is zone 5.
	Tools map[string]Profile
	// Aliases returns further names of a tool, for example those that other agents give to
	// it. Ask rules, deny rules and guards that match one of them apply to the tool. Allow
	// rules do not. Defaults to none.
	Aliases func(tool string) []string
	// Roots are more directories that file tools may use, as absolute paths. They need
	// not exist yet. Defaults to none.
	Roots []string
	// Protect has more files and directories that must not change, such as those of
	// loaded spaces. Defaults to none.
	Protect []string
	// Sandboxed says that the commands of the shell tool run in a sandbox. The zone of a
	// command outside a sandbox rises by one. Commands of other tools always count as
	// outside a sandbox. Defaults to false.
	Sandboxed bool
	// Shell is the program that runs the commands of the shell tool. It is bash or
	// another POSIX shell. Defaults to bash.
	Shell string
	// Home is the user's home directory. Defaults to the home directory of the process.
	Home string
	// Temp is the directory for temporary files. If you set it, also pass it to commands
	// as TMPDIR. Defaults to the temporary directory of the process.
	Temp string
}

// Floor judges calls. It is safe for concurrent use.
type Floor struct {
	mode       Mode
	aliases    func(tool string) []string // or nil
	project    root
	extra      *rootList
	home, temp root
	givesTemp  bool // commands get temp as TMPDIR
	protected  []root
	hooks      []root // other files that git runs as hooks, besides .git/hooks
	sandboxed  bool
	plainShell bool // a shell other than bash runs commands
	commands   *commands
	tools      *profiles
	guards     []guard
	rules      *rules
	relaxed    map[string]bool
	decisions  map[string]belay.ToolDecision // by id of the protection
}

var _ belay.Authorizer = (*Floor)(nil)

// New returns the floor of a project. The project is the directory that agents work in.
// The error names every mistake in the options.
func New(project string, opts *Options) (*Floor, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	f := &Floor{mode: o.Mode, sandboxed: o.Sandboxed, commands: knownCommands(), relaxed: map[string]bool{}, decisions: map[string]belay.ToolDecision{}, extra: new(rootList)}
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
		f.extra.add(place(dir))
	}
	for _, path := range o.Protect {
		f.protected = append(f.protected, place(path))
	}
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir() // without a home directory, the meaning of ~ is unknown
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
			problems = append(problems, fmt.Errorf("permit: unknown protection %q in relax%s", id, near.Hint(id, ids)))
		}
		f.relaxed[id] = true
	}
	var err error
	f.tools, err = newProfiles(o.Tools)
	problems = append(problems, err)
	f.guards, err = newGuards(o.Guards, f.tools)
	problems = append(problems, err)
	f.aliases = o.Aliases
	f.rules, err = newRules(o.Rules, f.tools, o.Aliases)
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

// CheckTool returns an error if the floor does not know the tool, but knows one with a
// similar name. Other unknown names are fine, because tools may come from anywhere.
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

// holds returns the decision of a protection. It returns deny if the protection is
// unknown.
func (f *Floor) holds(protection string) belay.ToolDecision {
	return cmp.Or(f.decisions[protection], belay.ToolDeny)
}

// Authorize judges a call.
func (f *Floor) Authorize(ctx context.Context, call belay.ToolCall) (belay.Authorization, error) {
	e := f.Explain(ctx, call.Tool(), call.Input())
	return belay.Authorization{Decision: e.Decision, Reason: e.Asks(), By: e.By, Places: e.Places()}, nil
}

// Explain returns the floor's decision about a call, and the reasons.
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
			*z++ // without a sandbox, nothing else limits the command
			e.Findings[i].Raised = true
		}
		e.Zone = max(e.Zone, e.Findings[i].Zone)
	}
	f.consider(ctx, e, input, fields)
	return e
}
