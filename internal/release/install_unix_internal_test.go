//go:build unix

package main

import (
	"bytes"
	"encoding/pem"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The install script installs nothing that does not match its checksum.
//
// SPEC Q-01
func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "v0.1.0")
	script, err := r.fill("install.sh", installTemplate, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(script, []byte("\n")); n > 70 {
		t.Errorf("the script has %d lines: nobody reads that in a minute", n)
	}
	extras := tree{"man/belay.1": {}, "completions/belay.bash": {}, "completions/_belay": {}, "completions/belay.fish": {}}
	archive, err := r.archive(program{r.platforms[0], []byte("#!/bin/sh\necho installed\n")}, extras)
	if err != nil {
		t.Fatal(err)
	}
	name := r.archiveFile(r.platforms[0])
	right := sum(archive) + "  " + name + "\n"
	changed := slices.Clone(archive)
	changed[len(changed)/2] ^= 1
	for _, test := range []struct {
		rule    string
		archive []byte
		sums    string
		want    string // "": it is installed
	}{
		{"an archive with its checksum is installed", archive, "00  other.tar.gz\n" + right, ""},
		{"a changed archive is refused", changed, right, "does not match its checksum"},
		{"an archive that is not listed is refused", archive, sum(archive) + "  x" + name + ".sig\n", "does not list"},
		{"an empty list is refused", archive, "", "does not list"},
		{"a missing archive is refused", nil, right, "there is no"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			from, home := t.TempDir(), t.TempDir()
			files := map[string][]byte{"install.sh": script, "checksums.txt": []byte(test.sums)}
			if test.archive != nil {
				files[name] = test.archive
			}
			for file, content := range files {
				if err := os.WriteFile(filepath.Join(from, file), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(from, "install.sh"))
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "INSTALL_FROM=" + from}
			out, err := cmd.CombinedOutput()
			installed, _ := filepath.Glob(filepath.Join(home, ".local", "*", "*"))
			if test.want == "" {
				if err != nil || !strings.Contains(string(out), "installed\n") {
					t.Errorf("%v\n%s", err, out)
				}
				return
			}
			if err == nil || !strings.Contains(string(out), test.want) || len(installed) > 0 {
				t.Errorf("%v, %q, and %v is installed; want %q and nothing", err, out, installed, test.want)
			}
		})
	}
}

// A program that cannot be copied is an error, and the old program stays.
//
// SPEC Q-01
func TestInstallSaysThatItFailed(t *testing.T) {
	t.Parallel()
	install := newInstall(t)
	bin := filepath.Join(t.TempDir(), "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "belay"), []byte("#!/bin/sh\necho old\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(bin, "missing", "file"), filepath.Join(bin, "belay.new")); err != nil { // cp cannot write through it
		t.Fatal(err)
	}
	install.Env = append(install.Env, "PREFIX="+filepath.Dir(bin))
	out, err := install.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cannot write "+filepath.Join(bin, "belay")) || strings.Contains(string(out), "belay demo") {
		t.Errorf("%v\n%s", err, out)
	}
	if names := slices.Sorted(maps.Keys(contents(t, bin))); !slices.Equal(names, []string{"belay"}) {
		t.Errorf("%q are left", names)
	}
}

// What is installed for everybody can be read by everybody, whatever the umask of the shell is.
//
// SPEC Q-01
func TestInstallForEverybody(t *testing.T) {
	t.Parallel()
	install := newInstall(t)
	prefix := filepath.Join(t.TempDir(), "local")
	install.Args = []string{"sh", "-c", `umask 077; exec sh "$1"`, "sh", install.Args[1]}
	install.Env = append(install.Env, "PREFIX="+prefix)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, want := range map[string]fs.FileMode{"": 0o755, "bin": 0o755, "bin/belay": 0o755, "share/man/man1": 0o755, "share/man/man1/belay.1": 0o644, "share/zsh/site-functions/_belay": 0o644} {
		info, err := os.Stat(filepath.Join(prefix, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, want %v", name, info.Mode(), want)
		}
	}
}

// The script fetches over TLS, follows the redirections of the forge to another https:// address only, and says what it cannot get.
//
// SPEC Q-01
func TestInstallFromTheNetwork(t *testing.T) {
	t.Parallel()
	local := newInstall(t)
	files := http.FileServer(http.Dir(filepath.Dir(local.Args[1])))
	plain := httptest.NewServer(files)
	t.Cleanup(plain.Close)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch dir, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); dir {
		case "moved":
			http.Redirect(w, r, "/v0.1.0/"+rest, http.StatusFound)
		case "unsafe":
			http.Redirect(w, r, plain.URL+"/"+rest, http.StatusFound)
		case "v0.1.0":
			http.StripPrefix("/v0.1.0", files).ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // a client that does not trust it says so
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rule, from string
		env        []string
		want       string
		fails      bool
	}{
		{"the files are fetched", server.URL + "/v0.1.0", []string{"CURL_CA_BUNDLE=" + authority}, "installed\n", false},
		{"a redirection is followed", server.URL + "/moved", []string{"CURL_CA_BUNDLE=" + authority}, "installed\n", false},
		{"a redirection to http is refused", server.URL + "/unsafe", []string{"CURL_CA_BUNDLE=" + authority}, "cannot fetch", true},
		{"a server that nobody knows is refused", server.URL + "/v0.1.0", nil, "cannot fetch", true},
		{"a file that is not there is named", server.URL + "/v0.2.0", []string{"CURL_CA_BUNDLE=" + authority}, "cannot fetch " + server.URL + "/v0.2.0/checksums.txt", true},
		{"without curl it says so", server.URL + "/v0.1.0", []string{"PATH=" + withoutCurl(t)}, "curl is missing", true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			cmd := exec.CommandContext(t.Context(), local.Path, local.Args[1])
			cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "INSTALL_FROM=" + test.from}, test.env...)
			out, err := cmd.CombinedOutput()
			if (err != nil) != test.fails || !strings.Contains(string(out), test.want) {
				t.Errorf("%v, %q, want %q", err, out, test.want)
			}
			if installed, _ := filepath.Glob(filepath.Join(home, ".local", "bin", "belay")); (len(installed) == 0) != test.fails {
				t.Errorf("%q is installed", installed)
			}
		})
	}
}

