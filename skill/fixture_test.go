package skill_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/skill"
)

// write makes a directory with the given files and returns its path.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "skills")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		put(t, dir, name, text)
	}
	return dir
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func md(fields ...string) string {
	return "---\n" + strings.Join(fields, "\n") + "\n---\nThe body.\n"
}

func names(skills []*skill.Skill) []string {
	var all []string
	for _, s := range skills {
		all = append(all, s.Name)
	}
	return all
}

// told returns problems as lines. Paths are relative to dir.
func told(dir string, problems []skill.Problem) []string {
	var lines []string
	for i := range problems {
		line := problems[i].Error()
		if dir != "" {
			line = strings.ReplaceAll(line, dir+string(filepath.Separator), "")
		}
		lines = append(lines, filepath.ToSlash(line))
	}
	slices.Sort(lines)
	return lines
}

// wants fails unless each line begins with the wanted text, and there are no other lines.
func wants(t testing.TB, what string, got, want []string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(got); i++ {
		ok = strings.HasPrefix(got[i], want[i])
	}
	if !ok {
		t.Errorf("%s:\n  %s\nwant:\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// source is a Source whose methods are functions of the test.
type source struct {
	name string
	list func(ctx context.Context) ([]*skill.Skill, error)
	read func(ctx context.Context, id, section string) (skill.Reading, error)
}

func (s *source) String() string { return s.name }

func (s *source) List(ctx context.Context) ([]*skill.Skill, error) { return s.list(ctx) }

func (s *source) Read(ctx context.Context, id, section string) (skill.Reading, error) {
	if s.read == nil {
		return skill.Reading{}, fmt.Errorf("%q: %w", id, skill.ErrNotFound)
	}
	return s.read(ctx, id, section)
}
