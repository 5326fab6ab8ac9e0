package skill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// resourceDirs are where the files of a skill are.
var resourceDirs = []string{"scripts", "references", "assets"}

// The bounds of what is told about the files of a skill.
const (
	mostResources   = 256
	deepestResource = 3
)

// Read reads the body of a skill, one of its sections, or one of its resources by
// its path. Names are those that its directory has: no other file is opened.
func (d *Directory) Read(_ context.Context, id, section string) (Reading, error) {
	d.mu.Lock()
	f := d.byID[id]
	d.mu.Unlock()
	if f == nil {
		return Reading{}, fmt.Errorf("skill %q: %w", id, ErrNotFound)
	}
	t, err := d.open()
	if err != nil {
		return Reading{}, fmt.Errorf("skill %q: %w", id, err)
	}
	defer t.close()
	r := Reading{Name: f.skill.Name, Section: section, Path: t.place(f.rel)}
	if f.dir != "" {
		r.Path = t.place(f.dir)
		r.Sections, r.Resources = siblings(t, f.dir, path.Base(f.rel))
	}
	rel := f.rel
	switch {
	case section == "":
	case slices.Contains(r.Sections, section):
		rel = path.Join(f.dir, section+".md")
	case slices.Contains(r.Resources, section):
		rel = path.Join(f.dir, section)
	default:
		return r, fmt.Errorf("skill %q: section %q: %w", id, section, ErrNotFound)
	}
	text, _, _, err := readText(t, rel, nil)
	if err != nil {
		return r, fmt.Errorf("%s: %s: %w", t.shown(rel), fileMessage(err), err)
	}
	if r.Text, err = bodyOf(rel, text, section == ""); err != nil {
		return r, fmt.Errorf("%s: %w", t.shown(rel), err)
	}
	return r, nil
}

// bodyOf returns the text of a file without its front matter.
func bodyOf(rel, text string, isSkill bool) (string, error) {
	if !isSkill { // it is shown as it is
		if !utf8.ValidString(text) {
			return "", errors.New("the file is not UTF-8: it is no text")
		}
		return strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")), nil
	}
	ext := path.Ext(rel)
	if strings.EqualFold(path.Base(rel), skillFile) {
		ext = ".md"
	}
	doc, err := parserOf(ext)(text)
	if err != nil {
		return "", err
	}
	if v := doc.Field("body"); doc.BodyLine == 0 && v != nil {
		return v.Text, nil
	}
	return strings.TrimSpace(doc.Body), nil
}

// siblings returns the sections and the resources of a skill. What cannot be looked
// at is not there.
func siblings(t tree, dir, own string) (sections, resources []string) {
	entries, err := t.readDir(dir)
	if err != nil {
		return nil, nil
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir():
			if slices.Contains(resourceDirs, name) {
				resources = appendFiles(resources, t, dir, name, 1)
			}
		case path.Ext(name) == ".md" && name != own && !strings.HasPrefix(name, "."):
			sections = append(sections, strings.TrimSuffix(name, ".md"))
		}
	}
	return sections, resources
}

func appendFiles(files []string, t tree, dir, rel string, level int) []string {
	entries, err := t.readDir(path.Join(dir, rel))
	if err != nil {
		return files
	}
	for _, e := range entries {
		name := path.Join(rel, e.Name())
		switch {
		case len(files) >= mostResources:
			return files
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir() && level < deepestResource:
			files = appendFiles(files, t, dir, name, level+1)
		case e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0:
			files = append(files, name)
		}
	}
	return files
}