// withoutCurl returns a directory with the programs of the script, without curl.
func withoutCurl(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"uname", "mktemp", "rm"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newInstall returns a command that installs a program, which says "installed", from an archive of this platform.
func newInstall(t *testing.T) *exec.Cmd {
	t.Helper()
	r := newRelease(t, "v0.1.0")
	script, err := r.fill("install.sh", installTemplate, nil)
	if err != nil {
		t.Fatal(err)
	}
	extras := tree{"man/belay.1": {}, "completions/belay.bash": {}, "completions/_belay": {}, "completions/belay.fish": {}}
	archive, err := r.archive(program{r.platforms[0], []byte("#!/bin/sh\necho installed\n")}, extras)
	if err != nil {
		t.Fatal(err)
	}
	from, name := t.TempDir(), r.archiveFile(r.platforms[0])
	for file, content := range map[string][]byte{"install.sh": script, name: archive, "checksums.txt": []byte(sum(archive) + "  " + name + "\n")} {
		if err := os.WriteFile(filepath.Join(from, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(from, "install.sh"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "INSTALL_FROM=" + from}
	return cmd
}

// A script whose end did not arrive does nothing, the prefix may be relative, and an address without https is refused.
//
// SPEC Q-01
func TestInstallIsWhole(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "v0.1.0")
	script, err := r.fill("install.sh", installTemplate, nil)
	if err != nil {
		t.Fatal(err)
	}
	extras := tree{"man/belay.1": {}, "completions/belay.bash": {}, "completions/_belay": {}, "completions/belay.fish": {}}
	archive, err := r.archive(program{r.platforms[0], []byte("#!/bin/sh\necho installed\n")}, extras)
	if err != nil {
		t.Fatal(err)
	}
	from, name := t.TempDir(), r.archiveFile(r.platforms[0])
	for file, content := range map[string][]byte{name: archive, "checksums.txt": []byte(sum(archive) + "  " + name + "\n")} {
		if err := os.WriteFile(filepath.Join(from, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := func(script []byte, from string) (dir, said string) {
		t.Helper()
		dir = t.TempDir()
		cmd := exec.CommandContext(t.Context(), "sh")
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(script)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "INSTALL_FROM=" + from, "PREFIX=mine"}
		out, _ := cmd.CombinedOutput() // half a script is no valid script
		return dir, string(out)
	}
	dir, said := install(script, from)
	if _, err := os.Stat(filepath.Join(dir, "mine", "bin", "belay")); err != nil || !strings.Contains(said, "installed\n") {
		t.Errorf("a relative prefix: %v\n%s", err, said)
	}
	lines := bytes.SplitAfter(script, []byte("\n"))
	for n := range len(lines) - 2 { // the last line, and what is after its end
		dir, said := install(bytes.Join(lines[:n+1], nil), from)
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 || strings.Contains(said, "installed\n") {
			t.Errorf("the first %d lines of the script did something: %v, %v\n%s", n+1, made, err, said)
		}
	}
	for _, from := range []string{"http://127.0.0.1:1", "ftp://127.0.0.1:1", "file:///tmp"} {
		if _, said := install(script, from); !strings.Contains(said, "is no https:// address") {
			t.Errorf("from %s: %s", from, said)
		}
	}
}
