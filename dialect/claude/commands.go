package claude

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/skill"
)

// mostCommands is how many files a directory of commands may have.
const mostCommands = 5_000

// Commands is a source of skills: the commands in a directory and its subdirectories. Each
// Markdown file is a command that users type as /name. The file git/push.md is git:push.
type Commands struct {
	dir, prefix string
	opts        *PermissionOptions

	mu    sync.Mutex
	files map[string]*command // by path relative to dir
}

// command is a file of a command.
type command struct {
	size    int64
	changed time.Time
	fresh   bool // the file changed so recently that another change might have the same time
	text    string
	skill   *skill.Skill
	err     error
}

var _ skill.Source = (*Commands)(nil)

// NewCommands returns the commands in a directory. prefix is put before their names. If the
// directory does not exist, there are none. opts is used to translate the names of tools.
func NewCommands(dir, prefix string, opts *PermissionOptions) *Commands {
	return &Commands{dir: dir, prefix: prefix, opts: opts}
}

// String returns the directory.
func (c *Commands) String() string { return c.dir }

// List returns the commands, sorted by path. It reads only files that have changed.
func (c *Commands) List(ctx context.Context) ([]*skill.Skill, error) {
	root, err := os.OpenRoot(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []*skill.Skill{}, nil
	}
	if err != nil {
		return nil, &skill.Problem{Kind: skill.NotLoaded, Path: c.dir, Message: plain(err).Error(), Err: err}
	}
	defer func() { _ = root.Close() }() // only read, so an error does not matter
	c.mu.Lock()
	defer c.mu.Unlock()
	now := make(map[string]*command)
	skills := []*skill.Skill{}
	var problems []error
	_ = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error { // the function returns no error
		path := filepath.Join(c.dir, filepath.FromSlash(name))
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
			problems = append(problems, &skill.Problem{Kind: skill.NotLoaded, Path: path, Message: plain(err).Error(), Err: err})
			return nil
		case e.IsDir() && name != "." && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case e.IsDir() || filepath.Ext(name) != ".md":
			return nil
		case len(now) == mostCommands:
			problems = append(problems, &skill.Problem{Kind: skill.NotLoaded, Path: c.dir, Message: fmt.Sprintf("there are more than %d commands: the rest is left out", mostCommands)})
			return fs.SkipAll
		}
		one := c.read(root, name)
		now[name] = one
		if one.err != nil {
			problems = append(problems, &skill.Problem{Kind: skill.NotLoaded, Path: path, Message: one.err.Error(), Err: one.err})
			return nil //nolint:nilerr // the problem has the error
		}
		skills = append(skills, one.skill)
		return nil
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c.files = now
	return skills, errors.Join(problems...)
}

// read reads the file of a command, unless it has not changed.
func (c *Commands) read(root *os.Root, name string) *command {
	one := &command{}
	if info, err := root.Stat(name); err == nil {
		one.size, one.changed = info.Size(), info.ModTime()
		one.fresh = time.Since(one.changed) < 2*time.Second
	}
	if old := c.files[name]; old != nil && !old.fresh && old.size == one.size && old.changed.Equal(one.changed) {
		return old
	}
	one.text, one.err = readIn(root, name)
	switch old := c.files[name]; {
	case one.err != nil:
	case old != nil && old.text == one.text:
		one.skill, one.err = old.skill, old.err // the same value says that nothing has changed
	default:
		one.skill, one.err = c.parse(name, one.text)
	}
	return one
}

// Read returns the text of a command.
func (c *Commands) Read(ctx context.Context, id, section string) (skill.Reading, error) {
	c.mu.Lock()
	known := c.files
	c.mu.Unlock()
	if known == nil {
		if _, err := c.List(ctx); err != nil {
			return skill.Reading{}, err
		}
		c.mu.Lock()
		known = c.files
		c.mu.Unlock()
	}
	for _, one := range known {
		if one.skill != nil && one.skill.ID == id && section == "" {
			return skill.Reading{Name: one.skill.Name, Path: one.skill.Path, Text: one.skill.Body}, nil
		}
	}
	return skill.Reading{}, fmt.Errorf("command %q: %w", id, skill.ErrNotFound)
}

var notOfCommand = lazyregexp.New(`[^A-Za-z0-9_:-]+`)

// parse makes a skill of the text of a file.
func (c *Commands) parse(name, text string) (*skill.Skill, error) {
	path := filepath.Join(c.dir, filepath.FromSlash(name))
	h, err := readHead(text)
	if err != nil {
		return nil, err
	}
	given := c.prefix + strings.ReplaceAll(strings.TrimSuffix(name, ".md"), "/", ":")
	s := &skill.Skill{Name: strings.Trim(notOfCommand.ReplaceAllString(given, "-"), "-:"), Path: path, Body: strings.TrimSpace(h.Body)}
	if s.Name == "" {
		return nil, errors.New("the file name has no letters or digits: rename the file")
	}
	s.ID = s.Name
	notef := func(line int, format string, args ...any) {
		s.Tolerated = append(s.Tolerated, skill.Problem{Kind: skill.Tolerated, Path: path, Line: line, Skill: s.Name, Message: fmt.Sprintf(format, args...)})
	}
	for _, note := range h.notes {
		notef(1, "%s", note)
	}
	if s.Name != given {
		notef(1, "the name %q is %s in Belay", given, s.Name)
	}
	hint := ""
	described := false
	for i := range h.Fields {
		f := &h.Fields[i]
		switch f.Key {
		case "description":
			s.Description = strings.Join(strings.Fields(scalar(&f.Value)), " ")
			described = s.Description != ""
		case "argument-hint", "argument_hint", "arguments":
			hint = strings.Join(words(&f.Value), " ")
			if f.Value.Kind != frontmatter.List {
				hint = strings.TrimSpace(f.Value.Text)
			}
		case "allowed-tools", "allowed_tools", "allowedTools":
			s.AllowedTools = []string{}
			for _, tool := range words(&f.Value) {
				s.AllowedTools = append(s.AllowedTools, Patterns(tool, c.opts)...)
			}
		case "disable-model-invocation":
			s.UserOnly = !strings.EqualFold(scalar(&f.Value), "false")
		case "user-invocable":
			s.ModelOnly = strings.EqualFold(scalar(&f.Value), "false")
		case "model":
			notef(f.Line, "model: the model of the session is used")
		case "name": // the file name is the name
		default:
			notef(f.Line, "Belay ignores the unknown field %q", f.Key)
		}
	}
	if !described { // Claude Code does not offer such a command to the model
		s.UserOnly = true
		s.Description = firstLine(s.Body)
	}
	if hint != "" {
		s.Description = strings.TrimSpace(s.Description + " (arguments: " + hint + ")")
	}
	return s, nil
}

// firstLine returns the first line of a text that has letters, at most 100 characters of it.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(strings.TrimLeft(line, "#*->= \t")); line != "" {
			if runes := []rune(line); len(runes) > 100 {
				line = string(runes[:99]) + "…"
			}
			return line
		}
	}
	return ""
}
