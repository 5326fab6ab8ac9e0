package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/licenses"
)

// pack writes all files of the release.
func (r *release) pack(ctx context.Context, programs []program) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	modules, err := licenses.Of(ctx, r.root, "./cmd/belay")
	if err != nil {
		return err
	}
	extras, err := r.extras(modules)
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	archives := map[string]string{} // checksums by platform, for the formula
	for _, p := range programs {
		archive, err := r.archive(p, extras)
		if err != nil {
			return err
		}
		files[r.archiveFile(p.platform)] = archive
		archives[p.String()] = sum(archive)
		if files[r.billFile(p.platform)], err = r.bill(p, modules); err != nil {
			return err
		}
		if p.system == "linux" {
			if files[r.debianFile(p.platform)], err = r.debian(p, extras); err != nil {
				return err
			}
		}
	}
	if files["base.tar.gz"], err = r.containerBase(); err != nil {
		return err
	}
	texts := map[string]string{"install.sh": installTemplate, "Containerfile": containerTemplate}
	if len(programs) == len(all) {
		texts["belay.rb"] = formulaTemplate // it names the archives of four platforms
	}
	for name, text := range texts {
		if files[name], err = r.fill(name, text, archives); err != nil {
			return err
		}
	}
	if err := r.attest(ctx, files); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := r.write(name, files[name]); err != nil {
			return err
		}
	}
	return os.Chmod(filepath.Join(r.out, "install.sh"), 0o755)
}

// attest adds the statement about all files, and the checksums of all files. With a key it adds the signatures of both. The checksums
// do not list the signatures: a release has the same checksums with a key and without one.
func (r *release) attest(ctx context.Context, files map[string][]byte) error {
	sums := map[string]string{}
	for name, content := range files {
		sums[name] = sum(content)
	}
	text, err := r.provenance(ctx, sums)
	if err != nil {
		return err
	}
	files["provenance.json"] = text
	sums["provenance.json"] = sum(text)
	var list bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&list, "%s  %s\n", sums[name], name)
	}
	files["checksums.txt"] = list.Bytes()
	if r.key == nil {
		return nil
	}
	if files["provenance.dsse.json"], err = r.sealed(text); err != nil {
		return err
	}
	files["checksums.txt.sig"] = ed25519.Sign(r.key, list.Bytes())
	files["belay-release.pub"], err = r.publicKey()
	return err
}

// relative is a link to another file of the repository, which is not beside the program.
var relative = lazyregexp.New(`\]\(([^:#)][^:)]*)\)`)

// extras returns what belongs to a program on every platform.
func (r *release) extras(modules []licenses.Module) (tree, error) {
	files := tree{"THIRD_PARTY.txt": {content: []byte(licenses.Texts(modules))}}
	readme, err := r.fill("README.md", readmeTemplate, nil)
	if err != nil {
		return nil, err
	}
	files["README.md"] = entry{content: readme}
	for _, name := range []string{"LICENSE", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, err
		}
		files[name] = entry{content: []byte(relative.ReplaceAllString(string(text), "](https://github.com/belay-run/belay/blob/"+r.tag()+"/$1)"))}
	}
	manual, err := cli.Manual(r.version, r.time)
	if err != nil {
		return nil, err
	}
	for name, text := range manual {
		files[name] = entry{content: text}
	}
	return files, nil
}
