// Command release makes the files of a release: programs for all platforms, archives, packages, checksums, the list of what is
// in them, and a statement about how they were made. Two runs from one commit make the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes the release that the arguments describe.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	version := flags.String("version", "", "the version, such as v0.1.0")
	dir := flags.String("out", "dist", "where the files go; if all is well, they replace what is there")
	names := flags.String("platforms", strings.Join(platformNames(), ","), "the platforms, separated by commas")
	key := flags.String("key", "", "a file with an Ed25519 key in PEM form (PKCS #8) that signs the checksums and the statement")
	base := flags.String("base", "https://github.com/belay-run/belay/releases/download", "where people fetch releases from")
	twice := flags.Bool("twice", true, "build all programs a second time, from a copy of the source and with an empty cache, and compare")
	if err := flags.Parse(args); err != nil {
		return err
	}
	platforms, err := parsePlatforms(*names)
	if err != nil {
		return err
	}
	r := &release{root: ".", base: *base, platforms: platforms, log: out}
	if err := r.setVersion(*version); err != nil {
		return err
	}
	if *key != "" {
		if r.key, err = readKey(*key); err != nil {
			return err
		}
	}
	if err := r.readCommit(ctx); err != nil {
		return err
	}
	if err := r.check(ctx); err != nil {
		return err
	}
	return r.replace(*dir, func() error {
		programs, err := r.build(ctx)
		if err != nil {
			return err
		}
		if *twice {
			if err := r.compare(ctx, programs); err != nil {
				return err
			}
		}
		if err := r.pack(ctx, programs); err != nil {
			return err
		}
		return r.try(ctx)
	})
}

// replace calls fill, which makes a new directory. If it succeeds, the new directory takes the place of the old one.
func (r *release) replace(dir string, fill func() error) error {
	r.out = filepath.Clean(dir) + ".new"
	defer removeAll(r.out)
	if err := errors.Join(os.RemoveAll(r.out), fill()); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(dir), os.Rename(r.out, dir))
}
