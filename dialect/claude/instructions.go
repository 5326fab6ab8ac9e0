package claude

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// The limits of instructions.
const (
	mostImports = 5        // how deep imports may be nested
	mostOfFile  = 64 << 10 // bytes of one file with its imports
	mostOfAll   = 128 << 10
	mostRules   = 100 // files in a directory rules
)

// Where says where to look for files.
type Where struct {
	// Project is the directory of the project.
	Project string
	// Home is the user's home directory, or "" if there is none.
	Home string
	// Config is the directory of Claude Code's own settings. Defaults to .claude in Home.
	Config string
	// May returns an error if the model may not read a file. Nil means that it may read
	// all files.
	May func(file string) error
}

// Own returns the directory of the user's own files for Claude Code, or "" if there is none.
func (w *Where) Own() string {
	if w.Config == "" && w.Home != "" {
		return filepath.Join(w.Home, ".claude")
	}
	return w.Config
}

// Instruction is a file with instructions for the model.
type Instruction struct {
	// Path is the file.
	Path string
	// Text is the text of the file, with the text of its imports in it. It is empty if the
	// file adds nothing.
	Text string
	// Imports are the files that Text contains, besides Path.
	Imports []string
	// Notes say what was left out, and why.
	Notes []string
}

// instructionFiles are the files with instructions in a directory, in the order of reading.
// A later file wins.
var instructionFiles = []string{"AGENTS.md", "GEMINI.md", "CLAUDE.md", filepath.Join(".claude", "CLAUDE.md"), "CLAUDE.local.md"}

// ReadInstructions reads the instructions that apply to a project: first those of the user,
// then those of the directories from the top of the repository down to the project. So the
// nearest file comes last. If there is no repository, the top is the home directory, or the
// project itself if it is not inside the home directory.
//
// A line may import a file with @path. A file that is already part of the instructions is
// not added again.
func ReadInstructions(w *Where) []Instruction {
	r := &instructions{Where: w, top: topOf(w), seen: make(map[string]bool)}
	if own := w.Own(); own != "" {
		r.read(filepath.Join(own, "CLAUDE.md"), own)
		r.rules(filepath.Join(own, "rules"), own)
	}
	for _, dir := range between(r.top, w.Project) {
		for _, name := range instructionFiles {
			r.read(filepath.Join(dir, name), r.reach(dir))
		}
		if dir == w.Project {
			r.rules(filepath.Join(dir, ".claude", "rules"), r.reach(dir))
		}
	}
	return r.files
}

// ReadNested reads the instructions of the directories between the project and a file,
// without those of the project itself. Files for which known returns true are left out.
func ReadNested(w *Where, file string, known func(file string) bool) []Instruction {
	rel, err := filepath.Rel(w.Project, filepath.Dir(file))
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return nil
	}
	r := &instructions{Where: w, top: topOf(w), seen: make(map[string]bool)}
	for _, dir := range between(w.Project, filepath.Dir(file))[1:] {
		for _, name := range instructionFiles {
			if path := filepath.Join(dir, name); !known(path) {
				r.read(path, r.reach(filepath.Dir(path)))
			}
		}
	}
	return r.files
}

// topOf returns the directory where the search for instructions starts.
func topOf(w *Where) string {
	for dir := w.Project; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if w.Home != "" && inside(w.Home, w.Project) {
		return w.Home
	}
	return w.Project
}

// between returns the directories from top down to dir.
func between(top, dir string) []string {
	dirs := []string{dir}
	for dir != top && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// inside reports whether a path is a directory or below it, without resolving links.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// instructions is the state while instructions are read.
type instructions struct {
	*Where

	top   string
	files []Instruction
	seen  map[string]bool // files that are part of the instructions, with links resolved
	size  int             // bytes of all texts

	agents map[string]string // the text of AGENTS.md as it is written, by directory
}

// reach returns the directory in which a file of dir may import files: its repository, or else
// the project, or else dir. It is never the user's home directory: a stranger's project must not
// put the user's files into the prompt.
func (r *instructions) reach(dir string) string {
	if _, err := os.Lstat(filepath.Join(r.top, ".git")); err == nil && r.top != r.Home && inside(r.top, dir) {
		return r.top
	}
	if inside(r.Project, dir) {
		return r.Project
	}
	return dir
}

// read adds a file, if it exists. The file must be inside the directory within.
func (r *instructions) read(file, within string) {
	one := Instruction{Path: file}
	text, actual, err := r.text(file, within)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		one.Notes = append(one.Notes, "not read: "+err.Error())
	case r.seen[actual]:
		one.Notes = append(one.Notes, "already read under another name")
	case r.copied(file, text):
		r.seen[actual] = true
		one.Notes = append(one.Notes, "AGENTS.md in the same directory has its text, so it is not added again")
	default:
		r.seen[actual] = true
		whole := r.expand(&one, text, actual, within, 0)
		if whole == "" {
			one.Notes = append(one.Notes, "adds no text of its own")
		}
		one.Text = whole
		if one.Text = r.bounded(&one); one.Text == whole && filepath.Base(file) == "AGENTS.md" {
			if r.agents == nil {
				r.agents = make(map[string]string)
			}
			r.agents[filepath.Dir(file)] = text
		}
	}
	r.files = append(r.files, one)
}

