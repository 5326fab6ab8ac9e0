package assembly

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/skill"
)

// otherSkill is a directory of another coding agent with skills or commands.
type otherSkill struct {
	kind   string // "skills" or "commands"
	dir    string
	root   string // the directory .claude, or the plugin
	plugin bool
	own    bool // the directory belongs to the user
	source skill.Source
}

// otherSkills returns the directories of skills and commands of Claude Code that the settings
// do not switch off. A skill in a later directory replaces an earlier one with the same name.
func otherSkills(s *config.Loaded) []otherSkill {
	return slices.DeleteFunc(allOtherSkills(s), func(o otherSkill) bool { return !s.OtherAgents.Uses(o.kind) })
}

func allOtherSkills(s *config.Loaded) []otherSkill {
	where := claudeFiles(context.Background(), s, nil)
	opts := &claude.PermissionOptions{Project: where.Project, Home: where.Home}
	var all []otherSkill
	add := func(root string, own bool) {
		all = append(all,
			otherSkill{kind: "commands", dir: filepath.Join(root, "commands"), root: root, own: own, source: claude.NewCommands(filepath.Join(root, "commands"), "", opts)},
			otherSkill{kind: "skills", dir: filepath.Join(root, "skills"), root: root, own: own, source: skill.Dir(filepath.Join(root, "skills"))})
	}
	if own := where.Own(); own != "" {
		add(own, true)
	}
	for _, p := range plugins(s) {
		for _, dir := range p.Commands {
			all = append(all, otherSkill{kind: "commands", dir: dir, root: p.Root, plugin: true, source: claude.Prefixed(claude.NewCommands(dir, p.Name+":", opts), "", func(path string) bool { return p.Has("commands", dir, path) })})
		}
		for _, dir := range p.Skills {
			all = append(all, otherSkill{kind: "skills", dir: dir, root: p.Root, plugin: true, source: claude.Prefixed(skill.Dir(dir), p.Name+":", func(path string) bool { return p.Has("skills", dir, path) })})
		}
	}
	root := filepath.Join(s.Project, ".claude")
	add(root, false)
	return slices.DeleteFunc(all, func(o otherSkill) bool { return o.root == root && !staysInside(s.Project, o.dir) })
}

// within reports whether a path is a directory or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// OtherSkill reports whether the file of a skill was written for another coding agent.
func OtherSkill(s *config.Loaded, path string) bool { return findOther(s, path) != nil }

// findOther returns the directory of another coding agent that has the file of a skill, or
// nil.
func findOther(s *config.Loaded, path string) *otherSkill {
	for _, o := range allOtherSkills(s) {
		if path != "" && within(o.dir, path) {
			return &o
		}
	}
	return nil
}

// skillUses reports the skills and commands of Claude Code.
func skillUses(ctx context.Context, s *config.Loaded) []OtherFile {
	var uses []OtherFile
	for _, o := range allOtherSkills(s) {
		skills, err := o.source.List(ctx)
		if len(skills) == 0 && err == nil {
			continue
		}
		dir := OtherFile{Path: ShownPath(s, o.dir), Use: visible.Counted(len(skills), strings.TrimSuffix(o.kind, "s")) + ", typed as /name (`belay skills list` lists them)"}
		if !s.OtherAgents.Uses(o.kind) {
			dir.Use = switchedOff(s, o.kind)
			uses = append(uses, dir)
			continue
		}
		uses = append(uses, dir)
		if source := o.ownSkills(s); source != nil {
			own := skillsByOldName(ctx, source)
			skills = slices.DeleteFunc(slices.Clone(skills), func(one *skill.Skill) bool {
				if own[one.Name] != nil {
					uses = append(uses, OtherFile{Path: ShownPath(s, one.Path), Use: replacedBy(s, "/"+one.Name, own[one.Name].Path)})
				}
				return own[one.Name] != nil
			})
		}
		uses = append(uses, skillNotes(s, skills, err)...)
	}
	return uses
}

