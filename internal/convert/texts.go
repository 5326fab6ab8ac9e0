package convert

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
)

// agents writes the agents of a directory as agents of Belay.
func (im *importer) agents(dir string) {
	moved := make(map[string]bool)
	if !im.User { // Belay puts project- before servers of the project
		for name := range im.servers {
			moved[name] = true
		}
	}
	read, problems := assembly.ReadAgents(im.settings, im.at(dir), moved)
	for i := range problems {
		im.plan.Read++
		im.notef(problems[i].Path, "not translated: %s", problems[i].Message)
	}
	for _, a := range read {
		im.plan.Read++
		for _, note := range a.Notes {
			im.notef(a.Path, "%s", note)
		}
		switch {
		case a.Hooks.Kind != frontmatter.Null:
			im.notef(a.Path, "not translated: it has hooks of its own")
			continue
		case len(a.Limits) > 0:
			im.notef(a.Path, "not translated: a file of Belay has no key for its limits %s. The agent can be used where it is", strings.Join(a.Limits, ", "))
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "---\nname: %s\n", quoted(a.Name))
		if a.Description != "" {
			fmt.Fprintf(&b, "description: %s\n", quoted(a.Description))
		}
		if a.Model != "" {
			fmt.Fprintf(&b, "model: %s\n", quoted(a.Model))
		}
		if a.Tools != nil {
			list := make([]string, len(a.Tools))
			for i, tool := range a.Tools {
				list[i] = quoted(tool)
			}
			fmt.Fprintf(&b, "tools: [%s]\n", strings.Join(list, ", "))
		}
		if a.Mode != "" {
			fmt.Fprintf(&b, "mode: %s\n", quoted(a.Mode))
		}
		if a.EnforceAllowedTools {
			b.WriteString("enforce_allowed_tools: true\n")
		}
		if a.Budget.TurnTokens+a.Budget.SessionTokens > 0 || a.Budget.TurnCost+a.Budget.SessionCost > 0 {
			im.notef(a.Path, "not translated: copy the file by hand, because it has a budget in Belay's words")
			continue
		}
		fmt.Fprintf(&b, "---\n%s\n", a.Prompt)
		file := filepath.Join(im.target, "agents", a.Name+".md")
		if _, problems := subagent.Parse(file, []byte(b.String())); len(problems) > 0 {
			im.notef(a.Path, "not translated: %s", problems[0].Message)
			continue
		}
		im.put(file, []byte(b.String()), false)
	}
}

// runs matches the placeholders that run a shell command.
var runs = lazyregexp.New("(^|\\s)!`|```!")

// placeholders matches the other placeholders that Belay's own skills do not have.
var placeholders = lazyregexp.New(`\$\d|\$ARGUMENTS\[|(^|\s)@[A-Za-z0-9_./~-]|\$\{CLAUDE_`)

// commands writes the commands of a directory as skills.
func (im *importer) commands(ctx context.Context, dir string) {
	list, err := claude.NewCommands(im.at(dir), "", &claude.PermissionOptions{Project: assembly.RealDir(im.settings.Project)}).List(ctx)
	for _, p := range assembly.SkillProblems(err) {
		im.plan.Read++
		im.notef(p.Path, "not translated: %s", p.Message)
	}
	for _, one := range list {
		im.command(one, one.Body)
	}
}

