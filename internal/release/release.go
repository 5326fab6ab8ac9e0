package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// A release is one version of Belay, and where its files go.
type release struct {
	root      string    // the repository
	out       string    // the directory for the files
	base      string    // the address of all releases; the files of one are below its tag
	version   string    // without the v: 0.1.0
	commit    string    // the full commit
	time      time.Time // of the commit; the only time that is in the files
	platforms []platform
	key       ed25519.PrivateKey // nil: nothing is signed
	log       io.Writer

	// untrimmed leaves out -trimpath. Tests set it, because with it the go command compiles every package anew, which takes
	// minutes where the build cache has only what the tests use.
	untrimmed bool
}

// A platform is an operating system and a processor, in Go's words.
type platform struct{ system, arch string }

func (p platform) String() string { return p.system + "/" + p.arch }

// all are the platforms of a release. The first is the one that is tried, if it is that of this machine.
var all = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}}

func platformNames() []string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.String()
	}
	return names
}

// parsePlatforms reads a list such as "linux/amd64,darwin/arm64".
func parsePlatforms(list string) ([]platform, error) {
	var found []platform
	for name := range strings.SplitSeq(list, ",") {
		i := slices.Index(platformNames(), name)
		if i < 0 {
			return nil, fmt.Errorf("no platform %q: choose from %s", name, strings.Join(platformNames(), ", "))
		}
		if !slices.Contains(found, all[i]) {
			found = append(found, all[i])
		}
	}
	return found, nil
}

// semantic is a version with a v, as in semver.org. Build metadata is left out: a commit has one version.
var semantic = lazyregexp.New(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

func (r *release) setVersion(version string) error {
	if !semantic.MatchString(version) {
		return fmt.Errorf("%q is no version: write one such as v0.1.0 or v0.2.0-rc.1", version)
	}
	r.version = version[1:]
	return nil
}

// tag returns the version with the v.
func (r *release) tag() string { return "v" + r.version }

// address returns where people fetch a file of this release from.
func (r *release) address(name string) string { return r.base + "/" + r.tag() + "/" + name }

// readCommit reads which commit is released. Everything must be committed: otherwise nobody could build the same again.
func (r *release) readCommit(ctx context.Context) error {
	changed, err := r.git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("these files are not committed: commit or remove them first\n%s", changed)
	}
	line, err := r.git(ctx, "log", "-1", "--format=%H %cI")
	if err != nil {
		return err
	}
	commit, when, _ := strings.Cut(line, " ")
	r.commit = commit
	r.time, err = time.Parse(time.RFC3339, when)
	r.time = r.time.UTC()
	return err
}

func (r *release) git(ctx context.Context, args ...string) (string, error) {
	out, err := r.command(ctx, r.root, nil, "git", args...)
	return strings.TrimSpace(string(out)), err
}

// command runs a program with more variables. It returns what the program prints to standard output.
func (r *release) command(ctx context.Context, dir string, more []string, name string, args ...string) ([]byte, error) {
	return execute(ctx, dir, append(os.Environ(), more...), name, args...)
}

// execute runs a program with these variables and no others. It returns what the program prints to standard output.
func execute(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, complaint.String())
	}
	return out, nil
}

// write writes a file of the release.
func (r *release) write(name string, content []byte) error {
	fmt.Fprintf(r.log, "%s %d bytes\n", name, len(content))
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

// errLarge says that a program is larger than promised.
var errLarge = errors.New("the program is too large")
