package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/proc"
	"github.com/belay-run/belay/sandbox"
)

// project makes the writable directory a project, and protects the files that SPEC P-06
// names.
func (p *place) project(t testing.TB) {
	t.Helper()
	write(t, p.in+"/main.go", "package main\n")
	write(t, p.in+"/.git/config", "[core]\n")
	write(t, p.in+"/.git/hooks/pre-commit", "#!/bin/sh\n")
	write(t, p.in+"/.git/HEAD", "ref: refs/heads/main\n")
	write(t, p.in+"/.git/objects/info/packs", "")
	write(t, p.in+"/.git/refs/heads/none", "")
	write(t, p.in+"/belay.yaml", "mode: strict\n")
	write(t, p.in+"/deep/er/secret", "secret\n")
	if err := os.Symlink("deep/er", p.in+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".git/hooks", ".git/config", "belay.yaml", "link/secret"} {
		p.policy.Protect = append(p.policy.Protect, filepath.Join(p.in, name))
	}
}

// protected describes everything that must not change.
func (p *place) protected(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, name := range append(p.policy.Protect, p.in+"/link") {
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			all.WriteString(snapshot(t, name))
		} else {
			all.WriteString(describe(t, name))
		}
	}
	return all.String()
}

// tampering are attempts to change the protected files of the project.
var tampering = []struct{ name, script string }{
	{"write to a file", `echo bad > belay.yaml`},
	{"append to a file", `echo bad >> .git/config`},
	{"remove a file", `rm -f belay.yaml`},
	{"move over a file", `echo bad > new; mv -f new belay.yaml`},
	{"move a file away", `mv belay.yaml gone`},
	{"change a mode", `chmod 777 .git/hooks/pre-commit`},
	{"link a file", `ln .git/hooks/pre-commit hard && echo bad > hard`},
	{"make a file in a directory", `echo bad > .git/hooks/post-commit`},
	{"write to a file in a directory", `echo bad > .git/hooks/pre-commit`},
	{"remove a directory", `rm -rf .git/hooks`},
	{"move a directory away", `mv .git/hooks gone`},
	{"move over a directory", `rm -f .git/hooks/*; mkdir new; mv -T new .git/hooks`},
	{"replace a directory above", `mv .git gone; mkdir -p .git/hooks; echo bad > .git/hooks/pre-commit; echo bad > .git/config`},
	{"remove a directory above", `rm -rf .git`},
	{"write through a symbolic link to a directory above", `ln -s .git g; echo bad > g/hooks/pre-commit`},
	{"write through a symbolic link to a file", `ln -s .git/config c; echo bad > c`},
	{"write to what a protected link leads to", `echo bad > deep/er/secret`},
	{"replace what a protected link leads to", `mv deep gone; mkdir -p deep/er; echo bad > deep/er/secret`},
	{"replace a protected link", `rm link; mkdir link; echo bad > link/secret`},
	{"move a protected link", `mv link gone; ln -s /tmp link`},
	{"replace with git", `git config core.hooksPath /tmp`},
	{"replace with sed", `sed -i s/strict/permissive/ belay.yaml`},
}

// SPEC P-06, P-12
func TestProtectedFilesCannotBeChanged(t *testing.T) {
	t.Parallel()
	needProgram(t, "git")
	for _, test := range tampering {
		if asUser() {
			break
		}
		t.Run("without a sandbox/"+test.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.project(t)
			before := p.protected(t)
			p.strike(t, nil, "", test.script, "")
			if there(p.policy.Protect) && p.protected(t) == before {
				t.Error("the attack proves nothing: it changes nothing even without a sandbox")
			}
		})
	}
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		for _, test := range tampering {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				p.project(t)
				if s.Kind() == sandbox.Bubblewrap {
					p.policy.Protect = p.policy.Protect[:3] // see TestBubblewrapRefusesToProtectThroughALink
				}
				before := p.protected(t)
				_, output := p.strike(t, s, "", test.script, "")
				changed := !there(p.policy.Protect) || p.protected(t) != before
				switch about := strings.Contains(test.name, "link leads to") || strings.Contains(test.name, "protected link"); {
				case about && s.Kind() == sandbox.Bubblewrap:
				case changed == s.Holds(sandbox.Protection):
					t.Errorf("changed: %v, and protection is held: %v: %s", changed, s.Holds(sandbox.Protection), output)
				}
			})
		}
	})
}

