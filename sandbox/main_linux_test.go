package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/internal/proc"
	"github.com/belay-run/belay/sandbox"
)

// If one of these variables is set, the test binary does this task and ends.
const (
	attackTask = "BELAY_SANDBOX_ATTACK" // tries an attack, see attacks
	parentTask = "BELAY_SANDBOX_PARENT" // runs a command in a sandbox until it is killed
	deafTask   = "BELAY_SANDBOX_DEAF"   // acts like a program that does not call Main
	useTask    = "BELAY_SANDBOX_USE"    // uses many resources, see useMuch
)

func TestMain(m *testing.M) {
	if os.Getenv(deafTask) != "" {
		deaf()
	}
	sandbox.Main()
	switch {
	case os.Getenv(attackTask) != "":
		attack(os.Getenv(attackTask))
	case os.Getenv(useTask) != "":
		useMuch(os.Getenv(useTask))
	case os.Getenv(parentTask) != "":
		parent(os.Getenv(parentTask))
	default:
		code := m.Run()
		outside().close()
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		os.Exit(code)
	}
}

// found caches the result for each kind on this machine.
var found = map[sandbox.Kind]func() *sandbox.Sandbox{
	sandbox.Namespaces: sync.OnceValue(func() *sandbox.Sandbox { return find(sandbox.Namespaces) }),
	sandbox.Bubblewrap: sync.OnceValue(func() *sandbox.Sandbox { return find(sandbox.Bubblewrap) }),
	sandbox.Landlock:   sync.OnceValue(func() *sandbox.Sandbox { return find(sandbox.Landlock) }),
}

// need returns a sandbox of a kind. If that kind does not work, the test fails if the
// machine should support it. Otherwise the test is skipped with a message about the gap.
func need(t testing.TB, kind sandbox.Kind) *sandbox.Sandbox {
	t.Helper()
	s := found[kind]()
	if s.Kind() == kind {
		return s
	}
	if why := s.Describe().Failed; capable(kind) {
		t.Fatalf("there is no sandbox of kind %s, and the machine can do what it takes: %v", kind, why)
	} else {
		t.Skipf("NOT COVERED: this machine has no sandbox of kind %s: %v", kind, why)
	}
	return nil
}

// capable finds out, without this package, whether the machine supports a kind.
func capable(kind sandbox.Kind) bool {
	if kind == sandbox.Landlock {
		_, _, errno := syscall.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
		return errno == 0
	}
	command := exec.CommandContext(context.Background(), "mount", "-t", "proc", "proc", "/proc")
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if command.Run() != nil {
		return false
	}
	_, err := exec.LookPath("bwrap")
	return kind == sandbox.Namespaces && capable(sandbox.Landlock) || kind == sandbox.Bubblewrap && err == nil
}

// eachKind runs a test for every kind that works on this machine.
func eachKind(t *testing.T, test func(t *testing.T, s *sandbox.Sandbox)) {
	for _, kind := range []sandbox.Kind{sandbox.Namespaces, sandbox.Bubblewrap, sandbox.Landlock} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(t, need(t, kind))
		})
	}
}

// eachVersion runs a test for every kind, and also with older versions of Landlock, which
// enforce less.
func eachVersion(t *testing.T, test func(t *testing.T, s *sandbox.Sandbox)) {
	eachKind(t, test)
	if asUser() {
		return // root has already tested the versions
	}
	for kind, versions := range map[sandbox.Kind][]int{sandbox.Namespaces: {1}, sandbox.Landlock: {1, 4}} {
		for _, abi := range versions {
			t.Run(fmt.Sprintf("%s of ABI %d", kind, abi), func(t *testing.T) {
				t.Parallel()
				s := need(t, kind)
				if s.ABI() < abi {
					t.Skipf("NOT COVERED: Landlock of this kernel is of ABI %d", s.ABI())
				}
				test(t, s.WithABI(abi))
			})
		}
	}
}

// old reports whether a sandbox uses an older version of Landlock than the machine has.
func old(s *sandbox.Sandbox) bool { return s.ABI() < found[s.Kind()]().ABI() }

// place has the directories of a test: in is writable, and out is a directory beside it
// that is not writable.
type place struct {
	in, out string
	policy  sandbox.Policy
}

func newPlace(t testing.TB) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{in: filepath.Join(dir, "in"), out: filepath.Join(dir, "out")}
	for _, dir := range []string{p.in, p.out} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.policy.Write = []string{p.in}
	return p
}

// env returns the environment of a program in the sandbox.
func (p *place) env(more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.in, "TMPDIR=" + p.in, "IN=" + p.in, "OUT=" + p.out, "LC_ALL=C",
		"GOCOVERDIR=" + p.in, // this test binary may need it
	}, more...)
}

// run runs a command in a sandbox and returns its exit status and output.
func (p *place) run(t testing.TB, s *sandbox.Sandbox, argv ...string) (exit proc.Exit, output string) {
	t.Helper()
	return p.runWith(t, s, nil, argv...)
}

func (p *place) runWith(t testing.TB, s *sandbox.Sandbox, change func(*proc.Command), argv ...string) (exit proc.Exit, output string) {
	t.Helper()
	for {
		line, err := s.Command(p.policy, argv)
		if err != nil {
			t.Fatal(err)
		}
		out := proc.NewCap(4 << 20)
		command := &proc.Command{Argv: line, Dir: p.in, Env: p.env(), Stdout: out, Merged: true}
		if change != nil {
			change(command)
		}
		exit, err := proc.Run(t.Context(), command)
		if err != nil {
			t.Fatal(err)
		}
		output := string(out.Bytes())
		if strings.HasPrefix(output, "bwrap: Can't ") {
			continue // a socket of another test was closed at this moment
		}
		return exit, output
	}
}

// sh runs a script, which must succeed.
func (p *place) sh(t testing.TB, s *sandbox.Sandbox, script string) string {
	t.Helper()
	exit, output := p.run(t, s, "sh", "-euc", script)
	if exit.Code != 0 {
		t.Fatalf("exit = %+v, output:\n%s", exit, output)
	}
	return output
}

// write makes a file and the directories above it.
func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func executable(t testing.TB) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// needProgram skips the test if the machine does not have a program.
func needProgram(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("NOT COVERED: this machine has no %s", name)
	}
}

// snapshot describes all files of a directory, to compare them later.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(describe(t, name))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
