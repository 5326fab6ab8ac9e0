package config

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/permit"
)

// Permit configures the floor. The rules and guards of all files apply together. Rules of
// a project may ask and deny, but not allow.
type Permit struct {
	// Rules include the file and line of each rule.
	Rules []permit.Rule `json:"rules"`
	// Relax names protections that are off.
	Relax []string `json:"relax"`
	// Roots are more directories for the file tools, as absolute paths.
	Roots  []string `json:"roots"`
	Guards []Guard  `json:"guards"`
	// Tools says what custom tools do. A key is the name of a tool, and may have wildcards.
	Tools map[string]permit.Profile `json:"tools"`
}

// Guard is a guard and its file and line.
type Guard struct {
	permit.Guard

	Where string
}

// Sandbox says how commands are confined.
type Sandbox struct {
	// Mode is auto (use a sandbox if the machine has one), require (commands do not run
	// without a sandbox) or off.
	Mode string `json:"mode"`
	// Write are more directories that confined commands may change, as absolute paths.
	Write []string `json:"write"`
	// Memory is how many bytes a confined command and its child processes may use. 0 means
	// half of the machine's memory.
	Memory int64 `json:"memory"`
	// Processes is how many processes and threads a command may have. 0 means 4096.
	Processes int `json:"processes"`
	// CPUTime is how much CPU time a command may use. 0 means one hour per CPU.
	CPUTime time.Duration `json:"cpu_time"`
}

// Network configures connections to webhooks and remote MCP servers.
type Network struct {
	// PrivateHosts are hosts that may resolve to private addresses. An entry is a host
	// name, or *.name for all its subdomains.
	PrivateHosts []string `json:"private_hosts"`
	// Proxy means that the proxy in the environment variables is used.
	Proxy bool `json:"proxy"`
}

// These are the modes of the sandbox. Each is stricter than the one before.
const (
	SandboxOff     = "off"
	SandboxAuto    = "auto"
	SandboxRequire = "require"
)

func sandboxModes() []string { return []string{SandboxOff, SandboxAuto, SandboxRequire} }

// looserSandbox reports whether the project's mode is looser than the user's.
func looserSandbox(project, user *Config) bool {
	mode := user.Sandbox.Mode
	if mode == "" {
		mode = SandboxAuto
	}
	return slices.Index(sandboxModes(), project.Sandbox.Mode) < slices.Index(sandboxModes(), mode)
}

// ModeNames returns the names of the modes of the floor.
func ModeNames() []string {
	var names []string
	for _, m := range permit.Modes() {
		names = append(names, m.Name)
	}
	return names
}

// looserMode reports whether the project's mode is looser than the user's.
func looserMode(project, user *Config) bool {
	p, err := permit.ModeOf(project.Mode)
	u, unset := permit.ModeOf(user.Mode)
	if unset != nil {
		u = permit.Standard
	}
	return err == nil && (p.Auto > u.Auto || p.Ask > u.Ask)
}

// addsUp reports whether the values of a file are added to those of earlier files, instead
// of replacing them.
func addsUp(into any) bool {
	switch into.(type) {
	case *[]permit.Rule, *[]Guard:
		return true
	default:
		return false
	}
}

// structured reads a setting that is not a plain value: rules, guards, profiles or
// providers. It reports whether the setting is one of these. It records mistakes with their
// line.
func (r *reading) structured(node ast.Node, into any) bool {
	switch into := into.(type) {
	case *[]permit.Rule:
		*into = append(slices.Clip(*into), r.rules(node)...)
	case *[]Guard:
		*into = append(slices.Clip(*into), r.guards(node, *into)...)
	case *map[string]permit.Profile:
		*into = r.profiles(node)
	case *map[string]Channel:
		*into = r.channels(node)
	case *map[string]Provider:
		*into = r.providers(node)
	default:
		return false
	}
	return true
}

func (r *reading) items(what string, node ast.Node) []ast.Node {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		r.refusef(node, "%s: expected a list", what)
		return nil
	}
	return list.Values
}

