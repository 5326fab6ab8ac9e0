package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// check returns an error if this commit cannot become this version.
func (r *release) check(ctx context.Context) error {
	return errors.Join(r.checkTag(ctx), r.checkGo(ctx), r.checkPages())
}

// checkTag compares the tag of the version with HEAD: the statement names the tag as the source. The tag may be made later.
func (r *release) checkTag(ctx context.Context) error {
	tag, err := r.git(ctx, "tag", "--list", r.tag())
	if err != nil || tag == "" {
		return err
	}
	commit, err := r.git(ctx, "rev-parse", "refs/tags/"+r.tag()+"^{commit}")
	if err == nil && commit != r.commit {
		err = fmt.Errorf("the tag %s is the commit %.12s, and HEAD is %.12s: run git checkout %s, or choose a version without a tag", r.tag(), commit, r.commit, r.tag())
	}
	return err
}

// workflow is the file whose version of Go makes the published programs.
const workflow = ".github/workflows/release.yml"

var pinned = lazyregexp.New(`(?m)^ +go-version: (\S+)`)

// checkGo compares the Go version with that of the workflow: another compiler makes other programs.
func (r *release) checkGo(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(workflow)))
	if err != nil {
		return err
	}
	want := pinned.FindStringSubmatch(string(text))
	if want == nil {
		return fmt.Errorf("%s names no go-version: write one such as 1.26.8", workflow)
	}
	version, err := r.command(ctx, r.root, nil, "go", "env", "GOVERSION")
	if err != nil {
		return err
	}
	if here := strings.TrimSpace(string(version)); here != "go"+want[1] {
		return fmt.Errorf("this is %s, and %s makes releases with Go %s: run GOTOOLCHAIN=go%s make release", here, workflow, want[1], want[1])
	}
	return nil
}

// noRelease is what pages say before the first release.
var noRelease = lazyregexp.New(`(?i)no release yet`)

// checkPages returns an error if the changelog does not have the version, if SECURITY.md does not have the key, or if a page says that
// there is no release. A candidate
// such as v0.1.0-rc.1 is made while the pages still say so.
func (r *release) checkPages() error {
	if strings.Contains(r.version, "-") {
		return nil
	}
	var problems []error
	log, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	named := false
	for line := range strings.Lines(string(log)) {
		rest, ok := strings.CutPrefix(line, "## "+r.tag())
		named = named || ok && strings.IndexAny(rest, "0123456789-") != 0 // v0.1.1 is not v0.1.10
	}
	if !named {
		problems = append(problems, fmt.Errorf("CHANGELOG.md has no heading %q: write one with the date below \"Unreleased\"", "## "+r.tag()))
	}
	if r.key != nil {
		text, err := os.ReadFile(filepath.Join(r.root, "SECURITY.md"))
		if err != nil {
			return err
		}
		mark, err := r.fingerprint()
		if err != nil {
			return err
		}
		if !bytes.Contains(text, []byte(mark)) {
			problems = append(problems, fmt.Errorf("SECURITY.md does not name the key: add its fingerprint %s", mark))
		}
	}
	for _, dir := range []string{"", "docs"} {
		names, err := filepath.Glob(filepath.Join(r.root, dir, "*.md"))
		if err != nil {
			return err
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for i, line := range bytes.Split(text, []byte("\n")) {
				if noRelease.Match(line) {
					problems = append(problems, fmt.Errorf("%s:%d says that there is no release yet: say how to get this one", filepath.ToSlash(filepath.Join(dir, filepath.Base(name))), i+1))
				}
			}
		}
	}
	return errors.Join(problems...)
}

// errTrace says that a program has a path of this machine in it.
var errTrace = errors.New("the program has a path of this machine in it")

// checkTraces searches a program for the paths of its source files, and of modules: -trimpath leaves none.
func (r *release) checkTraces(ctx context.Context, p program) error {
	root, err := filepath.Abs(r.root)
	if err != nil {
		return err
	}
	modules, err := r.command(ctx, r.root, nil, "go", "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	for _, dir := range []string{filepath.Join(root, "internal"), filepath.Join(root, "cmd"), filepath.Join(strings.TrimSpace(string(modules)), "github.com")} {
		if bytes.Contains(p.content, []byte(dir+string(filepath.Separator))) {
			return fmt.Errorf("%w: %s has %s", errTrace, p.platform, dir)
		}
	}
	return nil
}
