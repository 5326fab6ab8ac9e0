package toolbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Ignored reports whether .gitignore files exclude a path, or a directory above it. The
// keys of files are directories.
func Ignored(files map[string]string, name string) bool {
	isDir := strings.HasSuffix(name, "/")
	name = strings.TrimSuffix(name, "/")
	var rules *ignores
	read := func(dir string) {
		if text, ok := files[dir]; ok {
			rules, _ = parseIgnore(strings.NewReader(text), dir, rules)
		}
	}
	for dir := range parents(name) {
		if dir != "." && rules.ignored(dir, true) {
			return true
		}
		read(dir)
	}
	return rules.ignored(name, isDir)
}

// Search searches a text in blocks of the given size. It returns the line numbers of the
// matches and of all shown lines.
func Search(ctx context.Context, pattern string, around, block int, from io.Reader) (matched, shown []int, err error) {
	s, err := newSearch(pattern, false, false)
	if err != nil {
		return nil, nil, err
	}
	s.around, s.maxLines = around, 1<<30
	f, err := s.in(ctx, from, slices.Grow([]byte(nil), block)[:block:block])
	if err != nil {
		return nil, nil, err
	}
	for _, h := range f.hits {
		shown = append(shown, h.line)
		if h.matched {
			matched = append(matched, h.line)
		}
	}
	return matched, shown, nil
}

// Memory exports memory.
type Memory struct{ *memory }

// NewMemory makes a memory with the given maximum number of files.
func NewMemory(most int) Memory { return Memory{newMemory(most)} }

// Saw records that a session has read a file.
func (m Memory) Saw(session, file string) { m.saw(session, spotOf(file), sum{}) }

// Knows reports whether a session has read a file.
func (m Memory) Knows(session, file string) bool {
	_, ok := m.knows(session, spotOf(file))
	return ok
}

func spotOf(file string) spot { return spot{&place{}, file, file} }

// Pattern compiles a path pattern and returns a function that matches it.
func Pattern(pattern string) (func(string) bool, error) {
	re, err := compilePath(pattern, true)
	if err != nil {
		return nil, err
	}
	return re.MatchString, nil
}

// Needles returns the needles of an expression. The prefix "i:" means that case is
// ignored.
func Needles(pattern string) []string {
	var all []string
	for _, n := range needlesOf(pattern) {
		text := string(n.text)
		if n.fold {
			text = "i:" + text
		}
		all = append(all, text)
	}
	return all
}

// Replace loads a file, calls a function, and then replaces the file.
func Replace(root *os.Root, name, content string, meanwhile func()) error {
	at := spot{newPlace(root), name, name}
	old, err := at.load()
	if errors.Is(err, fs.ErrNotExist) {
		old, err = nil, nil
	}
	if err != nil {
		return err
	}
	meanwhile()
	_, err = at.replace(old, []byte(content))
	return err
}

// Walk calls visit for each entry of a project. A directory comes before its content.
func Walk(ctx context.Context, root *os.Root, visit func(name string)) error {
	w := &walker{place: newPlace(root), visit: func(e entry) error {
		visit(e.rel)
		return nil
	}}
	return w.walk(ctx, ".")
}

// RememberedAnswers exports rememberedAnswers.
const RememberedAnswers = rememberedAnswers