// there reports whether all named files exist.
func there(names []string) bool {
	for _, name := range names {
		if _, err := os.Lstat(name); err != nil {
			return false
		}
	}
	return true
}

func TestBubblewrapRefusesToProtectThroughALink(t *testing.T) {
	t.Parallel()
	s := need(t, sandbox.Bubblewrap)
	p := newPlace(t)
	p.project(t)
	if _, err := s.Command(p.policy, []string{"true"}); err == nil || !strings.Contains(err.Error(), p.in+"/link") {
		t.Errorf("err = %v, want one that names the link", err)
	}
}

// Files that are not protected can be changed.
func TestWhatIsNotProtectedCanBeChanged(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		p.project(t)
		if s.Kind() == sandbox.Bubblewrap {
			p.policy.Protect = p.policy.Protect[:3]
		}
		p.sh(t, s, `echo x > new; mv new other; rm other; echo x >> main.go
			echo x > .git/index; mkdir -p .git/objects/ab; echo x > .git/tmp; mv .git/tmp .git/objects/ab/cd
			echo x > deep/new; cat belay.yaml link/secret .git/hooks/pre-commit .git/config`)
	})
}

// making are attempts to create protected files that do not exist.
var making = []struct{ name, script string }{
	{"make a file", `echo bad > belay.yaml`},
	{"make a directory", `mkdir .belay`},
	{"make a directory and what is in it", `mkdir -p .git/hooks && echo bad > .git/hooks/pre-commit`},
	{"move a file there", `echo bad > new; mv -T new belay.yaml`},
	{"move a directory there", `mkdir -p new/hooks; mv -T new .git`},
	{"exchange", `rmdir .git; mkdir .git && mkdir .git/hooks`},
	{"link", `ln -s /tmp .belay`},
	{"initialise with git", `git init -q .`},
	{"make it and stay", `mkdir .belay && echo bad > .belay/bad`},
}

// SPEC P-06, P-12
func TestProtectedFilesCannotBeMade(t *testing.T) {
	t.Parallel()
	needProgram(t, "git")
	names := []string{".git/hooks", ".belay", "belay.yaml"}
	protect := func(p *place) {
		for _, name := range names {
			p.policy.Protect = append(p.policy.Protect, filepath.Join(p.in, name))
		}
	}
	made := func(p *place) (found []string) {
		for _, name := range []string{".git", ".belay", "belay.yaml"} {
			if _, err := os.Lstat(filepath.Join(p.in, name)); err == nil {
				found = append(found, name)
			}
		}
		return found
	}
	for _, test := range making {
		if asUser() {
			break
		}
		t.Run("without a sandbox/"+test.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			if p.strike(t, nil, "", test.script, ""); made(p) == nil {
				t.Error("the attack proves nothing: it makes nothing even without a sandbox")
			}
		})
	}
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		for _, test := range making {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				protect(p)
				_, output := p.strike(t, s, "", test.script, "")
				if left := made(p); (left == nil) != s.Holds(sandbox.Missing) {
					t.Errorf("%v is there afterwards, and protection is held: %v: %s", left, s.Holds(sandbox.Missing), output)
				}
			})
		}
	})
}