// members reads the keys of an object. keys has a function for each key.
func (r *reading) members(what string, node ast.Node, keys map[string]func(ast.Node) error) {
	object, ok := node.(ast.MapNode)
	if !ok {
		r.refusef(node, "%s: expected keys with values", what)
		return
	}
	known := slices.Sorted(maps.Keys(keys))
	for pairs := object.MapRange(); pairs.Next(); {
		name := pairs.Key().String()
		read, ok := keys[name]
		if !ok {
			hint := near.Hint(name, known)
			if hint == "" {
				hint = ": use one of " + strings.Join(known, ", ")
			}
			r.refusef(pairs.Key(), "%s: unknown key %q%s", what, name, hint)
			continue
		}
		if err := read(pairs.Value()); err != nil {
			r.refusef(pairs.Key(), "%s: %s: %w", what, name, err)
		}
	}
}

// text reads a string, and texts a list of strings.
func text(into *string) func(ast.Node) error {
	return func(node ast.Node) error { return decode(node, into) }
}

func texts(into *[]string) func(ast.Node) error {
	return func(node ast.Node) error { return decode(node, into) }
}

// where returns the file and line of a rule, for messages to the model and to people.
func (r *reading) where(node ast.Node) string {
	if r.only != "" { // a file of rules, which the user has named
		return fmt.Sprintf("%s:%d", r.file, lineOf(node))
	}
	if r.kind == "project" {
		return fmt.Sprintf("%s:%d", Name, lineOf(node))
	}
	owner := "user"
	if r.kind == "system" {
		owner = "machine"
	}
	return fmt.Sprintf("the %s's %s:%d", owner, Name, lineOf(node))
}

func (r *reading) rules(node ast.Node) []permit.Rule {
	const what = "permit.rules"
	var rules []permit.Rule
	for _, item := range r.items(what, node) {
		var line, reason string
		if _, ok := item.(ast.MapNode); ok {
			r.members(what, item, map[string]func(ast.Node) error{"rule": text(&line), "reason": text(&reason)})
		} else if err := decode(item, &line); err != nil {
			r.refusef(item, `%s: expected a rule, such as deny shell(git push *), or {rule: "…", reason: "…"}`, what)
			continue
		}
		rule, err := permit.ParseRule(line)
		if err != nil {
			r.refusef(item, "%s: %w", what, plainly(err))
			continue
		}
		rule.Reason, rule.Where, rule.Origin = reason, r.where(item), hook.OriginOperator
		if r.kind == "project" {
			rule.Origin = hook.OriginProject
		}
		if rule.Decision == permit.RuleAllow && r.kind == "project" {
			r.refusef(item, "%s: %q: a rule of a project may ask or deny, but not allow: put this rule into the user's %s", what, rule.String(), Name)
			continue
		}
		r.into.lines[rule.Where] = fmt.Sprintf("%s:%d", r.file, lineOf(item))
		rules = append(rules, rule)
	}
	return rules
}

func (r *reading) guards(node ast.Node, have []Guard) []Guard {
	const what = "permit.guards"
	var guards []Guard
	for _, item := range r.items(what, node) {
		g := Guard{Where: r.where(item)}
		before := len(r.problems)
		r.members(what, item, map[string]func(ast.Node) error{
			"id": text(&g.ID), "tools": texts(&g.Tools), "deny": text(&g.Deny), "commands": texts(&g.Commands), "paths": texts(&g.Paths), "reason": text(&g.Reason),
		})
		if len(r.problems) > before {
			continue
		}
		for _, other := range append(slices.Clip(have), guards...) {
			if other.ID == g.ID && g.ID != "" {
				r.refusef(item, "%s: the guard %q already exists in %s: choose another id", what, g.ID, other.Where)
			}
		}
		if g.ID == "" {
			r.refusef(item, "%s: the guard has no id: give it one, such as no-prod; denials show this id", what)
			continue
		}
		r.into.lines[g.Where] = fmt.Sprintf("%s:%d", r.file, lineOf(item))
		guards = append(guards, g)
	}
	return guards
}