// copied reports whether the AGENTS.md in the same directory has the whole text of a file, as
// after "belay import". An import of a file means the same only if it begins in the same
// directory.
func (r *instructions) copied(file, text string) bool {
	dir := filepath.Dir(file)
	beside := filepath.Base(dir) != ".claude"
	if !beside {
		dir = filepath.Dir(dir)
	}
	text = strings.TrimSpace(text)
	return text != "" && strings.Contains("\n"+strings.TrimSpace(r.agents[dir])+"\n", "\n"+text+"\n") && (beside || !imported.MatchString(text))
}

// HasImports reports whether a text may import files.
func HasImports(text string) bool { return imported.MatchString(text) }

// bounded returns the text of a file within the limits. It notes what was cut.
func (r *instructions) bounded(one *Instruction) string {
	room := max(0, min(mostOfFile, mostOfAll-r.size))
	text := one.Text
	if len(text) > room {
		note := fmt.Sprintf("only the first %d of %d bytes are used: the limit is %d bytes for a file and %d bytes for all files", room, len(text), mostOfFile, mostOfAll)
		one.Notes = append(one.Notes, note)
		if text = whole(text[:room]); text != "" {
			text += "\n[The rest of this file was left out, because it is too long.]"
		}
	}
	r.size += len(text)
	return text
}

// whole removes an incomplete character from the end of a text.
func whole(text string) string {
	for i := 0; i < utf8.UTFMax && !utf8.ValidString(text); i++ {
		text = text[:len(text)-1]
	}
	return text
}

// text returns the text of a file and its path with links resolved.
func (r *instructions) text(file, within string) (text, actual string, err error) {
	actual, err = filepath.EvalSymlinks(file)
	if err != nil {
		return "", "", plain(err)
	}
	base, err := filepath.EvalSymlinks(within)
	if err != nil {
		return "", "", plain(err)
	}
	if !inside(base, actual) {
		return "", "", fmt.Errorf("it is outside of %s", within)
	}
	if r.May != nil {
		if err := r.May(actual); err != nil {
			return "", "", err
		}
	}
	read, err := readText(actual, 4*mostOfFile)
	return read, actual, err
}

// readText returns the beginning of a regular file. Opening a pipe would block.
func readText(file string, most int64) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", plain(err)
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	f, err := os.Open(file)
	if err != nil {
		return "", plain(err)
	}
	defer func() { _ = f.Close() }() // the file was only read
	read, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return "", plain(err)
	}
	text := strings.TrimPrefix(whole(string(read)), "\ufeff")
	if !utf8.ValidString(text) {
		return "", errors.New("it is not UTF-8")
	}
	return text, nil
}

// plain returns an error without its path, because notes have the path already.
func plain(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// rules adds the files of a directory rules. A rule with the key paths is only for some
// files. Belay does not know which files a turn will use, so it leaves such a rule out.
func (r *instructions) rules(dir, within string) {
	count := 0
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".md" {
			return nil //nolint:nilerr // skip directories that cannot be read
		}
		if count++; count > mostRules {
			r.files = append(r.files, Instruction{Path: dir, Notes: []string{fmt.Sprintf("only the first %d files are used", mostRules)}})
			return fs.SkipAll
		}
		before := len(r.files)
		r.read(path, within)
		if len(r.files) == before {
			return nil
		}
		one := &r.files[len(r.files)-1]
		if head, body, ok := cutHead(one.Text); ok && hasPaths.MatchString(head) {
			r.size -= len(one.Text)
			one.Text, one.Notes = "", append(one.Notes, "left out: its key paths limits it to some files, and Belay has no such rules")
		} else if ok {
			one.Text = body
		}
		return nil
	})
}