// Placeholders for missing protected files are harmless. Sandboxes that need the same
// placeholder at the same time share it.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	s := need(t, sandbox.Namespaces)
	t.Run("git does not see them", func(t *testing.T) {
		t.Parallel()
		needProgram(t, "git")
		p := newPlace(t)
		p.policy.Protect = []string{p.in + "/belay.yaml", p.in + "/.belay"}
		output := p.sh(t, s, `git init -q .; git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x; echo x > x
			git add -A; git status --porcelain`)
		if output != "A  x\n" {
			t.Errorf("output = %q, want the one file", output)
		}
	})
	t.Run("one who comes later is not exposed when one who came first leaves", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		name := p.in + "/belay.yaml"
		p.policy.Protect = []string{name}
		begun, end := t.TempDir()+"/begun", p.in+"/end"
		later := newPlaceLike(p)
		later.policy.Write = append(later.policy.Write, filepath.Dir(begun))
		done := make(chan string, 1)
		first := make(chan struct{})
		go func() {
			defer close(first)
			p.sh(t, s, `while [ ! -e `+begun+` ]; do sleep 0.01; done`)
		}()
		go func() {
			_, output := later.run(t, s, "sh", "-c", `: > `+begun+`; while [ ! -e `+end+` ]; do sleep 0.01; done
				rmdir belay.yaml; echo bad > belay.yaml`)
			done <- output
		}()
		<-first
		if info, err := os.Lstat(name); err != nil || !info.IsDir() {
			t.Errorf("%v, %v: want the placeholder to outlive the first sandbox", info, err)
		}
		write(t, end, "")
		output := <-done
		if _, err := os.Lstat(name); !os.IsNotExist(err) {
			t.Errorf("err = %v, want nothing there in the end: %s", err, output)
		}
	})
	t.Run("what somebody puts into one is kept", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		p.policy.Protect = []string{p.in + "/.belay"}
		out := newSignal("ready")
		p.runWith(t, s, func(c *proc.Command) {
			c.Stdout = out
			go func() {
				<-out.come
				write(t, p.in+"/.belay/settings", "mine\n")
				write(t, p.in+"/end", "")
			}()
		}, "sh", "-c", `echo ready; while [ ! -e end ]; do sleep 0.01; done`)
		if text := read(t, p.in+"/.belay/settings"); text != "mine\n" {
			t.Errorf("text = %q", text)
		}
	})
	t.Run("one that a crash left behind is removed", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		p.policy.Protect = []string{p.in + "/.belay"}
		if err := os.Mkdir(p.in+"/.belay", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p.in+"/.belay", 0o755|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
		p.sh(t, s, `! mkdir .belay/x`)
		if _, err := os.Lstat(p.in + "/.belay"); !os.IsNotExist(err) {
			t.Errorf("err = %v, want it removed", err)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		p.policy.Protect = []string{p.in + "/.belay", p.in + "/.git/hooks"}
		done := make(chan string)
		for range 12 {
			go func() {
				_, output := p.run(t, s, "sh", "-c", `mkdir .belay/x; rmdir .belay; mkdir .git .git/hooks`)
				done <- output
			}()
		}
		for range 12 {
			<-done
		}
		p.sh(t, s, `true`) // if two sandboxes end at the same time, the next sandbox removes the placeholder
		if entries, err := os.ReadDir(p.in); err != nil || len(entries) > 0 {
			t.Errorf("%v, %v: want nothing there in the end", entries, err)
		}
	})
}

// newPlaceLike returns a copy of p with its own policy.
func newPlaceLike(p *place) *place {
	other := *p
	other.policy.Write = append([]string{}, p.policy.Write...)
	return &other
}

// Protecting a directory protects everything below it, even a directory that Policy.Write
// names.
func TestProtectWins(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		write(t, p.in+"/.belay/tmp/file", "x")
		if err := os.Symlink(".belay", p.in+"/link"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"/.belay", "/link"} {
			p.policy = sandbox.Policy{Write: []string{p.in + "/.belay/tmp"}, Protect: []string{p.in + name}}
			if exit, output := p.run(t, s, "sh", "-c", `echo bad > .belay/tmp/file`); exit.Code == 0 {
				t.Errorf("it got through to what %s protects: %s", name, output)
			}
		}
	})
}
