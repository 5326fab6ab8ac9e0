package sandbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/sandbox"
)

// SPEC P-12
func TestFindTakesWhatHoldsMost(t *testing.T) {
	t.Parallel()
	s := sandbox.Find(t.Context(), nil)
	for _, kind := range []sandbox.Kind{sandbox.Namespaces, sandbox.Bubblewrap, sandbox.Landlock} {
		if found[kind]().Kind() == sandbox.None {
			continue
		}
		if s.Kind() != kind {
			t.Errorf("kind = %s, and the machine has %s", s.Kind(), kind)
		}
		break
	}
	d := s.Describe()
	if d.Kind != s.Kind() || len(d.Holds)+len(d.Lacks) != len(sandbox.Limits()) {
		t.Errorf("description = %+v, want every limit told", d)
	}
	for _, limit := range sandbox.Limits() {
		if s.Holds(limit) != slices.Contains(d.Holds, limit) || limit.Text() == string(limit) {
			t.Errorf("limit %s: %q, held: %v, in %v", limit, limit.Text(), s.Holds(limit), d.Holds)
		}
	}
}

func TestFindTakesTheOrderItIsGiven(t *testing.T) {
	t.Parallel()
	need(t, sandbox.Landlock)
	s := sandbox.Find(t.Context(), &sandbox.Options{Kinds: []sandbox.Kind{"jail", sandbox.Landlock, sandbox.Namespaces}})
	if s.Kind() != sandbox.Landlock {
		t.Fatalf("kind = %s", s.Kind())
	}
	if failed := s.Describe().Failed; len(failed) != 1 || failed[0].Kind != "jail" || failed[0].Err == nil {
		t.Errorf("failed = %v, want the one before it", failed)
	}
}

// SPEC P-12
func TestWithoutASandboxNothingIsRun(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, s := range map[string]*sandbox.Sandbox{
		"none was to be tried": sandbox.Find(t.Context(), &sandbox.Options{Kinds: []sandbox.Kind{}}),
		"unknown kind":         sandbox.Find(t.Context(), &sandbox.Options{Kinds: []sandbox.Kind{"jail"}}),
		"it is too late":       sandbox.Find(cancelled, nil),
	} {
		if s.Kind() != sandbox.None || len(s.Describe().Holds) > 0 {
			t.Errorf("%s: %+v, want none", name, s.Describe())
		}
		argv, err := s.Command(sandbox.Policy{}, []string{"true"})
		if !errors.Is(err, sandbox.ErrNone) || argv != nil {
			t.Errorf("%s: %v, %v: want ErrNone", name, argv, err)
		}
		for _, a := range s.Describe().Failed {
			if !strings.Contains(err.Error(), a.Err.Error()) {
				t.Errorf("%s: %v does not say %v", name, err, a.Err)
			}
		}
	}
}

func TestBadPoliciesAreRefused(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		write(t, p.out+"/file", "")
		for name, test := range map[string]struct {
			policy sandbox.Policy
			argv   []string
			says   string
		}{
			"no command":                         {sandbox.Policy{}, nil, "there is no command"},
			"no such program":                    {sandbox.Policy{}, []string{"no-such-program"}, `"no-such-program"`},
			"a relative name to write":           {sandbox.Policy{Write: []string{"x"}}, []string{"true"}, `Write: "x" is not an absolute name`},
			"a relative name to protect":         {sandbox.Policy{Protect: []string{"x"}}, []string{"true"}, `Protect: "x" is not an absolute name`},
			"a relative name to hide":            {sandbox.Policy{Hide: []string{"x"}}, []string{"true"}, `Hide: "x" is not an absolute name`},
			"everything to hide":                 {sandbox.Policy{Hide: []string{"/usr/.."}}, []string{"true"}, "is the whole file system"},
			"hiding what may be written":         {sandbox.Policy{Write: []string{p.in}, Hide: []string{p.in}}, []string{"true"}, "the writable directory"},
			"hiding what is above it":            {sandbox.Policy{Write: []string{p.in}, Hide: []string{p.in + "/.."}}, []string{"true"}, "contains the writable directory " + p.in},
			"a relative name of a socket":        {sandbox.Policy{Sockets: []string{"x"}}, []string{"true"}, `Sockets: "x" is not an absolute name`},
			"a zero byte":                        {sandbox.Policy{Write: []string{"/a\x00b"}}, []string{"true"}, `has a zero byte in it`},
			"a directory that is not there":      {sandbox.Policy{Write: []string{p.out + "/none"}}, []string{"true"}, p.out + "/none"},
			"a file in the place of a directory": {sandbox.Policy{Write: []string{p.out + "/file"}}, []string{"true"}, "is not a directory"},
		} {
			argv, err := s.Command(test.policy, test.argv)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v, %v: want an error that says %s", name, argv, err, test.says)
			}
		}
		if _, err := s.Command(sandbox.Policy{}, []string{"no-such-program"}); !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("err = %v, want exec.ErrNotFound", err)
		}
	})
}