// skillNotes reports what is strange about skills, one entry for each file.
func skillNotes(s *config.Loaded, skills []*skill.Skill, err error) []OtherFile {
	notes := make(map[string][]string)
	for _, p := range problemsOf(err) {
		notes[p.Path] = append(notes[p.Path], "not used: "+p.Message)
	}
	for _, one := range skills {
		for _, p := range one.Tolerated {
			notes[one.Path] = append(notes[one.Path], p.Message)
		}
	}
	var uses []OtherFile
	for _, path := range slices.Sorted(maps.Keys(notes)) {
		uses = append(uses, OtherFile{Path: ShownPath(s, path), Use: strings.Join(notes[path], "; "), Partly: noteworthy(notes[path])})
	}
	return uses
}

// problemsOf returns the problems that an error of a source joins.
func problemsOf(err error) []*skill.Problem {
	switch e := err.(type) { //nolint:errorlint // it takes the error apart
	case nil:
		return nil
	case *skill.Problem:
		return []*skill.Problem{e}
	case interface{ Unwrap() []error }:
		var all []*skill.Problem
		for _, one := range e.Unwrap() {
			all = append(all, problemsOf(one)...)
		}
		return all
	default:
		return []*skill.Problem{{Message: err.Error(), Err: err}}
	}
}

// fills replaces the placeholders of skills and commands of Claude Code.
type fills struct {
	settings *config.Loaded
	places   *Places
}

// fill is the function for skill.Options.Fill. Commands in the text run as if the model had
// called the shell: the floor checks them, and a person may be asked.
func (f *fills) fill(_ context.Context, typed *skill.Typed) (string, bool, error) {
	o := findOther(f.settings, typed.Skill.Path)
	if o == nil && typed.Skill.Metadata[SkillDialect] != string(dialect.ClaudeCode) {
		return "", false, nil
	}
	fill := &claude.Filling{
		Project: f.settings.Project,
		Variables: map[string]string{
			"CLAUDE_PROJECT_DIR": f.settings.Project, "CLAUDE_SESSION_ID": typed.Session, "CLAUDE_SKILL_DIR": filepath.Dir(typed.Skill.Path),
		},
		Run: func(command string) (string, error) {
			if o == nil { // trust does not cover Belay's own skills
				return fmt.Sprintf("[The command %s did not run: Belay's own skills run no commands]", command), nil
			}
			if why := f.untrusted(o); why != "" {
				return fmt.Sprintf("[The command %s did not run: %s]", command, why), nil
			}
			return runTool(typed, "shell", "command", command)
		},
		Read: func(path string) (string, error) { return runTool(typed, "read", "path", path) },
	}
	if o != nil && o.plugin {
		fill.Variables["CLAUDE_PLUGIN_ROOT"] = o.root
	}
	text, err := fill.Fill(typed.Text, typed.Arguments)
	return text, true, err
}

// untrusted returns why commands in the text of a skill must not run, or "".
func (f *fills) untrusted(o *otherSkill) string {
	if o.own {
		return ""
	}
	const why = "nobody has trusted the directory %s: run `belay trust %s`"
	place := f.places.Of(o.dir)
	if place == nil || place.Dir != RealDir(o.root) {
		return fmt.Sprintf(why, ShownPath(f.settings, o.root), ShownPath(f.settings, o.root))
	}
	standing, err := f.places.Host.Standing(place)
	switch {
	case err != nil:
		return err.Error()
	case !standing.Trusted:
		return standing.Reason
	default:
		return ""
	}
}

// runTool runs a tool for a skill that a user typed, and returns its result as text.
func runTool(typed *skill.Typed, tool, field, value string) (string, error) {
	input, err := json.Marshal(map[string]string{field: value})
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", tool, value, err)
	}
	result, err := typed.Controls.RunTool(tool, input)
	if err != nil {
		return "", err
	}
	if result.IsError {
		return fmt.Sprintf("[%s %s failed: %s]", tool, value, result.Text), nil
	}
	return result.Text, nil
}
