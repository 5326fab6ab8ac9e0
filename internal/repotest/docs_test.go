package repotest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Go snippets in the documentation are copied from compiled code. A region of a Go file is
// the lines between these two comments:
//
//	docs:begin NAME
//	docs:end NAME
//
// In the page, a comment above the code block names the file and the region. If a snippet
// cannot be compiled, the comment gives the reason instead:
//
//	<!-- docs: hook/example_order_test.go order -->
//	<!-- snippet: not compiled: it shows what the compiler refuses -->
var (
	fenceLine    = regexp.MustCompile("^ {0,3}(```+)([A-Za-z]*)")
	regionMarker = regexp.MustCompile(`^<!-- docs: (\S+\.go) ([a-z0-9-]+) -->$`)
	reasonMarker = regexp.MustCompile(`^<!-- snippet: not compiled: \S.* -->$`)
	regionEdge   = regexp.MustCompile(`^\s*// docs:(begin|end) ([a-z0-9-]+)$`)
)

func TestDocsSnippets(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, page := range markdown(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		fresh, problems := refresh(page, string(text), func(file, name string) (string, error) {
			used[file+" "+name] = true
			src, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			regions, err := regionsOf(file, string(src))
			if err != nil {
				return "", err
			}
			region, ok := regions[name]
			if !ok {
				return "", fmt.Errorf("%s has no region %q: put the comments docs:begin and docs:end with that name around the code", file, name)
			}
			return region, nil
		})
		for _, problem := range problems {
			t.Error(problem)
		}
		switch {
		case fresh == string(text):
		case *update:
			if err := os.WriteFile(page, []byte(fresh), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: rewritten", page)
		default:
			t.Errorf("%s: a snippet differs from the code it is taken from, near line %d: run make generate", page, firstDifference(string(text), fresh))
		}
	}
	for _, file := range goFiles(t, func(*goFile) bool { return true }) {
		regions, err := regionsOf(file.path, string(file.src))
		if err != nil {
			t.Error(err)
		}
		for name := range regions {
			if !used[file.path+" "+name] {
				t.Errorf("%s: no page shows the region %q: show it or remove its comments", file.path, name)
			}
		}
	}
}

// refresh replaces each Go snippet of a page by its region. It returns the new page, and
// the problems that replacing does not solve.
func refresh(page, text string, region func(file, name string) (string, error)) (string, []error) {
	var out strings.Builder
	var problems []error
	lines := strings.SplitAfter(text, "\n")
	above := "" // the last line that is not blank, trimmed
	for i := 0; i < len(lines); i++ {
		fence := fenceLine.FindStringSubmatch(lines[i])
		if fence == nil {
			if trimmed := strings.TrimSpace(lines[i]); trimmed != "" {
				above = trimmed
			}
			out.WriteString(lines[i])
			continue
		}
		end := i + 1
		for end < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[end]), fence[1]) {
			end++
		}
		if end == len(lines) {
			return text, append(problems, fmt.Errorf("%s:%d: the fence is never closed", page, i+1))
		}
		body := strings.Join(lines[i+1:end], "")
		marker := regionMarker.FindStringSubmatch(above)
		switch isGo := fence[2] == "go" || fence[2] == "golang"; {
		case isGo && marker != nil:
			fresh, err := region(marker[1], marker[2])
			if err != nil {
				problems = append(problems, fmt.Errorf("%s:%d: %w", page, i+1, err))
				break
			}
			body = fresh
		case isGo && !reasonMarker.MatchString(above):
			problems = append(problems, fmt.Errorf("%s:%d: a Go snippet is taken from compiled code: put <!-- docs: path/file_test.go name --> above it, or <!-- snippet: not compiled: reason -->", page, i+1))
		}
		out.WriteString(lines[i] + body + lines[end])
		above = ""
		i = end
	}
	return out.String(), problems
}

