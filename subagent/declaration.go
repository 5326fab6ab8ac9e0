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

// Declaration is an agent that is declared in a file. The program that makes the
// agent decides what the names in it mean.
type Declaration struct {
	// Name is its name. Defaults to the file's name without its extension.
	Name string
	// Description explains what it is for.
	Description string
	// Model is the name of a model. Empty means the program's choice.
	Model string
	// Prompt is its instructions: in Markdown, what follows the frontmatter.
	Prompt string
	// Tools and Skills are the names of the tools and skills that it may use. Nil means
	// all, and empty none.
	Tools, Skills []string
	// Hooks are its own, as package declare reads them: a list of mappings with the
	// phase of each.
	Hooks frontmatter.Value
	// Mode is the name of a mode of the floor. Empty means the program's.
	Mode string
	// EnforceAllowedTools denies calls that the allowed-tools of an active skill do not
	// name.
	EnforceAllowedTools bool
	// Budget bounds its turns.
	Budget belay.Budget
	// Path is the file.
	Path string
	// Ignored are keys of its file that are for another program and have no effect
	// here. Files in .claude/agents may have them.
	Ignored []string
}

// Factory makes agents of the declaration with the program's function. The function
// should use the task's store. They are closed, with their extensions, when the task
// is over.
func (d *Declaration) Factory(build func(ctx context.Context, task *Task, d *Declaration) (*belay.Agent, error)) Factory {
	return Built(func(ctx context.Context, task *Task) (*belay.Agent, error) { return build(ctx, task, d) })
}

// Problem is a mistake in a file, and where it is.
type Problem struct { //nolint:errname // it is mostly data, rarely an error
	Path string
	// Line counts from 1; 0 means the file as a whole.
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

// longestFile is how many bytes a file may have. Its YAML or JSON may have less.
const longestFile = 1 << 20

// LoadDir reads the agents that are declared in a directory, as [Load] does. A missing
// directory has none. Links that lead out of it are rejected.
func LoadDir(dir string) ([]*Declaration, []Problem) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []Problem{{Path: dir, Message: "it cannot be read: " + reason(err), Err: err}}
	}
	defer func() { _ = root.Close() }() // it was only read
	return load(root.FS(), func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) })
}

// Load reads the agents that are declared in files with the extensions .yaml, .yml,
// .json and .md, by path. It does not read subdirectories. Unknown keys are mistakes. A
// file with mistakes is skipped and all its mistakes are reported; the other files are
// loaded.
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
	for _, entry := range entries { // they come sorted
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
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, longestFile+1))
	switch {
	case err != nil:
		return refuse(err)
	case len(text) > longestFile:
		return nil, &Problem{Message: fmt.Sprintf("it is longer than the maximum of %d bytes", longestFile)}
	}
	return text, nil
}

// reason returns an error without the path, which the problem already has.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