func (r *reading) profiles(node ast.Node) map[string]permit.Profile {
	const what = "permit.tools"
	object, ok := node.(ast.MapNode)
	if !ok {
		r.refusef(node, "%s: expected names of tools, each with a description: {deploy: {zone: 4}}", what)
		return nil
	}
	tools := make(map[string]permit.Profile)
	for pairs := object.MapRange(); pairs.Next(); {
		name := keyName(pairs.Key())
		if _, err := path.Match(name, ""); err != nil || name == "" {
			r.refusef(pairs.Key(), "%s: %q is not the name of a tool: write a name, with * and ? as wildcards", what, name)
			continue
		}
		var p permit.Profile
		r.members(what+"."+name, pairs.Value(), map[string]func(ast.Node) error{
			"zone": zone(&p.Zone), "reads": texts(&p.Reads), "writes": texts(&p.Writes), "urls": texts(&p.URLs), "command": text(&p.Command),
		})
		if _, err := permit.New(r.into.Project, &permit.Options{Tools: map[string]permit.Profile{name: p}}); err != nil {
			r.refusef(pairs.Key(), "%s: %w", what, plainly(err))
			continue
		}
		tools[name] = p
	}
	return tools
}

// zone reads the number of a zone, or its name.
func zone(into *permit.Zone) func(ast.Node) error {
	return func(node ast.Node) error {
		var word any
		if err := yaml.NodeToValue(node, &word); err != nil {
			return errors.New("expected a zone")
		}
		var names []string
		for _, z := range permit.Zones() {
			if said := fmt.Sprint(word); said == z.String() || said == strconv.Itoa(int(z)) {
				*into = z
				return nil
			}
			names = append(names, fmt.Sprintf("%d %s", z, z))
		}
		return fmt.Errorf("%v is not a zone: use one of %s", word, strings.Join(names, ", "))
	}
}

// plainError shows an error of package permit without the names of the package and its
// options.
type plainError struct{ error }

func plainly(err error) error { return plainError{err} }

func (e plainError) Error() string {
	return strings.NewReplacer("permit: ", "", " (Options.Tools)", "").Replace(e.error.Error())
}

func (e plainError) Unwrap() error { return e.error }

func checkProtections(ids []string) error {
	var known []string
	for _, p := range permit.Protections() {
		known = append(known, p.ID)
	}
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return fmt.Errorf("there is no protection %q%s: `belay permit rules` lists them", id, near.Hint(id, known))
		}
	}
	return nil
}

func checkDirectories(dirs []string) error {
	if slices.Contains(dirs, "") {
		return errors.New(`a directory is missing: in YAML a bare ~ means null, write "~"`)
	}
	return nil
}

// FloorOptions returns the options of the floor that come from the settings. It sets
// neither the mode nor the sandbox.
func (l *Loaded) FloorOptions() *permit.Options {
	o := &permit.Options{Rules: slices.Clone(l.Permit.Rules), Relax: slices.Clone(l.Permit.Relax), Tools: maps.Clone(l.Permit.Tools), Roots: slices.Clone(l.Permit.Roots)}
	for _, g := range l.Permit.Guards {
		o.Guards = append(o.Guards, g.Guard)
	}
	return o
}

// checkRules checks each rule and guard. It runs after all files are read, because rules
// may name tools of any file.
func (l *Loaded) checkRules() error {
	if len(l.Permit.Rules)+len(l.Permit.Guards) == 0 {
		return nil
	}
	try := func(o *permit.Options) error {
		o.Tools = l.Permit.Tools
		_, err := permit.New(l.Project, o)
		return err
	}
	all := l.FloorOptions()
	if try(&permit.Options{Rules: all.Rules, Guards: all.Guards}) == nil {
		return nil
	}
	var problems []error
	for _, rule := range l.Permit.Rules {
		where := rule.Where
		rule.Where = ""
		if err := try(&permit.Options{Rules: []permit.Rule{rule}}); err != nil {
			problems = append(problems, fmt.Errorf("%s: permit.rules: %w", l.lines[where], plainly(err)))
		}
	}
	for i := range l.Permit.Guards {
		g := &l.Permit.Guards[i]
		if err := try(&permit.Options{Guards: []permit.Guard{g.Guard}}); err != nil {
			problems = append(problems, fmt.Errorf("%s: permit.guards: %w", l.lines[g.Where], plainly(err)))
		}
	}
	return errors.Join(problems...)
}