// regionsOf returns the regions of a Go file by name. It removes the indentation that all
// lines of a region share.
func regionsOf(file, src string) (map[string]string, error) {
	regions := map[string]string{}
	var open string
	var body []string
	number := 0
	for line := range strings.Lines(src) {
		number++
		edge := regionEdge.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case edge == nil:
			body = append(body, line)
		case edge[1] == "begin" && open == "" && !has(regions, edge[2]):
			open, body = edge[2], nil
		case edge[1] == "end" && open == edge[2]:
			regions[open], open = dedent(body), ""
		default:
			return nil, fmt.Errorf("%s:%d: docs:%s %s does not fit: regions are named once, closed by their name, and not nested", file, number, edge[1], edge[2])
		}
	}
	if open != "" {
		return nil, fmt.Errorf("%s: the region %q is never closed: add docs:end %s", file, open, open)
	}
	return regions, nil
}

// has reports whether a map has a key.
func has[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

// dedent joins lines. It removes the tabs with which all of them begin, and blank lines
// before and after them.
func dedent(lines []string) string {
	text := strings.Trim(strings.Join(lines, ""), "\n") + "\n"
	for text != "\n" {
		for line := range strings.Lines(text) {
			if line != "\n" && line[0] != '\t' {
				return text
			}
		}
		text = strings.TrimPrefix(strings.ReplaceAll("\n"+text, "\n\t", "\n"), "\n")
	}
	return text
}

// firstDifference returns the number of the first line in which two texts differ.
func firstDifference(a, b string) int {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return i + 1
		}
	}
	return min(len(as), len(bs))
}

var (
	inlineLink    = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`)
	referenceLink = regexp.MustCompile(`(?m)^\[[^\]]+\]:\s+(\S+)`)
	headingLine   = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	codeSpan      = regexp.MustCompile("`[^`\n]*`")
	notInSlug     = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func TestDocsLinks(t *testing.T) {
	t.Parallel()
	for _, page := range markdown(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links(string(text)) {
			if err := resolve(page, link); err != nil {
				t.Errorf("%s: the link to %s leads nowhere: %v", page, link, err)
			}
		}
	}
}

// links returns the targets of a page's links within the repository.
func links(text string) []string {
	prose := codeSpan.ReplaceAllString(withoutFences(text), "")
	matches := slices.Concat(inlineLink.FindAllStringSubmatch(prose, -1), referenceLink.FindAllStringSubmatch(prose, -1))
	var found []string
	for _, match := range matches {
		if !strings.Contains(match[1], "://") && !strings.HasPrefix(match[1], "mailto:") {
			found = append(found, match[1])
		}
	}
	return found
}

// resolve checks that a link on a page leads to a file or directory of the repository. If
// the link has a fragment, the page must have that heading.
func resolve(page, link string) error {
	name, fragment, _ := strings.Cut(link, "#")
	target := page
	if name != "" {
		target = path.Join(path.Dir(page), name)
	}
	if strings.HasPrefix(name, "/") || target == ".." || strings.HasPrefix(target, "../") {
		return errors.New("it leaves the repository: write it relative to the page")
	}
	info, err := os.Stat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s", target)
	}
	if err != nil || fragment == "" || info.IsDir() || path.Ext(target) != ".md" {
		return err
	}
	text, err := os.ReadFile(target)
	if err != nil {
		return err
	}
	if !slices.Contains(anchors(string(text)), fragment) {
		return fmt.Errorf("%s has no heading with the anchor #%s", target, fragment)
	}
	return nil
}

// anchors returns the anchors of a page's headings, in the form that GitHub uses.
func anchors(text string) []string {
	var all []string
	seen := map[string]int{}
	for _, match := range headingLine.FindAllStringSubmatch(withoutFences(text), -1) {
		title := inlineLink.ReplaceAllString(match[1], "")
		anchor := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		if n := seen[anchor]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", anchor, n))
		} else {
			all = append(all, anchor)
		}
		seen[anchor]++
	}
	return all
}

// withoutFences returns a page without its code blocks.
func withoutFences(text string) string {
	var out strings.Builder
	open := ""
	for line := range strings.Lines(text) {
		fence := fenceLine.FindStringSubmatch(line)
		switch {
		case open == "" && fence != nil:
			open = fence[1]
		case open == "":
			out.WriteString(line)
		case strings.HasPrefix(strings.TrimSpace(line), open):
			open = ""
		}
	}
	return out.String()
}

// markdown returns the Markdown pages of the repository.
func markdown(t *testing.T) []string {
	t.Helper()
	files, err := repository(false)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(name string) bool { return path.Ext(name) != ".md" })
}
