package repotest_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/phasejson"
	"github.com/google/go-cmp/cmp"
)

// The page and the schemas are generated from the code. This test finds stale files without
// running the generator.
//
// SPEC C-12
func TestHooksPageIsTheCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	_, table, _ := strings.Cut(string(page), "<!-- generated: phases -->\n")
	table, _, _ = strings.Cut(table, "<!-- end: phases -->")
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| [`") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	for _, p := range belay.Phases() {
		kind := p.Info().Kind.String()
		want = append(want, fmt.Sprintf("| [%#q](#%s) | %s | %s | %s | %s |", p.Name(), strings.ReplaceAll(p.Name(), ".", ""),
			strings.ToUpper(kind[:1])+kind[1:], p.Info().May, p.Info().Fires, p.Info().Failure))
		if !strings.Contains(string(page), "\n### "+p.Name()+"\n") {
			t.Errorf("docs/hooks.md has no section about %s", p.Name())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table in docs/hooks.md is stale, run make generate (-code +page):\n%s", diff)
	}
}

// SPEC C-12
func TestSchemaFilesAreTheCode(t *testing.T) {
	t.Parallel()
	var want []string
	for _, p := range belay.Phases() {
		schema, err := phasejson.Describe(p.Name())
		if err != nil {
			t.Fatal(err)
		}
		for kind, text := range map[string][]byte{"input": schema.Input, "output": schema.Output} {
			name := filepath.Join("docs", "schemas", p.Name()+"."+kind+".json")
			want = append(want, name)
			file, err := os.ReadFile(name)
			if err != nil {
				t.Error(err)
			} else if !bytes.Equal(bytes.TrimSpace(file), text) {
				t.Errorf("%s is stale: run make generate", name)
			}
		}
	}
	got, err := filepath.Glob("docs/schemas/*.json")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/schemas has the wrong files (-code +files):\n%s", diff)
	}
}
