package sandbox_test

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/belay-run/belay/sandbox"
)

// secrets makes files with a secret, in the writable directory and outside. It hides them
// in three ways: as a file, by a link, and with the whole directory.
func (p *place) secrets(t testing.TB) {
	t.Helper()
	for _, dir := range []string{p.in, p.out} {
		write(t, dir+"/secret/file", "the secret\n")
		write(t, dir+"/vault/file", "the secret\n")
		write(t, dir+"/real/file", "the secret\n")
		write(t, dir+"/plain", "plain\n")
		if err := os.Symlink("real/file", dir+"/link"); err != nil {
			t.Fatal(err)
		}
		p.policy.Hide = append(p.policy.Hide, dir+"/secret/file", dir+"/vault", dir+"/link", dir+"/none", dir+"/plain/none")
	}
}

// prying are attempts to read or replace a secret. Each runs in the writable directory
// and then in the directory outside.
var prying = []struct{ name, script string }{
	{"read a file", `cat secret/file`},
	{"read a file in a directory", `cat vault/file`},
	{"read through a link", `cat link`},
	{"read what a link leads to", `cat real/file`},
	{"read through a link of its own", `ln -s "$PWD/secret/file" "$IN/own"; cat "$IN/own"`},
	{"read through /proc", `cat "/proc/self/root$PWD/secret/file" "/proc/self/cwd/secret/file"`},
	{"read a hard link", `ln secret/file "$IN/hard"; ln real/file "$IN/hard2"; cat "$IN"/hard*`},
	{"copy it", `cp -r . "$IN/copy" 2>/dev/null; cat "$IN"/copy/*/file`},
	{"pack it", `tar -cf - . 2>/dev/null | cat`},
	{"move it away", `mv secret/file "$IN/moved"; cat "$IN/moved"`},
	{"move the directory that it is in", `mv secret "$IN/moved"; cat "$IN/moved/file"`},
	{"move a directory that is hidden", `mv vault "$IN/moved"; cat "$IN/moved/file"`},
	{"move something over it", `echo bad > "$IN/bad"; mv -f "$IN/bad" secret/file; echo bad > "$IN/bad"; mv -f "$IN/bad" vault/file`},
	{"write to it", `echo bad > secret/file; echo bad >> real/file; echo bad > link`},
	{"write to a file in a directory", `echo bad > vault/file; echo bad > vault/new`},
	{"remove it", `rm -rf secret/file vault/file vault real/file`},
	{"change its mode", `chmod 777 secret/file vault real/file`},
}

// hiddenState returns the state of the secrets, which must not change.
func (p *place) hiddenState(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{p.in, p.out} {
		for _, name := range []string{"secret/file", "real/file", "vault/file"} {
			if _, err := os.Lstat(dir + "/" + name); err != nil {
				all.WriteString("gone: " + name + "\n")
				continue
			}
			all.WriteString(describe(t, dir+"/"+name))
		}
		if entries, err := os.ReadDir(dir + "/vault"); err == nil {
			all.WriteString(strconv.Itoa(len(entries)))
		}
	}
	return all.String()
}

// A program cannot read or change hidden files, in writable directories or outside. A
// sandbox that cannot enforce this says so (see Holds).
//
// SPEC P-12
func TestHiddenFilesCannotBeRead(t *testing.T) {
	t.Parallel()
	const both = `cd "$IN" || exit; %s
cd "$OUT" || exit; %s`
	script := func(one string) string { return strings.ReplaceAll(both, "%s", one) }
	for _, test := range prying {
		if asUser() {
			break
		}
		t.Run("without a sandbox/"+test.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.secrets(t)
			before := p.hiddenState(t)
			_, output := p.strike(t, nil, "", script(test.script), "")
			if !strings.Contains(output, "the secret") && p.hiddenState(t) == before {
				t.Errorf("the attack proves nothing: it does nothing even without a sandbox: %s", output)
			}
		})
	}
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		for _, test := range prying {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				p.secrets(t)
				before := p.hiddenState(t)
				_, output := p.strike(t, s, "", script(test.script), "")
				after := p.hiddenState(t)
				if strings.Contains(test.name, "directory that it is in") {
					// A writable parent directory can be moved, but the secret in it
					// stays hidden.
					before, after = "", ""
				}
				leaked := strings.Contains(output, "the secret") || before != after
				if leaked == s.Holds(sandbox.Hiding) {
					t.Errorf("leaked or changed: %v, and hiding is held: %v: %s\n%s%s", leaked, s.Holds(sandbox.Hiding), output, before, after)
				}
			})
		}
		t.Run("the rest can be read", func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.secrets(t)
			if output := p.sh(t, s, `cat plain "$OUT/plain"; echo new > new; ls -d none 2>/dev/null || true`); strings.Count(output, "plain\n") != 2 || len(output) != 12 {
				t.Errorf("output = %q", output)
			}
			if _, err := os.Lstat(p.in + "/none"); err == nil {
				t.Error("what was not there is there now")
			}
		})
	})
}

// Attacks that need system calls instead of a shell also fail.
//
// SPEC P-12
func TestHiddenFilesStayHiddenFromSystemCalls(t *testing.T) {
	t.Parallel()
	target := strconv.Itoa(bystander(t))
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		if !s.Holds(sandbox.Hiding) {
			return // without this limit, even attacks with a shell succeed
		}
		for _, name := range []string{
			"read through the root of a process outside",
			"read from an open directory",
			"read what is below a mount",
			"read what is below a mount, in namespaces of its own",
			"read in a copy of the mount above",
			"read in a copy of the mount above, in namespaces of its own",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				p.secrets(t)
				if _, output := p.strike(t, s, name, "", target); strings.Contains(output, "the secret") {
					t.Errorf("it got at it: %s", output)
				}
			})
		}
	})
}

// If a hidden file is replaced by a link after Command was called, the program does not
// run. If the file is removed, the program runs.
//
// SPEC P-12
func TestHidingFailsClosed(t *testing.T) {
	t.Parallel()
	s, p := need(t, sandbox.Namespaces), newPlace(t)
	p.secrets(t)
	argv, err := s.Command(p.policy, []string{"cat", p.out + "/secret/file"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(p.out+"/real", p.out+"/elsewhere"); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	command.Dir, command.Env = p.in, p.env()
	if output, err := command.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("%v: %q: want it to run, and the rest to be hidden", err, output)
	}
	if err := errors.Join(os.Rename(p.out+"/secret/file", p.out+"/other"), os.Symlink("../other", p.out+"/secret/file")); err != nil {
		t.Fatal(err)
	}
	p.refuses(t, argv, 126, p.out+"/secret/file", "too many levels of symbolic links")
}
