package repotest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestDocsSnippetsRule(t *testing.T) {
	t.Parallel()
	const marker = "<!-- docs: a/a_test.go order -->\n"
	for _, test := range []struct {
		rule    string
		page    string
		want    string // the page afterwards; "" if it does not change
		problem string // part of the only problem; "" if there is none
	}{
		{"a fresh snippet stays", marker + "```go\nfresh()\n```\n", "", ""},
		{"a stale snippet is replaced", "a\n" + marker + "\n```go\nstale()\nmore()\n```\nb\n", "a\n" + marker + "\n```go\nfresh()\n```\nb\n", ""},
		{"a Go snippet without a marker is refused", "Text.\n\n```go\nx()\n```\n", "", "page.md:3: a Go snippet is taken from compiled code"},
		{"a marker counts for one snippet", marker + "```go\nfresh()\n```\n```go\nfresh()\n```\n", "", "page.md:5:"},
		{"a snippet may say why it is not compiled", "<!-- snippet: not compiled: it must not compile -->\n```go\nx(\n```\n", "", ""},
		{"the reason is not optional", "<!-- snippet: not compiled: -->\n```go\nx(\n```\n", "", "page.md:2:"},
		{"a region that does not exist is refused", strings.Replace(marker, "order", "chaos", 1) + "```go\nx()\n```\n", "", "no such region"},
		{"other languages are free", "```sh\ngo test\n```\n", "", ""},
		{"a fence that is never closed is refused", "```go\nx()\n", "", "never closed"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got, problems := refresh("page.md", test.page, func(file, name string) (string, error) {
				if file != "a/a_test.go" || name != "order" {
					return "", errors.New("no such region")
				}
				return "fresh()\n", nil
			})
			want := test.want
			if want == "" {
				want = test.page
			}
			if got != want {
				t.Errorf("page = %q, want %q", got, want)
			}
			problem := ""
			if err := errors.Join(problems...); err != nil {
				problem = err.Error()
			}
			if (problem == "") != (test.problem == "") || !strings.Contains(problem, test.problem) {
				t.Errorf("problem = %q, want %q in it", problem, test.problem)
			}
		})
	}
}

func TestDocsRegionsRule(t *testing.T) {
	t.Parallel()
	const begin, end = "\t// docs:begin ", "\t// docs:end "
	regions, err := regionsOf("a.go", "package a\n"+begin+"one\n\n\tif x {\n\n\t\ty()\n\t}\n"+end+"one\n"+begin+"two\nz()\n"+end+"two\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := regions["one"], "if x {\n\n\ty()\n}\n"; got != want {
		t.Errorf("region one = %q, want %q: shared indentation goes, the rest stays", got, want)
	}
	if got, want := regions["two"], "z()\n"; got != want {
		t.Errorf("region two = %q, want %q", got, want)
	}
	for rule, src := range map[string]string{
		"a region is closed":              begin + "one\nx()\n",
		"a region is closed by its name":  begin + "one\nx()\n" + end + "two\n",
		"a region is opened before":       end + "one\n",
		"regions are not nested":          begin + "one\n" + begin + "two\n" + end + "two\n" + end + "one\n",
		"a name is used once in one file": strings.Repeat(begin+"one\n"+end+"one\n", 2),
	} {
		if regions, err := regionsOf("a.go", src); err == nil {
			t.Errorf("%s: regions = %q, want an error", rule, regions)
		}
	}
}

func TestDocsLinksRule(t *testing.T) {
	t.Parallel()
	got := links("[a](a.md) [b](https://example.com/b) `[c](c.md)` [d](d.md#e \"title\")\n```\n[f](f.md)\n```\n[g]: ../g.md\n![h](h.png)\n")
	if want := []string{"a.md", "d.md#e", "h.png", "../g.md"}; !slices.Equal(got, want) {
		t.Errorf("links = %q, want %q", got, want)
	}
	gotAnchors := anchors("# What Belay promises\n## H. The hook runtime\n## `hook.timeout`\n## Twice\n## Twice\n```\n# no heading\n```\n")
	if want := []string{"what-belay-promises", "h-the-hook-runtime", "hooktimeout", "twice", "twice-1"}; !slices.Equal(gotAnchors, want) {
		t.Errorf("anchors = %q, want %q", gotAnchors, want)
	}
	for link, want := range map[string]string{
		"spec.md":                    "",
		"../LICENSE":                 "",
		"spec.md#h-the-hook-runtime": "",
		"#h-the-hook-runtime":        "",
		"none.md":                    "there is no docs/none.md",
		"spec.md#none":               "no heading",
		"/docs/spec.md":              "leaves the repository",
		"../../spec.md":              "leaves the repository",
	} {
		problem := ""
		if err := resolve("docs/spec.md", link); err != nil {
			problem = err.Error()
		}
		if (problem == "") != (want == "") || !strings.Contains(problem, want) {
			t.Errorf("resolve(%q) = %q, want %q in it", link, problem, want)
		}
	}
}