// If the policy cannot be applied, the program does not run.
//
// SPEC P-12
func TestItFailsClosed(t *testing.T) {
	t.Parallel()
	for _, kind := range []sandbox.Kind{sandbox.Namespaces, sandbox.Landlock} {
		for name, test := range map[string]struct {
			change func(t *testing.T, p *place)
			says   string
		}{
			"a directory that is gone": {func(t *testing.T, p *place) {
				if err := os.Remove(p.in + "/dir"); err != nil {
					t.Fatal(err)
				}
			}, "no such file or directory"},
			"a directory that was made a link": {func(t *testing.T, p *place) {
				if err := errors.Join(os.Remove(p.in+"/dir"), os.Symlink(p.out, p.in+"/dir")); err != nil {
					t.Fatal(err)
				}
			}, "too many levels of symbolic links"},
			"a directory that was made a file": {func(t *testing.T, p *place) {
				if err := os.Remove(p.in + "/dir"); err != nil {
					t.Fatal(err)
				}
				write(t, p.in+"/dir", "")
			}, "not a directory"},
		} {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				t.Parallel()
				s, p := need(t, kind), newPlace(t)
				write(t, p.in+"/dir/file", "")
				if err := os.Remove(p.in + "/dir/file"); err != nil {
					t.Fatal(err)
				}
				p.policy.Write = []string{p.in + "/dir"}
				argv, err := s.Command(p.policy, []string{"sh", "-c", "echo ran; echo bad > dir/bad"})
				if err != nil {
					t.Fatal(err)
				}
				test.change(t, p)
				p.refuses(t, argv, 126, p.in+"/dir", test.says)
			})
		}
	}
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		if s.Kind() == sandbox.Bubblewrap {
			return // bwrap prints its own message
		}
		p := newPlace(t)
		write(t, p.in+"/plain", "no program")
		for program, code := range map[string]int{"./none": 127, p.in + "/none": 127, "./plain": 126, p.in: 126} {
			argv, err := s.Command(p.policy, []string{program})
			if err != nil {
				t.Fatal(err)
			}
			p.refuses(t, argv, code, "sandbox: run "+program+": ", "")
		}
	})
}

// refuses runs a command line and checks that its program does not start.
func (p *place) refuses(t *testing.T, argv []string, code int, says ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	command.Dir, command.Env = p.in, p.env()
	output, _ := command.CombinedOutput() // the exit code shows the error
	text := string(output)
	if command.ProcessState.ExitCode() != code || strings.Contains(text, "ran") || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "sandbox: ") {
		t.Errorf("%v: %q: want exit code %d and one line", command.ProcessState, text, code)
	}
	for _, word := range says {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
}

// A child rejects an invalid order.
func TestBadOrdersAreRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	good := []string{"kind=landlock", "abi=1", "users=false", "network=true", "program=/bin/sh"}
	command := []string{"--", "sh", "-c", "echo ran"}
	for name, args := range map[string][]string{
		"nothing":             {},
		"no command":          append(slices.Clone(good), "--"),
		"no end":              good,
		"no program":          append(slices.Clone(good[:4]), command...),
		"no kind":             append(slices.Clone(good[1:]), command...),
		"an unknown kind":     append([]string{"kind=cage", "abi=1", "program=/bin/sh"}, command...),
		"no version":          append([]string{"kind=landlock", "program=/bin/sh"}, command...),
		"a bad version":       append([]string{"kind=landlock", "abi=x", "program=/bin/sh"}, command...),
		"a bad switch":        append([]string{"kind=landlock", "abi=1", "network=maybe", "program=/bin/sh"}, command...),
		"an unknown argument": append(append(slices.Clone(good), "wright=/"), command...),
		"a version to come":   append([]string{"kind=landlock", "abi=99", "network=false", "program=/bin/sh"}, command...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.refuses(t, append([]string{executable(t), sandbox.Marker}, args...), 126)
		})
	}
}

// File names can contain any bytes.
func TestOddNames(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		for _, name := range []string{"a b", "-x", "--", "=", "new\nline", "\xff\xfe", "ü", `back\slash`, "write=", "'\""} {
			dir := filepath.Join(p.in, name)
			write(t, dir+"/keep/file", "x")
			write(t, dir+"/belay.yaml", "x")
			p.policy = sandbox.Policy{Write: []string{dir}, Protect: []string{dir + "/keep", dir + "/belay.yaml"}}
			exit, output := p.run(t, s, "sh", "-c", `cd "$1" && echo x > new && { echo bad > keep/file; echo bad > belay.yaml; ! echo bad > ../bad; }`, "sh", dir)
			if exit.Code != 0 || read(t, dir+"/new") != "x\n" {
				t.Errorf("%q: exit = %+v: %s", name, exit, output)
			}
			if changed := read(t, dir+"/keep/file")+read(t, dir+"/belay.yaml") != "xx"; changed == s.Holds(sandbox.Protection) {
				t.Errorf("%q: changed: %v: %s", name, changed, output)
			}
		}
	})
}

func TestEverythingMayBeWritable(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		p.policy = sandbox.Policy{Write: []string{"/", p.in}, Protect: []string{p.out + "/keep"}}
		write(t, p.out+"/keep", "x")
		p.sh(t, s, `echo x > "$OUT/file"; echo bad > "$OUT/keep" || true`)
		if changed := read(t, p.out+"/keep") != "x"; changed == s.Holds(sandbox.Protection) {
			t.Errorf("changed: %v", changed)
		}
	})
}

// A program in a sandbox can make its own sandbox, as far as the outer sandbox allows.
func TestASandboxInASandbox(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		code, output := newPlace(t).strike(t, s, "make a sandbox inside", "", "")
		if code != 0 || strings.HasPrefix(output, string(sandbox.None)) {
			t.Errorf("exit code %d: %s", code, output)
		}
		t.Logf("within %s: %s", s.Kind(), output)
	})
}
