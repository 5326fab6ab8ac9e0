package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/near"
)

// Check checks skills against the Agent Skills specification. dir is a directory of
// skills, the directory of one skill, or the file of a skill. Check returns the
// violations with file and line, in the order of the files. If strict is false, Check
// also accepts skills that are a single file, and Belay's own fields (id, priority,
// hidden, triggers, agents, tags, disable-model-invocation, user-invocable). The error is
// set if dir cannot be read.
func Check(dir string, strict bool) ([]Problem, error) {
	file := ""
	if info, err := os.Stat(dir); err == nil && info.Mode().IsRegular() {
		if dir, file = filepath.Dir(dir), filepath.Base(dir); strings.EqualFold(file, skillFile) {
			file = "" // the skill is the whole directory
		}
	}
	t, err := openRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("check skills: %s: %w", dir, err)
	}
	defer t.close()
	entries, err := t.readDir(".")
	if err != nil {
		return nil, fmt.Errorf("check skills: %s: %w", dir, err)
	}
	c := &checking{t: t, strict: strict}
	switch {
	case file != "":
		ext := path.Ext(file)
		if ext != ".md" && ext != ".yaml" && ext != ".yml" {
			return nil, fmt.Errorf("check skills: %s: a skill is a directory with a %s, or a file that ends in .md, .yaml or .yml", filepath.Join(dir, file), skillFile)
		}
		c.flat(file, ext)
	case slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.EqualFold(e.Name(), skillFile) }):
		whole, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("check skills: %w", err)
		}
		c.directory(".", filepath.Base(whole), 0)
	default:
		for _, e := range entries {
			c.entry(e)
		}
		if c.skills == 0 && len(c.problems) == 0 {
			c.addf(".", 0, "there is no skill here: a skill is a directory with a file %s", skillFile)
		}
	}
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line)) })
	return c.problems, nil
}

// checking is the state of one call of Check.
type checking struct {
	t        tree
	strict   bool
	skills   int
	problems []Problem
}

func (c *checking) addf(rel string, line int, format string, args ...any) {
	c.problems = append(c.problems, Problem{Kind: Violation, Path: c.t.shown(rel), Line: line, Message: fmt.Sprintf(format, args...)})
}

// entry checks a file or a directory at the top level.
func (c *checking) entry(e fs.DirEntry) {
	name := e.Name()
	isDir, level := e.IsDir(), 1
	if e.Type()&fs.ModeSymlink != 0 {
		info, err := c.t.stat(name)
		if err != nil {
			c.addf(name, 1, "%s", fileMessage(err))
			return
		}
		isDir, level = info.IsDir(), deepest
	}
	ext := path.Ext(name)
	switch {
	case strings.HasPrefix(name, ".") || name == "node_modules":
	case isDir:
		c.directory(name, name, level)
	case ext == ".md" || ext == ".yaml" || ext == ".yml":
		c.flat(name, ext)
	}
}

// directory checks a directory. The directory is a skill, or contains skills at a lower
// level.
func (c *checking) directory(rel, name string, level int) {
	entries, err := c.t.readDir(rel)
	if err != nil {
		c.addf(rel, 1, "%s", fileMessage(err))
		return
	}
	at := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Name() == skillFile })
	if at < 0 {
		at = slices.IndexFunc(entries, func(e fs.DirEntry) bool { return strings.EqualFold(e.Name(), skillFile) })
	}
	if at >= 0 {
		file := path.Join(rel, entries[at].Name())
		if entries[at].Name() != skillFile {
			c.addf(file, 1, "the file is called %s: call it %s", entries[at].Name(), skillFile)
		}
		c.skill(file, name)
		for _, o := range besides(c.t, rel, entries[at].Name()).outside {
			c.addf(o.rel, 1, "%s", o.message())
		}
		return
	}
	if level >= deepest {
		return
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "node_modules" {
			c.directory(path.Join(rel, e.Name()), e.Name(), level+1)
		}
	}
}

// read reads and parses a file. It reports an error as a violation and returns nil.
func (c *checking) read(rel string, parse func(string) (*frontmatter.Document, error)) *frontmatter.Document {
	c.skills++
	text, _, _, err := readText(c.t, rel, nil)
	if err != nil {
		c.addf(rel, 1, "%s", fileMessage(err))
		return nil
	}
	doc, err := parse(text)
	if e, ok := errors.AsType[*frontmatter.Error](err); ok {
		c.addf(rel, e.Line, "%s", e.Message)
		return nil
	}
	for _, n := range doc.Notes {
		c.addf(rel, n.Line, "%s", n.Message)
	}
	return doc
}

// skill checks a SKILL.md file against the specification.
func (c *checking) skill(rel, dir string) {
	doc := c.read(rel, frontmatter.Parse)
	switch {
	case doc == nil:
		return
	case !doc.Found:
		c.addf(rel, 1, "there is no frontmatter: begin with a line ---, name and description, and another line ---")
		return
	}
	c.name(rel, doc, dir)
	c.text(rel, doc, "description", specDescription, true)
	c.text(rel, doc, "compatibility", specCompatibility, false)
	c.text(rel, doc, "license", 0, false)
	c.metadata(rel, doc.Field("metadata"))
	c.fields(rel, doc, nil)
	if v := doc.Field("allowed-tools"); v != nil && c.strict && v.Kind != frontmatter.String {
		c.addf(rel, v.Line, "allowed-tools is %s: write one text with spaces between the tools", v.Kind)
	}
	c.ours(rel, doc, dir)
}

