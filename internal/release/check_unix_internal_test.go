//go:build unix

package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newRepository returns a release of a small repository with one commit.
func newRepository(t *testing.T, version string) *release {
	t.Helper()
	r := newRelease(t, version)
	r.root = t.TempDir()
	if _, err := r.git(t.Context(), "init", "-q"); err != nil {
		t.Fatal(err)
	}
	commit(t, r)
	return r
}

// commit commits all that is there, and reads the commit.
func commit(t *testing.T, r *release) {
	t.Helper()
	for _, args := range [][]string{{"add", "--all"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "change"}} {
		if _, err := r.git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.readCommit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// put writes a file of the repository.
func put(t *testing.T, r *release, name, text string) {
	t.Helper()
	file := filepath.Join(r.root, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// want checks that an error has all of these words, or that there is no error.
func want(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if (err == nil) != (len(words) == 0) {
		t.Errorf("%s: %v, want %q", what, err, words)
	}
	for _, word := range words {
		if err != nil && !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want %q", what, err, word)
		}
	}
}

// What is not committed is not released.
func TestUncommitted(t *testing.T) {
	t.Parallel()
	r := newRepository(t, "v0.1.0")
	if len(r.commit) != 40 || r.time.IsZero() {
		t.Errorf("a clean tree: %+v", r)
	}
	put(t, r, "new.go", "package a\n")
	want(t, "a new file", r.readCommit(t.Context()), "new.go")
}

// The statement says that the files were made from the tag. So the tag, if there is one, must be the commit.
//
// SPEC Q-01
func TestCheckTag(t *testing.T) {
	t.Parallel()
	r := newRepository(t, "v0.1.0")
	want(t, "no tag", r.checkTag(t.Context()))
	if _, err := r.git(t.Context(), "-c", "user.name=a", "-c", "user.email=a@example.com", "tag", "-a", "-m", "tag", "v0.1.0"); err != nil {
		t.Fatal(err)
	}
	want(t, "the tag is here", r.checkTag(t.Context()))
	commit(t, r)
	want(t, "the tag is elsewhere", r.checkTag(t.Context()), "the tag v0.1.0 is the commit ", "git checkout v0.1.0")
	r.root = t.TempDir()
	want(t, "no repository", r.checkTag(t.Context()), "git tag")
}

// Another compiler makes other programs, which nobody could compare with those of the workflow.
//
// SPEC Q-01
func TestCheckGo(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "v0.1.0")
	version, err := r.command(t.Context(), r.root, nil, "go", "env", "GOVERSION")
	if err != nil {
		t.Fatal(err)
	}
	r.root = t.TempDir()
	for line, words := range map[string][]string{
		"          go-version: " + strings.TrimPrefix(strings.TrimSpace(string(version)), "go") + " # why": nil,
		"          go-version: 1.2.3 # why": {workflow, "with Go 1.2.3", "GOTOOLCHAIN=go1.2.3"},
		"":                                  {workflow, "no go-version"},
	} {
		put(t, r, workflow, "jobs:\n"+line+"\n")
		want(t, line, r.checkGo(t.Context()), words...)
	}
}

// The pages of a version know that there is a release. A candidate needs no change of them.
//
// SPEC Q-01
func TestCheckPages(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "v0.1.0")
	r.root = t.TempDir()
	put(t, r, "CHANGELOG.md", "# Changelog\n\nThere is no release yet.\n\n## Unreleased\n\n## v0.1.01\n\n## v0.1.0-rc.1\n")
	put(t, r, "README.md", "# Belay\n")
	put(t, r, "SECURITY.md", "# Security\n")
	mark, err := r.fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	put(t, r, "docs/install.md", "# Install\n\nThere is No release yet.\n")
	want(t, "nothing is ready", r.checkPages(), `CHANGELOG.md has no heading "## v0.1.0"`, "CHANGELOG.md:3 says", "docs/install.md:3 says", "SECURITY.md does not name the key: add its fingerprint "+mark)
	put(t, r, "SECURITY.md", "The fingerprint is `"+mark+"`.\n")
	candidate := *r
	candidate.version = "0.1.0-rc.1"
	want(t, "a candidate", candidate.checkPages())
	put(t, r, "CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## v0.1.0, 2 January 2026\n")
	want(t, "one page is left", r.checkPages(), "docs/install.md:3 says")
	put(t, r, "docs/install.md", "# Install\n")
	want(t, "all is ready", r.checkPages())
	want(t, "all checks together", r.check(t.Context()), workflow, "git tag")
}

// A program with the path of a source file, which another machine would not make, is refused.
//
// SPEC Q-01
func TestBuildHasNoTrace(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "v0.1.0")
	r.root, r.untrimmed = t.TempDir(), false
	writeSource(t, r.root)
	if _, err := r.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, r, "internal/cli/trace.go", "package cli\n\nfunc init() { println(\""+filepath.Join(r.root, "internal", "cli", "trace.go")+"\") }\n")
	if _, err := r.build(t.Context()); !errors.Is(err, errTrace) {
		t.Errorf("a program that prints where it was built: %v", err)
	}
}

