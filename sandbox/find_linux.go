package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bwrapAttempts is how often bwrap is tried. bwrap can fail by chance: if a socket that
// it must hide disappears before bwrap starts.
const bwrapAttempts = 3

// try checks whether a kind of sandbox works here, and which features it can use.
func try(ctx context.Context, kind Kind) (*Sandbox, error) {
	switch kind {
	case Landlock, Namespaces:
		if machines() == nil {
			return nil, fmt.Errorf("it is not available for %s", runtime.GOARCH)
		}
		if !ready.Load() {
			return nil, errors.New("this program does not call sandbox.Main at the beginning of main")
		}
		version, err := abi()
		if err != nil {
			return nil, err
		}
		s := newSandbox(kind, means{abi: version})
		if kind == Landlock {
			err = s.probe(ctx)
			return s, err
		}
		if version < abiRefer { // this matters only for Landlock, not for bubblewrap
			return nil, fmt.Errorf("the kernel has Landlock ABI %d, which does not allow moving files between directories: for ABI %d, use Linux 5.19 or later", version, abiRefer)
		}
		return namespaces(ctx, s)
	case Bubblewrap:
		path, err := exec.LookPath("bwrap")
		if err != nil {
			return nil, fmt.Errorf("the package bubblewrap is not installed: %w", err)
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		s := newSandbox(kind, means{bwrap: path, watch: ready.Load()})
		for range bwrapAttempts {
			if err = s.probe(ctx); err == nil {
				break
			}
		}
		return s, err
	default:
		return nil, errors.New("unknown kind")
	}
}

// namespaces checks whether the sandbox needs a user namespace to make the other
// namespaces. All users except root need one. In most containers, root needs one too.
func namespaces(ctx context.Context, s *Sandbox) (*Sandbox, error) {
	have, err := permitted()
	if err != nil {
		return nil, err
	}
	var first error
	if have&(1<<unix.CAP_SYS_ADMIN) != 0 {
		if first = s.probe(ctx); first == nil {
			return s, nil
		}
	}
	s = newSandbox(Namespaces, means{abi: s.means.abi, users: true})
	if err := s.probe(ctx); err != nil {
		if first != nil {
			err = fmt.Errorf("%w; with a user namespace: %w", first, err)
		}
		return nil, err
	}
	return s, nil
}

func newSandbox(kind Kind, m means) *Sandbox {
	return &Sandbox{kind: kind, means: m, limits: limitsOf(kind, m)}
}

// command returns the command line that runs a program in the sandbox.
func (s *Sandbox) command(policy Policy, program string, argv []string) ([]string, error) {
	if s.kind == Bubblewrap {
		line, err := s.bubblewrap(policy, program, argv)
		if err != nil || !s.means.watch || !policy.Bounds.any() {
			return line, err
		}
		o := order{kind: s.kind, policy: Policy{Bounds: policy.Bounds}, program: line[0], argv: line}
		return append([]string{"/proc/self/exe"}, o.arguments()...), nil
	}
	o := order{kind: s.kind, means: s.means, policy: policy, program: program, argv: argv}
	return append([]string{"/proc/self/exe"}, o.arguments()...), nil
}

// probeTime is the timeout of a probe.
const probeTime = 10 * time.Second

// probe is a shell script that tests the sandbox. It must be able to write to $1. If $2
// is not empty, the script must not be able to read the file or the directory $2. The
// script must not be able to write to any of the other arguments.
const probe = `: > "$1/ok" || exit 1
if [ "$2" ] && { read -r _ < "$2/file" || [ -e "$2/dir/file" ]; }; then echo "it did not hide a file" >&2; exit 3; fi
shift 2
for dir in "$@"; do
	if (: > "$dir/bad") 2>/dev/null; then echo "it did not prevent the creation of a file" >&2; exit 2; fi
done`

// probe runs the script probe in the sandbox, to check that the sandbox works.
func (s *Sandbox) probe(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "belay-sandbox-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	inside, outside, protected := filepath.Join(dir, "in"), filepath.Join(dir, "out"), filepath.Join(dir, "in", "protected")
	for _, name := range []string{inside, outside, protected} {
		if err := os.Mkdir(name, 0o700); err != nil {
			return err
		}
	}
	secret := filepath.Join(outside, "secret")
	if err := errors.Join(os.MkdirAll(secret+"/dir", 0o700), os.WriteFile(secret+"/file", []byte("x\n"), 0o600), os.WriteFile(secret+"/dir/file", nil, 0o600)); err != nil {
		return err
	}
	policy := Policy{Write: []string{inside}, Protect: []string{protected}, Hide: []string{secret + "/file", secret + "/dir"}}
	if !s.Holds(Hiding) {
		secret = ""
	}
	args := []string{"/bin/sh", "-c", probe, "sh", inside, secret, outside}
	if s.Holds(Protection) {
		args = append(args, protected)
	}
	argv, err := s.Command(policy, args)
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // it is ours
	child.Dir = dir
	child.Env = []string{"PATH=" + os.Getenv("PATH")}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig: the child ends when the thread that started it ends
	defer runtime.UnlockOSThread()
	child.WaitDelay = time.Second
	var stderr bytes.Buffer
	child.Stderr = &stderr
	if err := child.Run(); err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		if said == "" || ctx.Err() != nil {
			return fmt.Errorf("test run: %w", errors.Join(err, context.Cause(ctx)))
		}
		return fmt.Errorf("test run: %w: %s", err, said)
	}
	if _, err := os.Lstat(filepath.Join(inside, "ok")); err != nil {
		return fmt.Errorf("test run: it wrote no file: %w", err)
	}
	return nil
}
