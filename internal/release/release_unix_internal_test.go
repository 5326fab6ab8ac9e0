//go:build unix

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// newRelease returns a release of this repository for the machine's platform.
func newRelease(t *testing.T, version string) *release {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{
		root: filepath.Join("..", ".."), out: filepath.Join(t.TempDir(), "dist"), base: "https://example.com/download",
		commit: "0123456789abcdef0123456789abcdef01234567", time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC),
		platforms: []platform{{runtime.GOOS, runtime.GOARCH}}, key: key, log: io.Discard, untrimmed: true,
	}
	if err := r.setVersion(version); err != nil {
		t.Fatal(err)
	}
	return r
}

// A release of this platform is built, packed and installed from its archive into an empty directory, where the tour and a session
// run. Packing again gives the same bytes.
//
// SPEC
func TestRelease(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the packages are tried on Linux")
	}
	ctx := t.Context()
	r := newRelease(t, "v1.2.3-rc.1")
	programs, err := r.build(ctx) // refuses more than 60 MB
	if err != nil {
		t.Fatal(err)
	}
	if err := r.pack(ctx, programs); err != nil {
		t.Fatal(err)
	}
	if err := r.try(ctx); err != nil {
		t.Fatal(err)
	}
	again := *r
	again.out = filepath.Join(t.TempDir(), "elsewhere")
	if err := again.pack(ctx, programs); err != nil {
		t.Fatal(err)
	}
	first, second := contents(t, r.out), contents(t, again.out)
	for name := range first {
		if !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s differs the second time", name)
		}
	}
	if len(first) != len(second) || len(first) != 11 {
		t.Errorf("the files are %v, then %v", slices.Sorted(maps.Keys(first)), slices.Sorted(maps.Keys(second)))
	}
	here := r.platforms[0]
	for name, test := range map[string]func(t *testing.T){
		"checksums":         func(t *testing.T) { testChecksums(t, r, first) },
		"statement":         func(t *testing.T) { testStatement(t, r, first) },
		"bill of materials": func(t *testing.T) { testBill(t, programs[0], first[r.billFile(here)]) },
		"Debian package":    func(t *testing.T) { testDebian(t, r, programs[0]) },
		"container":         func(t *testing.T) { testContainer(t, r, first) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
	t.Run("no path of this machine", func(t *testing.T) {
		t.Parallel()
		root, err := filepath.Abs(r.root)
		if err != nil {
			t.Fatal(err)
		}
		opened := t.TempDir()
		unpack(t, first[r.archiveFile(here)], opened)
		files := maps.Clone(first)
		dir := filepath.Join(opened, r.archiveName(here))
		maps.Copy(files, contents(t, dir))
		maps.Copy(files, contents(t, filepath.Join(dir, "man")))
		maps.Copy(files, contents(t, filepath.Join(dir, "completions")))
		if !bytes.Contains(files[here.file()], []byte(root)) {
			t.Error("the program that is built without -trimpath has no path in it: this test looks for the wrong thing")
		}
		delete(files, here.file()) // TestBuildHasNoTrace is about the program
		for name, content := range files {
			if bytes.Contains(content, []byte(root)) {
				t.Errorf("%s has the path of the source in it", name)
			}
		}
		for _, name := range []string{"README.md", "CHANGELOG.md"} {
			if text := string(files[name]); !strings.Contains(text, "https://github.com/belay-run/belay/blob/v1.2.3-rc.1/docs/") || relative.MatchString(text) {
				t.Errorf("%s in the archive has links to files that are not there:\n%s", name, relative.FindString(text))
			}
		}
	})
}

// Trying a release leaves the stores, settings and sockets of the person who makes it alone: no variable names them to the program.
//
// SPEC
func TestTryIsAlone(t *testing.T) { //nolint:paralleltest // it sets variables of the process
	r := newRelease(t, "v0.1.0")
	mine := t.TempDir()
	for _, name := range []string{"HOME", "BELAY_STORE", "BELAY_MEMORY_FILE", "BELAY_HOOKS_PATHS", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "PREFIX", "INSTALL_FROM"} {
		t.Setenv(name, filepath.Join(mine, name))
	}
	script, err := r.fill("install.sh", installTemplate, nil)
	if err != nil {
		t.Fatal(err)
	}
	program := program{r.platforms[0], []byte(`#!/bin/sh
if env | grep "` + mine + `" >&2; then exit 1; fi
case $BELAY_STORE in "${HOME%/home}"/*) ;; *) echo "the store is $BELAY_STORE" >&2; exit 1;; esac
case $BELAY_MEMORY_FILE in "${HOME%/home}"/*) ;; *) echo "the memory is $BELAY_MEMORY_FILE" >&2; exit 1;; esac
case $1 in
	version) echo "belay ` + r.tag() + " " + r.commit[:12] + `";;
	demo) echo "== Timeline: ";;
	run) echo "I listed the files.";;
	show) echo "What is here?";;
	uninstall) rm -r "$HOME/.local"; echo "program  $0";;
esac
`)}
	archive, err := r.archive(program, tree{"man/belay.1": {}, "completions/belay.bash": {}, "completions/_belay": {}, "completions/belay.fish": {}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		t.Fatal(err)
	}
	name := r.archiveFile(program.platform)
	for file, content := range map[string][]byte{"install.sh": script, name: archive, "checksums.txt": []byte(sum(archive) + "  " + name + "\n")} {
		if err := r.write(file, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.try(t.Context()); err != nil {
		t.Error(err)
	}
}

// contents returns the files of a directory, without those in directories below it.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// openssl checks a signature with another program than the one that made it.
func openssl(t *testing.T, public, message, sig []byte) error {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{"key": public, "message": message, "sig": sig} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "key", "-rawin", "-in", "message", "-sigfile", "sig")
	cmd.Dir = dir
	_, err := cmd.CombinedOutput()
	return missing("openssl", "openssl", err)
}

// signatures are the files that a release has only with a key.
var signatures = []string{"checksums.txt.sig", "provenance.dsse.json", "belay-release.pub"}

// A release that is built without a key has the same files as one with a key, but for the signatures: the maintainer compares the
// checksums of the workflow, which has no key, with those of a build that has one.
//
// SPEC Q-01
func TestKeyChangesNoFile(t *testing.T) {
	t.Parallel()
	signed := newRelease(t, "v0.1.0")
	bare := *signed
	bare.key = nil
	made := map[string][]byte{"install.sh": []byte("text"), "belay.rb": []byte("formula")}
	with, without := maps.Clone(made), maps.Clone(made)
	for r, files := range map[*release]map[string][]byte{signed: with, &bare: without} {
		if err := r.attest(t.Context(), files); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range signatures {
		if with[name] == nil {
			t.Errorf("with a key there is no %s", name)
		}
		delete(with, name)
	}
	if !maps.EqualFunc(with, without, bytes.Equal) {
		t.Errorf("with a key: %q, without: %q", with, without)
	}
}

func testChecksums(t *testing.T, r *release, files map[string][]byte) {
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--strict", "-c", "checksums.txt")
	cmd.Dir = r.out
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
	list := string(files["checksums.txt"])
	for name := range files {
		signs := name == "checksums.txt" || slices.Contains(signatures, name)
		if strings.Contains(list, "  "+name+"\n") == signs {
			t.Errorf("checksums.txt and %s: listed is %t", name, !signs)
		}
	}
	public, sig := files["belay-release.pub"], files["checksums.txt.sig"]
	block, _ := pem.Decode(public)
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if !ed25519.Verify(key.(ed25519.PublicKey), files["checksums.txt"], sig) {
		t.Error("the signature of the checksums is wrong")
	}
	if err := openssl(t, public, files["checksums.txt"], sig); err != nil {
		t.Errorf("openssl does not accept the signature: %v", err)
	}
	if err := openssl(t, public, append(slices.Clone(files["checksums.txt"]), '\n'), sig); err == nil {
		t.Error("openssl accepts the signature of another text")
	}
}

func testStatement(t *testing.T, r *release, files map[string][]byte) {
	var sealed envelope
	if err := json.Unmarshal(files["provenance.dsse.json"], &sealed); err != nil {
		t.Fatal(err)
	}
	text, err := base64.StdEncoding.DecodeString(sealed.Payload)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := base64.StdEncoding.DecodeString(sealed.Signatures[0].Sig)
	if err != nil {
		t.Fatal(err)
	}
	if !ed25519.Verify(r.key.Public().(ed25519.PublicKey), preAuth("application/vnd.in-toto+json", text), sig) {
		t.Error("the signature of the statement is wrong")
	}
	if !bytes.Equal(text, files["provenance.json"]) {
		t.Error("the signed statement is another than provenance.json")
	}
	var doc statement
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, s := range doc.Subject {
		said[s.Name] = s.Digest["sha256"]
	}
	for name, content := range files {
		if name == "checksums.txt" || name == "provenance.json" || slices.Contains(signatures, name) {
			continue
		}
		if said[name] != sum(content) {
			t.Errorf("the statement says %q about %s", said[name], name)
		}
	}
	if got := doc.Predicate.Definition.Dependencies[0]; got.URI != repository+"@v1.2.3-rc.1" || got.Digest["gitCommit"] != r.commit {
		t.Errorf("the source is %+v", got)
	}
}

func testBill(t *testing.T, p program, text []byte) {
	var doc bill
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Metadata.Component.Hashes[0].Content != sum(p.content) {
		t.Error("the bill is about another program")
	}
	got := map[string]component{}
	for _, c := range doc.Components {
		got[c.Name] = c
	}
	for name, license := range map[string]string{"github.com/spf13/cobra": "Apache-2.0", "go.yaml.in/yaml/v3": "Apache-2.0 AND MIT", "Go standard library": "BSD-3-Clause"} {
		c := got[name]
		if len(c.Licenses) != 1 || c.Licenses[0].Expression != license || c.Version == "" || !strings.HasSuffix(c.PURL, "@"+c.Version) {
			t.Errorf("%s in the bill: %+v", name, c)
		}
	}
	if _, ok := got["github.com/google/go-cmp"]; ok {
		t.Error("the bill has a module that only tests use")
	}
}

func testDebian(t *testing.T, r *release, p program) {
	file := filepath.Join(r.out, r.debianFile(p.platform))
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), missing(name, "dpkg", err), out)
		}
		return string(out)
	}
	if got := run("dpkg-deb", "--field", file, "Package", "Version", "Architecture"); got != "Package: belay\nVersion: 1.2.3~rc.1\nArchitecture: "+p.arch+"\n" {
		t.Errorf("the fields are %q", got)
	}
	if _, err := exec.CommandContext(t.Context(), "dpkg", "--compare-versions", "1.2.3~rc.1", "lt", "1.2.3").CombinedOutput(); err != nil {
		t.Error("dpkg takes the candidate for newer than the version")
	}
	dir := t.TempDir()
	run("dpkg-deb", "--raw-extract", file, dir)
	program, err := os.ReadFile(filepath.Join(dir, "usr", "bin", "belay"))
	if err != nil || !bytes.Equal(program, p.content) {
		t.Errorf("the program in the package differs: %v", err)
	}
	sums, err := os.ReadFile(filepath.Join(dir, "DEBIAN", "md5sums"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "md5sum", "--strict", "--quiet", "-c", "-")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(sums)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("md5sum: %v\n%s", err, out)
	}
	for _, name := range []string{"usr/share/man/man1/belay-run.1.gz", "usr/share/bash-completion/completions/belay", "usr/share/doc/belay/copyright", "usr/share/doc/belay/THIRD_PARTY.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if !strings.HasPrefix(run(filepath.Join(dir, "usr", "bin", "belay"), "version"), "belay v1.2.3-rc.1 0123456789ab ") {
		t.Error("the program in the package says another version")
	}
}