// All programs are built again, also if only the last one differs.
//
// SPEC Q-01
func TestCompare(t *testing.T) {
	t.Parallel()
	r := newRepository(t, "v0.1.0")
	r.untrimmed = false
	writeSource(t, r.root)
	commit(t, r)
	r.platforms = []platform{all[0], all[1]}
	programs, err := r.build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	programs[1].content = append(programs[1].content, 0)
	if err := r.compare(t.Context(), programs); !errors.Is(err, errDiffers) || !strings.Contains(err.Error(), all[1].String()) {
		t.Errorf("the second program differs: %v", err)
	}
}

// A release that cannot be made leaves the files of the last one.
func TestReplace(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "v0.1.0")
	dir := filepath.Join(t.TempDir(), "dist")
	attempt := func(text string, err error) error {
		return r.replace(dir, func() error {
			if _, gone := os.Stat(r.out); gone == nil {
				t.Error("an earlier attempt is still there")
			}
			return errors.Join(os.Mkdir(r.out, 0o755), r.write(text, nil), err)
		})
	}
	for _, test := range []struct {
		text string
		err  error
		want string
	}{{"first", nil, "first"}, {"second", context.Canceled, "first"}, {"third", nil, "third"}} {
		if err := attempt(test.text, test.err); !errors.Is(err, test.err) {
			t.Errorf("%s: %v", test.text, err)
		}
		if got := contents(t, dir); len(got) != 1 || got[test.want] == nil {
			t.Errorf("after the %s there is %v, want %s", test.text, got, test.want)
		}
		if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 1 {
			t.Errorf("%v is left, %v", left, err)
		}
	}
}

// The commands with which the docs check a release accept its files, and no others.
//
// SPEC Q-01
func TestDocsCheckARelease(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "v0.1.0")
	files := map[string][]byte{"install.sh": []byte("text"), "belay.rb": []byte("formula")}
	if err := r.attest(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(r.root, "docs", "releasing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Check a release\n")
	fences := strings.Split(section, "```")
	if len(fences) < 5 {
		t.Fatal("docs/releasing.md has no commands below \"Check a release\"")
	}
	script := strings.TrimPrefix(fences[1], "sh") + strings.TrimPrefix(fences[3], "sh")
	mark, err := r.fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	forged, err := newRelease(t, "v0.1.0").sealed(files["provenance.json"]) // with another key
	if err != nil {
		t.Fatal(err)
	}
	for changed, content := range map[string][]byte{"": nil, "checksums.txt": []byte("text"), "install.sh": []byte("other"), "provenance.json": []byte("{}"), "provenance.dsse.json": forged} {
		dir, all := t.TempDir(), maps.Clone(files)
		if changed != "" {
			all[changed] = content
		}
		for name, content := range all {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err := missing("openssl", "openssl", err); (err == nil) != (changed == "") || !strings.Contains(string(out), mark) {
			t.Errorf("with another %q: %v\n%s", changed, err, out)
		}
	}
}
