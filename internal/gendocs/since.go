package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/serve"
)

// compare prints what the last release had and this tree has not: names of the Go packages, and parts of the HTTP API. It returns
// an error if there is any, unless it is a Go name and the version to release may change it.
func compare(ctx context.Context, out io.Writer, root, version string) error {
	tag, err := lastRelease(ctx, root, version)
	if err != nil {
		return fmt.Errorf("cannot find the last release: %w", err)
	}
	if tag == "" {
		fmt.Fprintln(out, "there is no earlier release, so nothing can be missing")
		return nil
	}
	names, err := git(ctx, root, "show", tag+":docs/reference/exported.txt")
	if err != nil {
		return err
	}
	now, err := readExported(root)
	if err != nil {
		return err
	}
	older, err := git(ctx, root, "show", tag+":serve/openapi.json")
	if err != nil {
		return err
	}
	newer, err := serve.OpenAPI()
	if err != nil {
		return err
	}
	lost, err := lostOperations([]byte(older), newer)
	if err != nil {
		return err
	}
	gone := removed(strings.Split(names, "\n"), now.lines)
	for _, line := range append(gone, lost...) {
		fmt.Fprintln(out, line)
	}
	switch {
	case len(lost) > 0:
		return fmt.Errorf("%d parts of the HTTP API of %s are gone or have another type: no version may do that (docs/compatibility.md)", len(lost), tag)
	case len(gone) > 0 && mayChange(tag, version):
		fmt.Fprintf(out, "%d names of %s are gone or have another type: %s may do that; name each in the changelog\n", len(gone), tag, version)
	case len(gone) > 0:
		return fmt.Errorf("%d names of %s are gone or have another type: keep them with Deprecated:, or, if the version may change them (docs/compatibility.md), name each in the changelog and run make api-check VERSION=v…", len(gone), tag)
	}
	return nil
}

// removed returns the lines that an older list has and a newer one has not.
func removed(older, newer []string) []string {
	have := make(map[string]bool)
	for _, line := range newer {
		have[line] = true
	}
	var gone []string
	for _, line := range older {
		if !have[line] {
			gone = append(gone, line)
		}
	}
	return gone
}

// heading is the heading of a version in the changelog.
var heading = lazyregexp.New(`^## (v\d[0-9A-Za-z.-]*)`)

// lastRelease returns the tag of the last release before HEAD, or "" if there is none. A candidate such as v0.2.0-rc.1 is no release.
// A clone that may lack the tag is an error: nothing would be compared, and that looks like success.
func lastRelease(ctx context.Context, root, version string) (string, error) {
	shallow, err := git(ctx, root, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return "", err
	}
	if shallow != "false" {
		return "", errors.New("this clone has only a part of the history: run git fetch --unshallow --tags")
	}
	tags, err := git(ctx, root, "tag", "--list", "v[0-9]*", "--no-contains", "HEAD")
	if err != nil {
		return "", err
	}
	for tag := range strings.SplitSeq(tags, "\n") {
		if tag != "" && !strings.Contains(tag, "-") {
			return git(ctx, root, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "--exclude", "*-*", "HEAD^")
		}
	}
	here, err := git(ctx, root, "tag", "--points-at", "HEAD")
	if err != nil {
		return "", err
	}
	log, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	for i, line := range strings.Split(string(log), "\n") {
		if m := heading.FindStringSubmatch(line); len(m) == 2 && m[1] != version && !strings.Contains("\n"+here+"\n", "\n"+m[1]+"\n") {
			return "", fmt.Errorf("CHANGELOG.md:%d names %s, which has no tag here: run git fetch --tags, or, before you tag it, make api-check VERSION=%s", i+1, m[1], m[1])
		}
	}
	return "", nil
}

// mayChange reports whether a version may change Go packages since an older one: a new major version, or a minor one before v1.
func mayChange(older, version string) bool {
	before, now := numbers(older), numbers(version)
	return now[0] > before[0] || now[0] == 0 && before[0] == 0 && now[1] > before[1]
}

// numbers returns the major and the minor number of a version.
func numbers(version string) (n [2]int) {
	for i, part := range strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3) {
		if i < len(n) {
			n[i], _ = strconv.Atoi(part) // no number: no version may change anything since then
		}
	}
	return n
}

// git runs git in the repository, and returns what it prints.
func git(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // fixed commands, and the tag that git has found
	cmd.Dir = root
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
