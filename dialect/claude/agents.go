package claude

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/subagent"
)

// Agent is an agent that a file of Claude Code declares. Its Tools have the names of Claude
// Code. Nil Tools mean all tools.
type Agent struct {
	subagent.Declaration

	// Without are tools that the agent must not have.
	Without []string
	// Notes say what Belay changed or ignored.
	Notes []string
}

// mostAgents is how many files ReadAgents reads.
const mostAgents = 2_000

// ReadAgents reads the agents of a directory and its subdirectories. prefix is put before the
// names. Files that are no agents, such as a README, are notes of the second result. If the
// directory does not exist, there are none.
func ReadAgents(dir, prefix string) ([]*Agent, []subagent.Problem) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []subagent.Problem{{Path: dir, Message: "it cannot be read: " + plain(err).Error(), Err: err}}
	}
	defer func() { _ = root.Close() }() // only read, so an error does not matter
	var agents []*Agent
	var problems []subagent.Problem
	_ = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error { // the function returns no error
		path := filepath.Join(dir, filepath.FromSlash(name))
		switch {
		case err != nil:
			problems = append(problems, subagent.Problem{Path: path, Message: "it cannot be read: " + plain(err).Error(), Err: err})
			return nil
		case e.IsDir() && name != "." && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case e.IsDir() || filepath.Ext(name) != ".md":
			return nil
		case len(agents)+len(problems) == mostAgents:
			problems = append(problems, subagent.Problem{Path: dir, Message: fmt.Sprintf("there are more than %d files: the rest is left out", mostAgents)})
			return fs.SkipAll
		}
		text, err := readIn(root, name)
		if err != nil {
			problems = append(problems, subagent.Problem{Path: path, Message: "it cannot be read: " + plain(err).Error(), Err: err})
			return nil
		}
		a, problem := ParseAgent(path, text, prefix)
		if problem != nil {
			problems = append(problems, *problem)
			return nil //nolint:nilerr // the problem has the error
		}
		if at := slices.IndexFunc(agents, func(o *Agent) bool { return o.Name == a.Name }); at >= 0 {
			problems = append(problems, subagent.Problem{Path: path, Message: fmt.Sprintf("the agent %q is already declared in %s: rename one of them", a.Name, agents[at].Path)})
			return nil
		}
		agents = append(agents, a)
		return nil
	})
	return agents, problems
}

// silent are keys that only change how Claude Code shows or runs an agent. All other unknown
// keys are ignored, too, but with a note.
var silent = []string{"color", "displayName", "display_name", "category", "version", "author", "tags", "examples", "example", "metadata", "license"}

// ParseAgent reads the text of a file. prefix is put before the name.
func ParseAgent(path, text, prefix string) (*Agent, *subagent.Problem) {
	base := strings.TrimSuffix(filepath.Base(path), ".md")
	h, err := readHead(text)
	if err != nil {
		return nil, &subagent.Problem{Path: path, Message: err.Error()}
	}
	if !h.Found {
		return nil, &subagent.Problem{Path: path, Message: "it is no agent, because it has no frontmatter: begin the file with a line ---, the fields and another line ---"}
	}
	a := &Agent{Declaration: subagent.Declaration{Path: path, Name: base, Prompt: strings.TrimSpace(h.Body)}, Notes: h.notes}
	var ignored []string
	for i := range h.Fields {
		if !a.field(&h.Fields[i]) {
			ignored = append(ignored, h.Fields[i].Key)
		}
	}
	if len(ignored) > 0 {
		a.notef("%s: Belay ignores these keys", strings.Join(ignored, ", "))
	}
	if problem := a.ours(path, text); problem != nil {
		return nil, problem
	}
	name := agentName(prefix + cmp.Or(a.Name, base))
	if name == "" {
		return nil, &subagent.Problem{Path: path, Message: fmt.Sprintf("the name %q has no letters or digits: choose another name", a.Name)}
	}
	if name != prefix+a.Name {
		a.notef("the name %q is %s in Belay", prefix+a.Name, name)
	}
	a.Name = name
	return a, nil
}

func (a *Agent) notef(format string, args ...any) {
	a.Notes = append(a.Notes, fmt.Sprintf(format, args...))
}

// field reads one field. It reports false for a key that Belay ignores and should mention.
func (a *Agent) field(f *frontmatter.Field) bool {
	v := &f.Value
	switch f.Key {
	case "name":
		a.Name = scalar(v)
	case "description":
		a.Description = scalar(v)
	case "model":
		a.Model = scalar(v)
	case "tools", "allowedTools", "allowed-tools", "allowed_tools":
		a.tools(f)
	case "disallowedTools", "disallowed-tools", "disallowed_tools":
		a.Without = append(a.Without, words(v)...)
	case "hooks":
		a.Hooks = *v
	case "mode":
		a.Mode = scalar(v)
	case "budget", "enforce_allowed_tools": // see ours
	case "permissionMode":
		return a.mode(scalar(v))
	case "skills":
		a.notef("skills: the agent can read all skills")
	case "mcpServers":
		a.notef("mcpServers: the agent has the tools of all servers that its key tools allows, and no servers of its own")
	default:
		return slices.Contains(silent, f.Key)
	}
	return true
}

// ours reads the keys of Belay that restrict an agent. A mistake in one of them is an error,
// as in Belay's own files.
func (a *Agent) ours(path, text string) *subagent.Problem {
	d, problems := subagent.Parse(path, []byte(text))
	for i := range problems {
		if strings.HasPrefix(problems[i].Message, "budget") || strings.HasPrefix(problems[i].Message, "enforce_allowed_tools") {
			return &problems[i]
		}
	}
	a.Budget, a.EnforceAllowedTools = d.Budget, d.EnforceAllowedTools
	return nil
}

// tools reads a list of tools. If the file has two lists, the agent has only the tools that
// both allow.
func (a *Agent) tools(f *frontmatter.Field) {
	listed := words(&f.Value)
	switch {
	case len(listed) == 0 && f.Value.Kind != frontmatter.List:
		return // Claude Code gives all tools to an agent without a list
	case slices.Contains(listed, "*"), slices.ContainsFunc(listed, func(t string) bool { return strings.EqualFold(t, "all") }):
		return
	case a.Tools != nil:
		listed = slices.DeleteFunc(listed, func(t string) bool { return !slices.Contains(a.Tools, t) })
	}
	a.Tools = append([]string{}, listed...)
}

// mode translates a permission mode. An agent's mode can only be stricter than that of the
// session, so only plan has an effect.
func (a *Agent) mode(name string) bool {
	switch name {
	case "plan":
		a.Mode = permit.ReadOnly.Name
		a.notef("permissionMode: plan is the mode %s in Belay", a.Mode)
	case "", "default", "inherit":
	default:
		a.notef("permissionMode: %s has no effect: an agent never has more rights than its session", name)
	}
	return true
}

var notOfName = lazyregexp.New(`[^A-Za-z0-9_-]+`)

// agentName returns a name that Belay accepts.
func agentName(name string) string {
	name = strings.Trim(notOfName.ReplaceAllString(name, "-"), "-_")
	return strings.TrimRight(name[:min(len(name), 64)], "-_")
}