// missing adds to an error of a program that does not exist what to install. Nothing is left out where it is missing: a check that
// did not run would look like one that passed.
func missing(program, pkg string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: make packages installs it, or run: scripts/ensure-debian '%s --version' %s", err, program, pkg)
	}
	return err
}

// unpack unpacks a .tar.gz, with its modes.
func unpack(t *testing.T, content []byte, dir string) {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = errors.Join(os.MkdirAll(name, 0o755), os.Chmod(name, h.FileInfo().Mode()))
		} else {
			var text []byte
			if text, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(name, text, h.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A build leaves no trace of the directory and the time: the same source in two places gives the same bytes. With the whole source
// that takes minutes; make release does it, with an empty cache.
//
// SPEC Q-01
func TestBuildIsReproducible(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "v0.1.0")
	r.untrimmed = false
	var programs [][]byte
	for _, name := range []string{"a", "another-place"} {
		dir := filepath.Join(t.TempDir(), name)
		writeSource(t, dir)
		content, err := r.compile(t.Context(), dir, filepath.Join(dir, "belay"), r.platforms[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, content)
		if bytes.Contains(content, []byte(dir)) {
			t.Errorf("the program has its directory %s in it", dir)
		}
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("the same source in two places gives two programs")
	}
	if !bytes.Contains(programs[0], []byte("v0.1.0 "+r.commit+" 2026-01-02T03:04:06Z")) {
		t.Error("the program does not know its version")
	}
}

// writeSource writes a small module that is built as Belay is.
func writeSource(t *testing.T, dir string) {
	t.Helper()
	for file, text := range map[string]string{
		"go.mod":              "module github.com/belay-run/belay\n\ngo 1.26\n",
		"internal/cli/cli.go": "package cli\n\nvar stamp string\n\nfunc Main() { println(stamp); panic(\"here\") }\n",
		"cmd/belay/main.go":   "package main\n\nimport \"github.com/belay-run/belay/internal/cli\"\n\nfunc main() { cli.Main() }\n",
	} {
		file = filepath.Join(dir, filepath.FromSlash(file))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// Settings of the go command on this machine, in variables and in the file of "go env -w", do not change the program. Where modules
// are is kept.
//
// SPEC Q-01
func TestBuildIgnoresSettings(t *testing.T) {
	r := newRelease(t, "v0.1.0")
	dir := t.TempDir()
	writeSource(t, dir)
	build := func() []byte {
		t.Helper()
		content, err := r.compile(t.Context(), dir, filepath.Join(dir, "belay"), r.platforms[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	plain := build()
	t.Setenv("GOEXPERIMENT", "arenas")
	t.Setenv("GOFIPS140", "latest")
	if !bytes.Equal(build(), plain) {
		t.Error("variables change the program")
	}
	settings := filepath.Join(dir, "env")
	if err := os.WriteFile(settings, []byte("GOEXPERIMENT=arenas\nGOFIPS140=latest\nGOPROXY=https://proxy.example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"GOENV": settings, "GOEXPERIMENT": "", "GOFIPS140": "", "GOPROXY": ""} {
		t.Setenv(name, value)
	}
	if !bytes.Equal(build(), plain) {
		t.Error("settings in a file change the program")
	}
	if places, err := r.places(t.Context(), dir); err != nil || !slices.Contains(places, "GOPROXY=https://proxy.example.com") {
		t.Errorf("the places are %q, %v", places, err)
	}
}

// The archives depend on nothing but the files in them and the time of the commit. Programs are executable in them.
func TestArchives(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "v0.1.0")
	extras := tree{"man/belay.1": {content: []byte("page")}, "LICENSE": {content: []byte("text")}}
	for _, p := range all {
		p := program{p, []byte("program")}
		one, err := r.archive(p, extras)
		if err != nil {
			t.Fatal(err)
		}
		two, err := r.archive(p, maps.Clone(extras))
		if err != nil || !bytes.Equal(one, two) {
			t.Errorf("%s: the archive differs the second time: %v", p.platform, err)
		}
		if p.system != "windows" {
			dir := t.TempDir()
			unpack(t, one, dir)
			info, err := os.Stat(filepath.Join(dir, r.archiveName(p.platform), "belay"))
			if err != nil || info.Mode().Perm()&0o111 == 0 {
				t.Errorf("%s: the program is %v, %v", p.platform, info, err)
			}
			continue
		}
		opened, err := zip.NewReader(bytes.NewReader(one), int64(len(one)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := opened.Open(r.archiveName(p.platform) + "/belay.exe"); err != nil {
			t.Error(err)
		}
	}
}

// The formula names archives that a release has, with their checksums.
func TestFormula(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "v0.1.0")
	sums := map[string]string{}
	for _, p := range all {
		sums[p.String()] = sum([]byte(p.String()))
	}
	text, err := r.fill("belay.rb", formulaTemplate, sums)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.system == "windows" {
			continue
		}
		want := "url \"" + r.address(r.archiveFile(p)) + "\"\n      sha256 \"" + sums[p.String()] + "\"\n"
		if !strings.Contains(string(text), want) {
			t.Errorf("the formula lacks %s", want)
		}
	}
	delete(sums, "darwin/arm64")
	if _, err := r.fill("belay.rb", formulaTemplate, sums); err == nil || !strings.Contains(err.Error(), "@SHA256_DARWIN_ARM64@") {
		t.Errorf("a formula without a checksum: %v", err)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "is no version"},
		{[]string{"-version", "0.1.0"}, "is no version"},
		{[]string{"-version", "v0.1"}, "is no version"},
		{[]string{"-version", "v0.1.0+mine"}, "is no version"},
		{[]string{"-version", "v0.1.0", "-platforms", "linux/386"}, "no platform"},
		{[]string{"-version", "v0.1.0", "-key", "main.go"}, "is no private key"},
	} {
		if err := run(t.Context(), test.args, io.Discard); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.args, err, test.want)
		}
	}
}
