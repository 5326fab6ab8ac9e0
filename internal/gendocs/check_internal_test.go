package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
)

// SPEC B-08, C-12, H-16
func TestDocumentationIsFresh(t *testing.T) {
	t.Parallel()
	if err := run(filepath.Join("..", ".."), true); err != nil {
		t.Error(err)
	}
}

// freshCopy returns a copy of the docs of this repository, and of the OpenAPI document.
func freshCopy(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "docs"), os.DirFS(filepath.Join("..", "..", "docs"))); err != nil {
		t.Fatal(err)
	}
	api, err := os.ReadFile(filepath.Join("..", "..", "serve", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, root, "serve/openapi.json", string(api))
	return root
}

func put(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tree returns the content of every file below a directory.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// SPEC C-12
func TestCheckFindsWhatIsStale(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		spoil func(t *testing.T, root string)
		name  string // part of the error
	}{
		{"a table that was edited", func(t *testing.T, root string) {
			t.Helper()
			page := tree(t, root)["docs/hooks.md"]
			put(t, root, "docs/hooks.md", strings.Replace(page, "| Gate |", "| Collect |", 1))
		}, "docs/hooks.md"},
		{"a phase's fields that were edited", func(t *testing.T, root string) {
			t.Helper()
			page := tree(t, root)["docs/hooks.md"]
			put(t, root, "docs/hooks.md", strings.Replace(page, "| `reason` |", "| `reasons` |", 1))
		}, "docs/hooks.md"},
		{"a schema that was edited", func(t *testing.T, root string) {
			t.Helper()
			put(t, root, "docs/schemas/tool.pre.input.json", "{}\n")
		}, "docs/schemas/tool.pre.input.json"},
		{"a schema that is gone", func(t *testing.T, root string) {
			t.Helper()
			if err := os.Remove(filepath.Join(root, "docs", "schemas", "error.output.json")); err != nil {
				t.Fatal(err)
			}
		}, "docs/schemas/error.output.json"},
		{"a schema of a phase that no longer exists", func(t *testing.T, root string) {
			t.Helper()
			put(t, root, "docs/schemas/tool.during.input.json", "{}\n")
		}, "docs/schemas/tool.during.input.json"},
		{"an API whose document was edited", func(t *testing.T, root string) {
			t.Helper()
			put(t, root, "serve/openapi.json", "{}\n")
		}, "serve/openapi.json"},
		{"codes that were edited", func(t *testing.T, root string) {
			t.Helper()
			put(t, root, "docs/reference/diagnostics.md", "# Diagnostic codes\n")
		}, "docs/reference/diagnostics.md"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			root := freshCopy(t)
			test.spoil(t, root)
			spoiled := tree(t, root)
			err := run(root, true)
			if err == nil || !strings.Contains(err.Error(), test.name) || !strings.Contains(err.Error(), "make generate") {
				t.Errorf("the check says %v, want it to name %s and what to do", err, test.name)
			}
			if !maps.Equal(spoiled, tree(t, root)) {
				t.Error("the check wrote something")
			}
		})
	}
}

func TestMakingMendsWhatIsStale(t *testing.T) {
	t.Parallel()
	root := freshCopy(t)
	fresh := tree(t, root)
	put(t, root, "docs/hooks.md", strings.Replace(fresh["docs/hooks.md"], "| Gate |", "| Collect |", 1))
	put(t, root, "docs/schemas/tool.during.input.json", "{}\n")
	if err := os.Remove(filepath.Join(root, "docs", "schemas", "error.output.json")); err != nil {
		t.Fatal(err)
	}
	if err := run(root, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fresh, tree(t, root)); diff != "" {
		t.Errorf("(-fresh +made):\n%s", diff)
	}
}

// Text around the generated tables is not changed.
func TestTextAroundTheTablesStays(t *testing.T) {
	t.Parallel()
	root := freshCopy(t)
	page := "written before\n" + tree(t, root)["docs/hooks.md"] + "written behind\n"
	put(t, root, "docs/hooks.md", page)
	if err := run(root, true); err != nil {
		t.Error(err)
	}
}

func TestMarkersMustBeThere(t *testing.T) {
	t.Parallel()
	for _, marker := range []string{"<!-- generated: phases -->\n", "<!-- end: phases -->\n", "<!-- generated: fields -->\n", "<!-- end: fields -->\n"} {
		root := freshCopy(t)
		put(t, root, "docs/hooks.md", strings.Replace(tree(t, root)["docs/hooks.md"], marker, "", 1))
		if err := run(root, false); err == nil || !strings.Contains(err.Error(), "markers of region") {
			t.Errorf("without %q it says %v", marker, err)
		}
	}
	if err := run(t.TempDir(), true); err == nil {
		t.Error("a repository without docs/hooks.md is fresh")
	}
}

// SPEC C-12, H-16
func TestEveryPhaseAndCodeIsDocumented(t *testing.T) {
	t.Parallel()
	files, err := generate(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	page, table := string(files["docs/hooks.md"]), string(files["docs/reference/diagnostics.md"])
	for _, p := range belay.Phases() {
		for _, want := range []string{"| [`" + p.Name() + "`](#", "### " + p.Name() + "\n", "(schemas/" + p.Name() + ".input.json)", "(schemas/" + p.Name() + ".output.json)"} {
			if strings.Count(page, want) != 1 {
				t.Errorf("%q is there %d times, want once", want, strings.Count(page, want))
			}
		}
	}
	for _, c := range codes.All() {
		if want := "| `" + string(c.Code) + "` | " + string(c.Level) + " |"; strings.Count(table, want) != 1 {
			t.Errorf("%q is there %d times, want once", want, strings.Count(table, want))
		}
	}
	if got, want := len(slices.Collect(maps.Keys(files))), 13+2*len(belay.Phases()); got != want {
		t.Errorf("%d files are generated, want %d", got, want)
	}
}

func TestTypeNames(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]object{
		"string":                 {Type: "string"},
		"any JSON":               {},
		"list of string":         {Type: "array", Items: &object{Type: "string"}},
		"list of list of object": {Type: "array", Items: &object{Type: "array", Items: &object{Type: "object"}}},
	} {
		if got := typeName(o); got != want {
			t.Errorf("typeName(%+v) = %q, want %q", o, got, want)
		}
	}
}
