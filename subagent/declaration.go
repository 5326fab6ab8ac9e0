package subagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/frontmatter"
)

// Declaration is an agent that a file declares. Your program makes the agent, and decides
// what the names in the declaration mean.
type Declaration struct {
	// Name is the agent's name. Defaults to the file name without its extension.
	Name string
	// Description explains what the agent is for.
	Description string
	// Model is the name of a model. Empty means that the program chooses.
	Model string
	// Prompt is the agent's instructions. In Markdown, it is the text after the front
	// matter.
	Prompt string
	// Tools and Skills are the names of the tools and skills that the agent may use. Nil
	// means all, and an empty list means none.
	Tools, Skills []string
	// Hooks are the agent's own hooks, for package declare: a list of hooks, or a mapping
	// from phases to lists of hooks.
	Hooks frontmatter.Value
	// Mode is the name of a mode of the floor (permission check). Empty means the
	// program's mode.
	Mode string
	// EnforceAllowedTools denies calls that the allowed-tools of an active skill do not
	// cover.
	EnforceAllowedTools bool
	// Budget limits the agent's turns and sessions.
	Budget belay.Budget
	// Path is the file of the declaration.
	Path string
	// Limits are patterns of package permit, such as shell(git log *). If there is one for a
	// tool, each call of the tool must match one of its patterns. Belay's own files have no
	// key for them: they come from files of other coding agents.
	Limits []string
}

// Factory returns a factory that calls build for each task. The function should use the
// task's store. The agent and its extensions are closed when the task is over.
func (d *Declaration) Factory(build func(ctx context.Context, task *Task, d *Declaration) (*belay.Agent, error)) Factory {
	return Built(func(ctx context.Context, task *Task) (*belay.Agent, error) { return build(ctx, task, d) })
}

// Problem is a mistake in a file.
type Problem struct { //nolint:errname // it is mostly data, rarely an error
	Path string
	// Line counts from 1. Zero means the whole file.
	Line int
	// Message explains what is wrong and what to do.
	Message string
	// Err is the underlying error, if any.
	Err error
}

// Error returns the problem in one line: path:line: message.
func (p *Problem) Error() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message)
	}
	return p.Path + ": " + p.Message
}

// Unwrap returns the underlying error.
func (p *Problem) Unwrap() error { return p.Err }

// longestFile is the maximum size of a file in bytes. YAML and JSON have a lower limit.
const longestFile = 1 << 20

// LoadDir reads the agents that the files of a directory declare, see [Load]. If the
// directory does not exist, there are none. Links that lead out of the directory are
// rejected.
func LoadDir(dir string) ([]*Declaration, []Problem) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []Problem{{Path: dir, Message: "it cannot be read: " + reason(err), Err: err}}
	}
	defer func() { _ = root.Close() }() // only read, so an error does not matter
	return load(root.FS(), func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) })
}

// Load reads the agents that files declare, sorted by path. It reads files with the
// extensions .yaml, .yml, .json and .md, but no subdirectories. Unknown keys are
// mistakes. Load skips a file with mistakes and reports all its mistakes. The other files
// are loaded.
func Load(files fs.FS) ([]*Declaration, []Problem) {
	return load(files, func(name string) string { return name })
}

func load(files fs.FS, shown func(name string) string) ([]*Declaration, []Problem) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, []Problem{{Path: shown("."), Message: "it cannot be read: " + reason(err), Err: err}}
	}
	var declared []*Declaration
	var problems []Problem
	for _, entry := range entries { // ReadDir sorts them
		name := entry.Name()
		if strings.HasPrefix(name, ".") || entry.IsDir() || format(name) == "" {
			continue
		}
		text, problem := readFile(files, name)
		if problem != nil {
			problem.Path = shown(name)
			problems = append(problems, *problem)
			continue
		}
		d, wrong := Parse(shown(name), text)
		at := slices.IndexFunc(declared, func(o *Declaration) bool { return o.Name == d.Name })
		switch {
		case len(wrong) > 0:
			problems = append(problems, wrong...)
		case at >= 0:
			problems = append(problems, Problem{Path: d.Path, Message: fmt.Sprintf("the agent %q is already declared in %s: rename one of them", d.Name, declared[at].Path)})
		default:
			declared = append(declared, d)
		}
	}
	return declared, problems
}

// format returns the extension that selects the parser, or "".
func format(name string) string {
	switch ending := strings.ToLower(path.Ext(name)); ending {
	case ".yaml", ".yml", ".json", ".md":
		return ending
	default:
		return ""
	}
}

func readFile(files fs.FS, name string) ([]byte, *Problem) {
	refuse := func(err error) ([]byte, *Problem) {
		return nil, &Problem{Message: "it cannot be read: " + reason(err), Err: err}
	}
	info, err := fs.Stat(files, name)
	switch {
	case err != nil:
		return refuse(err)
	case !info.Mode().IsRegular():
		return nil, &Problem{Message: "it is not a regular file"}
	}
	file, err := files.Open(name)
	if err != nil {
		return refuse(err)
	}
	defer func() { _ = file.Close() }() // only read, so an error does not matter
	text, err := io.ReadAll(io.LimitReader(file, longestFile+1))
	switch {
	case err != nil:
		return refuse(err)
	case len(text) > longestFile:
		return nil, &Problem{Message: fmt.Sprintf("it is longer than the maximum of %d bytes", longestFile)}
	}
	return text, nil
}

// reason returns an error text without the path, because the problem already has it.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
