package skill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// resourceDirs are the directories for the resources of a skill.
var resourceDirs = []string{"scripts", "references", "assets"}

// The limits of the list of resources.
const (
	mostResources   = 256
	deepestResource = 3
)

// Read returns the body of a skill, one of its sections, or one of its resources by its
// path. It opens only files in the skill's directory.
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
	var outside []outsider
	if f.dir != "" {
		found := besides(t, f.dir, path.Base(f.rel))
		r.Path, r.Sections, r.Resources, outside = t.place(f.dir), found.sections, found.resources, found.outside
		d.notice(f, outside)
	}
	rel := f.rel
	switch {
	case section == "":
	case slices.Contains(r.Sections, section):
		rel = path.Join(f.dir, section+".md")
	case slices.Contains(r.Resources, section):
		rel = path.Join(f.dir, section)
	default:
		for _, o := range outside {
			if o.rel == path.Join(f.dir, section+".md") || o.rel == path.Join(f.dir, section) {
				return r, fmt.Errorf("%s: %s", t.shown(o.rel), o.message())
			}
		}
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

// notice makes the next listing read a file again, if the set of links that lead out of the
// directory has changed.
func (d *Directory) notice(f *file, outside []outsider) {
	if slices.EqualFunc(f.outside, outside, func(a, b outsider) bool { return a.rel == b.rel }) {
		return
	}
	again := *f
	again.fresh = true
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[f.rel] == f { // clone the map, because a running List may use it
		d.files = maps.Clone(d.files)
		d.files[f.rel] = &again
	}
}

// bodyOf returns the text of a skill file without its front matter, or the whole text of a
// section or resource.
func bodyOf(rel, text string, isSkill bool) (string, error) {
	if !isSkill { // sections and resources are shown unchanged
		if !utf8.ValidString(text) {
			return "", errors.New("the file is not UTF-8 text")
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

// beside has the other files in a skill's directory.
type beside struct {
	sections, resources []string
	outside             []outsider
}

// outsider is a link to a section or resource that leads out of the directory, or to
// nothing.
type outsider struct {
	rel string
	err error
}

func (o outsider) message() string {
	if errors.Is(o.err, fs.ErrNotExist) {
		return "the link leads nowhere: remove it"
	}
	return fileMessage(o.err)
}

// besides returns the sections and resources in a skill's directory. It returns none if
// the directory cannot be read.
func besides(t tree, dir, own string) *beside {
	b := new(beside)
	entries, err := t.readDir(dir)
	if err != nil {
		return b
	}
	for _, e := range entries {
		name := e.Name()
		isDir := slices.Contains(resourceDirs, name)
		switch {
		case isDir && e.IsDir():
			b.addFiles(t, dir, name, 1)
		case isDir: // a link to a directory: note it, but do not follow it
			b.isFile(t, dir, name, e)
		case e.IsDir() || path.Ext(name) != ".md" || name == own || strings.HasPrefix(name, "."):
		case b.isFile(t, dir, name, e):
			b.sections = append(b.sections, strings.TrimSuffix(name, ".md"))
		}
	}
	return b
}

// addFiles adds the files of a directory, and of directories below it, to the resources.
func (b *beside) addFiles(t tree, dir, rel string, level int) {
	entries, err := t.readDir(path.Join(dir, rel))
	if err != nil {
		return
	}
	for _, e := range entries {
		name := path.Join(rel, e.Name())
		switch {
		case len(b.resources)+len(b.outside) >= mostResources:
			return
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			if level < deepestResource {
				b.addFiles(t, dir, name, level+1)
			}
		case b.isFile(t, dir, name, e):
			b.resources = append(b.resources, name)
		}
	}
}

// isFile reports whether an entry is a file, or a link to a file inside the directory. It
// notes a link that leads out in b.outside.
func (b *beside) isFile(t tree, dir, name string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Type().IsRegular()
	}
	rel := path.Join(dir, name)
	info, err := t.inside(rel)
	if err != nil {
		b.outside = append(b.outside, outsider{rel, err})
		return false
	}
	return info.Mode().IsRegular()
}