// flat checks a skill that is a single file.
func (c *checking) flat(rel, ext string) {
	stem := strings.TrimSuffix(rel, ext)
	before := len(c.problems)
	doc := c.read(rel, parserOf(ext))
	if doc != nil && !doc.Found && forReaders(stem) {
		c.problems = c.problems[:before]
		c.skills--
		return
	}
	if c.strict {
		c.addf(rel, 1, "a skill is a directory with a file %s: the specification allows no other form", skillFile)
		return
	}
	if doc == nil {
		return
	}
	if noBody(doc, ext) {
		c.addf(rel, 1, "%s", noBodyMessage)
	}
	var more []string
	if doc.BodyLine == 0 {
		more = flatFields
	}
	c.text(rel, doc, "description", specDescription, false)
	c.metadata(rel, doc.Field("metadata"))
	c.fields(rel, doc, more)
	c.ours(rel, doc, stem)
}

func (c *checking) name(rel string, doc *frontmatter.Document, dir string) {
	v := doc.Field("name")
	switch {
	case v == nil:
		c.addf(rel, 1, "the field name is missing: write the name of the directory, %q", dir)
	case v.Kind != frontmatter.String:
		c.addf(rel, v.Line, "name is %s: write a text, with quotes around it if necessary", v.Kind)
	case v.Text == "" || utf8.RuneCountInString(v.Text) > specName:
		c.addf(rel, v.Line, "the name has %d characters: it must have 1 to %d", utf8.RuneCountInString(v.Text), specName)
	case !specified(v.Text):
		c.addf(rel, v.Line, "the name %q may contain only lower-case letters, digits and single hyphens between them", v.Text)
	}
	if v != nil && v.Text != dir {
		c.addf(rel, v.Line, "the name %q must be the same as the name of the directory, %q", v.Text, dir)
	}
}

// specified reports whether the specification allows a name.
func specified(name string) bool {
	for part := range strings.SplitSeq(name, "-") {
		if part == "" || strings.ContainsFunc(part, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
			return false
		}
	}
	return true
}

// text checks that a field is a text of the right length.
func (c *checking) text(rel string, doc *frontmatter.Document, key string, most int, required bool) {
	v := doc.Field(key)
	switch {
	case v == nil && required:
		c.addf(rel, 1, "the field %s is missing", key)
	case v == nil:
	case v.Kind != frontmatter.String:
		c.addf(rel, v.Line, "%s is %s: write a text, with quotes around it if necessary", key, v.Kind)
	case most > 0 && strings.TrimSpace(v.Text) == "":
		c.addf(rel, v.Line, "%s is empty: write 1 to %d characters", key, most)
	case most > 0 && utf8.RuneCountInString(strings.TrimSpace(v.Text)) > most:
		c.addf(rel, v.Line, "%s has %d characters: it must have 1 to %d", key, utf8.RuneCountInString(strings.TrimSpace(v.Text)), most)
	}
}

// metadata checks that the field metadata is a mapping of texts.
func (c *checking) metadata(rel string, v *frontmatter.Value) {
	if v == nil {
		return
	}
	if v.Kind != frontmatter.Map {
		c.addf(rel, v.Line, "metadata is %s: write a mapping of texts", v.Kind)
		return
	}
	for i := range v.Map {
		if f := &v.Map[i]; f.Value.Kind != frontmatter.String {
			c.addf(rel, f.Line, "metadata: %s is %s: write a text, with quotes around it if necessary", f.Key, f.Value.Kind)
		}
	}
}

func (c *checking) fields(rel string, doc *frontmatter.Document, more []string) {
	known := specFields
	if !c.strict {
		known = slices.Concat(specFields, ourFields, more)
	}
	for _, f := range doc.Fields {
		switch {
		case slices.Contains(known, f.Key):
		case slices.Contains(ourFields, f.Key):
			c.addf(rel, f.Line, "the field %q is an addition of Belay and not part of the specification", f.Key)
		default:
			c.addf(rel, f.Line, "the field %q is not part of the specification%s: put it below metadata", f.Key, near.Hint(f.Key, known))
		}
	}
}

// ours checks Belay's own fields, and the variables in the text of the skill.
func (c *checking) ours(rel string, doc *frontmatter.Document, name string) {
	if c.strict {
		return
	}
	s := &Skill{Name: name}
	r := &reader{path: c.t.shown(rel), skill: s}
	for i := range doc.Fields {
		f := &doc.Fields[i]
		if !slices.Contains(ourFields, f.Key) && f.Key != "allowed-tools" {
			continue
		}
		if err := r.field(f, true); err != nil {
			if e, ok := errors.AsType[*fieldError](err); ok {
				c.addf(rel, e.line, "%s", e.message)
			}
		}
	}
	for _, p := range s.Tolerated {
		c.addf(rel, p.Line, "%s", p.Message)
	}
	if !s.template() {
		return
	}
	body, line := doc.Body, doc.BodyLine
	if v := doc.Field("body"); doc.BodyLine == 0 && v != nil {
		body, line = v.Text, v.Line+1
	}
	names, lines := unknownVariables(body)
	for i, name := range names {
		c.addf(rel, line+lines[i]-1, "there is no variable {{%s}}%s", name, near.Hint(name, variableNames))
	}
}
