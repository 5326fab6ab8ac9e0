// Command gendocs writes the parts of the docs that are generated from code: the tables of
// phases and their fields in docs/hooks.md, the diagnostic codes, the JSON Schemas, the
// licences of dependencies, and the reference and the OpenAPI document of the server. With -check it writes nothing, and fails
// if a file is stale.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/licenses"
	"github.com/belay-run/belay/internal/phasejson"
	"github.com/belay-run/belay/serve"
)

func main() {
	check := flag.Bool("check", false, "fail if a file is stale, and write nothing")
	root := flag.String("root", ".", "the repository")
	since := flag.Bool("since-release", false, "list what the last release had and this tree has not; write nothing")
	version := flag.String("version", "", "with -since-release: the version to release, such as v0.2.0, which may allow changes")
	flag.Parse()
	if *since {
		if err := compare(context.Background(), os.Stdout, *root, *version); err != nil {
			fmt.Fprintln(os.Stderr, "gendocs:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gendocs:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	var stale []string
	for name, content := range files {
		path := filepath.Join(root, name)
		old, err := os.ReadFile(path)
		if err == nil && bytes.Equal(old, content) {
			continue
		}
		stale = append(stale, name)
		if check {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	orphans, err := orphans(root, files)
	if err != nil {
		return err
	}
	if check && len(stale)+len(orphans) > 0 {
		return fmt.Errorf("stale: %s: run `make generate` and commit the result", strings.Join(append(stale, orphans...), ", "))
	}
	for _, name := range orphans {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

// orphans returns the schema files of phases that no longer exist.
func orphans(root string, files map[string][]byte) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(root, "docs", "schemas", "*.json"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range found {
		name := "docs/schemas/" + filepath.Base(path)
		if _, ok := files[name]; !ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// dependencies returns what the command is made of. Like the phases, they are those of the
// source that gendocs was compiled from, wherever the docs are.
var dependencies = sync.OnceValues(func() ([]licenses.Module, error) {
	dir, err := source()
	if err != nil {
		return nil, err
	}
	return licenses.Of(context.Background(), dir, "./cmd/belay")
})

// names are the exported names of that source.
var names = sync.OnceValues(func() (*exported, error) {
	dir, err := source()
	if err != nil {
		return nil, err
	}
	return readExported(dir)
})

// source returns the directory of the module.
func source() (string, error) {
	mod, err := exec.CommandContext(context.Background(), "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(mod))), nil
}

// generate returns the contents of the generated files. A key is the path of a file.
func generate(root string) (map[string][]byte, error) {
	files := map[string][]byte{"docs/reference/diagnostics.md": diagnostics()}
	for name, make := range map[string]func() ([]byte, error){"serve/openapi.json": serve.OpenAPI, "docs/reference/api.md": serve.Reference} {
		text, err := make()
		if err != nil {
			return nil, err
		}
		files[name] = text
	}
	modules, err := dependencies()
	if err != nil {
		return nil, err
	}
	files["docs/reference/licenses.md"] = []byte(licensesPage + licenses.Table(modules))
	api, err := names()
	if err != nil {
		return nil, err
	}
	files["docs/reference/exported.txt"] = api.list()
	stable, err := os.ReadFile(filepath.Join(root, "docs", "compatibility.md"))
	if err != nil {
		return nil, err
	}
	if files["docs/compatibility.md"], err = replaceRegion(stable, "experimental", api.table()); err != nil {
		return nil, fmt.Errorf("docs/compatibility.md: %w", err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "hooks.md"))
	if err != nil {
		return nil, err
	}
	for region, content := range map[string]string{"phases": phaseTable(), "fields": fieldTables()} {
		if page, err = replaceRegion(page, region, content); err != nil {
			return nil, fmt.Errorf("docs/hooks.md: %w", err)
		}
	}
	files["docs/hooks.md"] = page
	for vendor, name := range map[dialect.Vendor]string{dialect.ClaudeCode: "claude-code", dialect.Codex: "codex", dialect.GeminiCLI: "gemini-cli"} {
		name = "docs/agents-" + name + ".md"
		page, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		for region, content := range map[string]string{"events": eventTable(vendor), "tools": toolTable(vendor), "sources": contractList(vendor)} {
			if page, err = replaceRegion(page, region, content); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		files[name] = page
	}
	if err := addHookOf(root, files); err != nil {
		return nil, err
	}
	for _, p := range belay.Phases() {
		schema, err := phasejson.Describe(p.Name())
		if err != nil {
			return nil, err
		}
		for kind, data := range map[string][]byte{"input": schema.Input, "output": schema.Output} {
			files[fmt.Sprintf("docs/schemas/%s.%s.json", p.Name(), kind)] = append(data, '\n')
		}
	}
	return files, nil
}

// licensesPage is what the list of licences begins with.
const licensesPage = `# Licences of dependencies

This page lists what the ` + "`belay`" + ` program contains besides Belay's own code, on all platforms. Belay itself has the licence Apache-2.0. The archives of a release
have the full texts in ` + "`THIRD_PARTY.txt`" + `.

The list is made from the licence files in the module cache by ` + "`make generate`" + `. A module has all licences that these files contain, also those of parts that the program does not use. A dependency without a known licence is an error.

`

// replaceRegion replaces the text between the markers of a region.
func replaceRegion(page []byte, region, content string) ([]byte, error) {
	begin, end := fmt.Appendf(nil, "<!-- generated: %s -->\n", region), fmt.Appendf(nil, "<!-- end: %s -->\n", region)
	head, rest, ok := bytes.Cut(page, begin)
	_, tail, ok2 := bytes.Cut(rest, end)
	if !ok || !ok2 {
		return nil, fmt.Errorf("the markers of region %q are gone", region)
	}
	return bytes.Join([][]byte{head, begin, []byte(content), end, tail}, nil), nil
}

func phaseTable() string {
	var b strings.Builder
	b.WriteString("| wire name | kind | handler may | fires | fails |\n|---|---|---|---|---|\n")
	for _, p := range belay.Phases() {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s | %s |\n",
			p.Name(), strings.ReplaceAll(p.Name(), ".", ""), title(p.Info().Kind), p.Info().May, p.Info().Fires, p.Info().Failure)
	}
	return b.String()
}

func title(k hook.Kind) string {
	name := k.String()
	return strings.ToUpper(name[:1]) + name[1:]
}

func diagnostics() []byte {
	var b bytes.Buffer
	b.WriteString("<!-- Generated by internal/gendocs. Do not edit. -->\n\n# Diagnostic codes\n\n")
	b.WriteString("Codes are stable: they are stored in records, searched for and matched on. `codes.All()` in package `hook/codes` returns this table.\n\n")
	b.WriteString("| code | level | meaning | what to do |\n|---|---|---|---|\n")
	for _, c := range codes.All() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Code, c.Level, c.Meaning, c.Remedy)
	}
	return b.Bytes()
}