// command writes a command as a skill. body is its text, with placeholders of Claude Code.
func (im *importer) command(s *skill.Skill, body string) {
	im.plan.Read++
	for i := range s.Tolerated {
		im.notef(s.Path, "%s", s.Tolerated[i].Message)
	}
	if runs.MatchString(body) {
		im.notef(s.Path, "not translated: its text runs shell commands, and trust does not cover skills of Belay. Let the model run the commands, or keep the file where it is")
		return
	}
	name := strings.ReplaceAll(s.Name, ":", "-")
	if name != s.Name {
		im.notef(s.Path, "/%s is /%s in Belay", s.Name, name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "---\nname: %s\n", quoted(name))
	if s.Description != "" {
		fmt.Fprintf(&b, "description: %s\n", quoted(s.Description))
	}
	if s.UserOnly {
		b.WriteString("disable-model-invocation: true\n")
	}
	if s.ModelOnly {
		b.WriteString("user-invocable: false\n")
	}
	if s.AllowedTools != nil {
		im.notef(s.Path, "allowed-tools is left out: it would be a limit in Belay, and never adds rights")
	}
	var meta []string
	if placeholders.MatchString(body) {
		meta = append(meta, assembly.SkillDialect+": claude-code")
	}
	if name != s.Name {
		meta = append(meta, assembly.SkillImported+": "+quoted(s.Name))
	}
	if len(meta) > 0 {
		fmt.Fprintf(&b, "metadata: {%s}\n", strings.Join(meta, ", "))
	}
	fmt.Fprintf(&b, "---\n%s\n", body)
	im.put(filepath.Join(im.target, "skills", name, "SKILL.md"), []byte(b.String()), false)
}

// skills copies the skills of a directory.
func (im *importer) skills(dir string) {
	root := im.at(dir)
	entries, err := os.ReadDir(root)
	if err != nil {
		return // there are none
	}
	for _, e := range entries {
		from := filepath.Join(root, e.Name())
		if e.Type()&fs.ModeSymlink != 0 || !e.IsDir() && filepath.Ext(e.Name()) != ".md" {
			im.notef(from, "not translated: it is not a directory with a SKILL.md")
			continue
		}
		im.plan.Read++
		im.copySkill(from, filepath.Join(im.target, "skills", e.Name()))
	}
}

func (im *importer) copySkill(from, to string) {
	files, err := im.skillFiles(from)
	if err != nil {
		im.notef(from, "not translated: %v. The skill can be used where it is", err)
		return
	}
	for rel, text := range files {
		if filepath.Base(rel) == "SKILL.md" && placeholders.Match(text) {
			im.notef(filepath.Join(from, rel), "its text has placeholders of %s. Belay fills them in if its metadata has %s: claude-code", im.Agent.Title(), assembly.SkillDialect)
		}
		im.put(filepath.Join(to, rel), text, false)
	}
}

// skillFiles reads the files of a skill, by their paths in it.
func (im *importer) skillFiles(from string) (map[string][]byte, error) {
	root, err := os.OpenRoot(from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	files := map[string][]byte{}
	err = fs.WalkDir(root.FS(), ".", func(rel string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			im.notef(filepath.Join(from, rel), "not copied: it is not a regular file")
			return nil
		}
		text, err := root.ReadFile(rel)
		if err != nil {
			return err //nolint:wrapcheck // it names the file
		}
		if len(text) > mostText || len(files) == 200 {
			return fmt.Errorf("%s: a skill may have 200 files of 1 MiB to be copied", filepath.Base(rel))
		}
		if filepath.Ext(rel) == ".md" && runs.Match(text) {
			return fmt.Errorf("%s runs shell commands, and trust does not cover skills of Belay", filepath.Base(rel))
		}
		if info, err := e.Info(); err == nil && info.Mode()&0o111 != 0 {
			im.notef(filepath.Join(from, rel), "the copy is not executable: call it with its interpreter, or run chmod +x")
		}
		files[filepath.FromSlash(rel)] = text
		return nil
	})
	return files, err //nolint:wrapcheck // the caller adds context
}

// instructions writes texts for the model to the AGENTS.md of the project, if it has none.
// Belay reads the files of the other agents where they are, if used is set.
func (im *importer) instructions(texts []instruction, used bool) {
	if !im.User {
		texts = slices.DeleteFunc(slices.Clone(texts), func(one instruction) bool {
			moves := filepath.Base(filepath.Dir(one.path)) == ".claude" && claude.HasImports(one.text)
			if moves {
				im.plan.Read++
				im.notef(one.path, "not translated: it imports files relative to its directory. Belay reads it where it is")
			}
			return moves
		})
	}
	var parts []string
	for _, one := range texts {
		im.plan.Read++
		parts = append(parts, strings.TrimSpace(one.text))
	}
	if len(parts) == 0 {
		return
	}
	file := filepath.Join(im.settings.Project, "AGENTS.md")
	if im.User {
		for _, one := range texts {
			why := "Belay does not read it, and has no file for instructions in all projects"
			if used {
				why = "Belay reads it where it is"
			}
			im.notef(one.path, "not translated: %s", why)
		}
		return
	}
	if _, err := os.Stat(file); err == nil {
		for _, one := range texts {
			why := "add its text by hand"
			if used {
				why = "Belay reads both files where they are"
			}
			im.notef(one.path, "not translated, because the project has an AGENTS.md: %s", why)
		}
		return
	}
	im.put(file, []byte(strings.Join(parts, "\n\n")+"\n"), false)
	for _, one := range texts {
		if used {
			im.notef(one.path, "its text is in AGENTS.md now. Belay leaves this file out, until one of the two is changed")
		}
	}
}

// instruction is a text for the model.
type instruction struct{ path, text string }
