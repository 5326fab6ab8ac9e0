package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A program is the command, built for a platform.
type program struct {
	platform

	content []byte
}

// file returns the name of the program's file.
func (p platform) file() string {
	if p.system == "windows" {
		return "belay.exe"
	}
	return "belay"
}

// most is the size that a stripped program for Linux must not exceed: 60 MB.
const most = 60_000_000

// build builds the command for all platforms.
func (r *release) build(ctx context.Context) ([]program, error) {
	dir, err := os.MkdirTemp("", "belay-release-")
	if err != nil {
		return nil, err
	}
	defer removeAll(dir)
	var programs []program
	for _, p := range r.platforms {
		start := time.Now()
		content, err := r.compile(ctx, r.root, filepath.Join(dir, p.file()), p, nil)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(r.log, "built %s: %.1f MB in %s\n", p, float64(len(content))/1e6, time.Since(start).Round(time.Second))
		if p.system == "linux" && len(content) > most {
			return nil, fmt.Errorf("%w: %s has %d bytes, at most %d are promised (SPEC Q-02)", errLarge, p, len(content), most)
		}
		built := program{p, content}
		if !r.untrimmed {
			if err := r.checkTraces(ctx, built); err != nil {
				return nil, err
			}
		}
		programs = append(programs, built)
	}
	return programs, nil
}

// compile builds the command from the source in a directory, and returns the program. Neither the directory nor the machine nor the
// time leave a trace in it. Where the version comes from is given to the linker, because the go command finds it only in a clone.
func (r *release) compile(ctx context.Context, source, file string, p platform, env []string) ([]byte, error) {
	places, err := r.places(ctx, source)
	if err != nil {
		return nil, err
	}
	env = slices.Concat([]string{
		"GOENV=off", // what "go env -w" wrote
		"GOOS=" + p.system, "GOARCH=" + p.arch, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-buildvcs=false", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off",
	}, places, env)
	if _, err := r.command(ctx, source, env, "go", append([]string{"build", "-o", file}, append(r.flags(), "./cmd/belay")...)...); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// places returns the settings of the go command that change no program: where it keeps and finds modules.
func (r *release) places(ctx context.Context, source string) ([]string, error) {
	names := []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GONOPROXY", "GOSUMDB", "GONOSUMDB", "GOTOOLCHAIN"}
	out, err := r.command(ctx, source, nil, "go", append([]string{"env"}, names...)...)
	if err != nil {
		return nil, err
	}
	values := strings.Split(string(out), "\n") // a line for each
	for i := range names {
		names[i] += "=" + values[i]
	}
	return names, nil
}

// flags returns the flags that make a build reproducible and small, and give it a version.
func (r *release) flags() []string {
	stamp := strings.Join([]string{r.tag(), r.commit, r.time.Format(time.RFC3339)}, " ")
	flags := []string{"-trimpath"}
	if r.untrimmed {
		flags = nil
	}
	return append(flags, "-ldflags", "-s -w -X 'github.com/belay-run/belay/internal/cli.stamp="+stamp+"'")
}

// errDiffers says that a second build made another program.
var errDiffers = errors.New("the second build differs")

// compare builds programs a second time: from a copy of the commit in another directory, and with a build cache that was empty.
func (r *release) compare(ctx context.Context, programs []program) error {
	dir, err := os.MkdirTemp("", "belay-again-")
	if err != nil {
		return err
	}
	defer removeAll(dir)
	source := filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		return err
	}
	tree := filepath.Join(dir, "source.tar")
	if _, err := r.git(ctx, "archive", "--output", tree, "HEAD"); err != nil {
		return err
	}
	if _, err := r.command(ctx, source, nil, "tar", "-xf", tree); err != nil {
		return err
	}
	for _, p := range programs {
		content, err := r.compile(ctx, source, filepath.Join(dir, p.file()), p.platform, []string{"GOCACHE=" + filepath.Join(dir, "cache")})
		if err != nil {
			return err
		}
		if !bytes.Equal(content, p.content) {
			return fmt.Errorf("%w: %s", errDiffers, p.platform)
		}
		fmt.Fprintf(r.log, "built %s again, from a copy and with an empty cache: the same bytes\n", p.platform)
	}
	return nil
}

// removeAll removes a directory, also one with read-only directories in it.
func removeAll(dir string) {
	_ = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(name, 0o755)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
