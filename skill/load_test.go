package skill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/skill"
)

// BenchmarkLoad measures the first load of 10,000 skills, and a later check for changes.
// For comparison, it also measures reading the files.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	body := strings.Repeat("Take care to do it well, and in the order that is given here.\n", 40)
	for i, s := range manySkills(10_000) {
		name := fmt.Sprintf("skill-%05d", i)
		put(b, dir, name+"/SKILL.md", "---\nname: "+name+"\ndescription: "+s.Description+"\nlicense: MIT\nmetadata:\n  author: example\n  version: \"1.0\"\n---\n\n"+body)
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			if list, err := skill.Dir(dir).List(b.Context()); err != nil || len(list) != 10_000 {
				b.Fatal(len(list), err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			entries, err := os.ReadDir(dir)
			if err != nil {
				b.Fatal(err)
			}
			for _, e := range entries {
				if _, err := os.ReadFile(filepath.Join(dir, e.Name(), "SKILL.md")); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		source := skill.Dir(dir)
		for b.Loop() {
			if list, err := source.List(b.Context()); err != nil || len(list) != 10_000 {
				b.Fatal(len(list), err)
			}
		}
	})
}