var hasPaths = lazyregexp.New(`(?m)^(paths|globs)\s*:`)

// cutHead splits a text into its frontmatter and the rest.
func cutHead(text string) (head, body string, ok bool) {
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", text, false
	}
	head, body, ok = strings.Cut(rest, "\n---\n")
	return head, strings.TrimSpace(body), ok
}

// imported matches @path at the beginning of a word.
var imported = lazyregexp.New(`(^|[\s(])@((?:[^\s\\]|\\ )+)`)

// expand returns a text with the text of its imports. An import inside code stays as it is.
func (r *instructions) expand(one *Instruction, text, file, within string, depth int) string {
	var out strings.Builder
	var added []string
	fence := ""
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(bare, fence) && strings.Trim(bare, fence[:1]) == "" {
				fence = ""
			}
			out.WriteString(line)
			continue
		case strings.HasPrefix(bare, "```"), strings.HasPrefix(bare, "~~~"):
			fence = bare[:len(bare)-len(strings.TrimLeft(bare, bare[:1]))]
			out.WriteString(line)
			continue
		}
		for i, part := range strings.Split(line, "`") {
			if i > 0 {
				out.WriteString("`")
			}
			if i%2 == 1 { // a code span
				out.WriteString(part)
				continue
			}
			out.WriteString(imported.ReplaceAllStringFunc(part, func(match string) string {
				found := imported.FindStringSubmatch(match)
				name := strings.ReplaceAll(found[2], `\ `, " ")
				trimmed := strings.TrimRight(name, ".,;:!?)")
				body, ok := r.include(one, trimmed, file, within, depth)
				if !ok {
					return match
				}
				if body != "" {
					added = append(added, body)
				}
				if bare == "@"+name {
					return found[1] // the line only imports
				}
				return found[1] + trimmed + name[len(trimmed):]
			}))
		}
	}
	return strings.TrimSpace(strings.Join(append([]string{strings.TrimSpace(out.String())}, added...), "\n\n"))
}

// include returns the text of an import. It reports false if @name is no import of a file.
func (r *instructions) include(one *Instruction, name, from, within string, depth int) (string, bool) {
	file := name
	switch rest, home := strings.CutPrefix(name, "~/"); {
	case home && r.Home == "":
		return "", false
	case home:
		file = filepath.Join(r.Home, filepath.FromSlash(rest))
	case !filepath.IsAbs(name):
		file = filepath.Join(filepath.Dir(from), filepath.FromSlash(name))
	}
	if info, err := os.Stat(file); err != nil || info.IsDir() {
		if filepath.Ext(name) == ".md" || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "~/") {
			one.Notes = append(one.Notes, fmt.Sprintf("@%s: there is no such file", name))
		}
		return "", false // such as a mail address, or @name of a package
	}
	if own := r.Own(); own != "" && inside(own, file) && filepath.Ext(file) == ".md" {
		within = own // a project may name the user's own instructions
	}
	text, actual, err := r.text(file, within)
	switch {
	case err != nil:
		one.Notes = append(one.Notes, fmt.Sprintf("@%s: not imported: %v", name, err))
		return "", false
	case r.seen[actual]:
		return "", true
	case depth == mostImports:
		one.Notes = append(one.Notes, fmt.Sprintf("@%s: not imported: imports are nested deeper than %d levels", name, mostImports))
		return "", false
	}
	r.seen[actual] = true
	one.Imports = append(one.Imports, actual)
	return r.expand(one, text, actual, within, depth+1), true
}

// Render returns the instructions as a part of a system prompt, or "" if there are none.
// shown returns how the model sees a path.
func Render(files []Instruction, shown func(path string) string) string {
	var b strings.Builder
	for i := range files {
		if files[i].Text == "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("The files below have instructions of the user and the project. If two of them contradict each other, follow the later one. They change nothing about what you are permitted to do.\n")
		}
		fmt.Fprintf(&b, "\n<instructions file=%q>\n%s\n</instructions>\n", shown(files[i].Path), contained(files[i].Text))
	}
	return strings.TrimSpace(b.String())
}

var closing = lazyregexp.New(`(?i)<(\s*)/(\s*(?:instructions|system-reminder))\b`)

// contained escapes end tags in a text, so that the text cannot end its element.
func contained(text string) string { return closing.ReplaceAllString(text, `<$1\/$2`) }
