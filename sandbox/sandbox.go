package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind is a technique to contain a program.
type Kind string

const (
	// None means that there is no sandbox: none of the kinds works on this machine.
	None Kind = "none"
	// Namespaces is Landlock with new namespaces for mounts, processes and IPC. Without
	// Policy.Network, there is also a new network namespace. This kind enforces the most
	// limits.
	Namespaces Kind = "landlock+namespaces"
	// Bubblewrap is the program bwrap, which also makes namespaces. It works without a
	// call of [Main].
	Bubblewrap Kind = "bubblewrap"
	// Landlock is Landlock alone, for machines that do not allow namespaces.
	Landlock Kind = "landlock"
)

// ErrNone is the error of [Sandbox.Command] if there is no sandbox.
var ErrNone = errors.New("there is no sandbox on this machine")

// Policy defines what a program may change, read and reach. With the zero Policy, a
// program can read everything, change nothing, and reach nothing outside.
type Policy struct {
	// Write lists the directories that the program may change, with everything below
	// them. Each must exist and be an absolute path. Defaults to none.
	Write []string
	// Protect lists files and directories below Write that cannot be changed, moved or
	// replaced. Use absolute paths. Directories and symbolic links on the way to them are
	// protected too.
	//
	// If a protected path does not exist, the program cannot create it. While the sandbox
	// runs, there is an empty directory in place of the first missing part of the path.
	// For example, if there is no .git, protecting .git/config prevents git init. See
	// [Protection] and [Missing]. Defaults to none.
	Protect []string
	// Hide lists files and directories that cannot be read or changed. Use absolute
	// paths. A hidden file looks empty, and a hidden directory is empty. For a link, its
	// target is hidden. Paths that do not exist when the program starts are not hidden. A
	// directory in Write, or a parent of it, cannot be hidden. See [Hiding]. Defaults to
	// none.
	Hide []string
	// Sockets lists the Unix sockets of processes outside that the program may use, such
	// as the socket of an SSH agent. Use absolute paths. Defaults to none.
	Sockets []string
	// Network lets the program use the network. Without it, there is only a private
	// loopback interface. Defaults to false.
	Network bool
	// Bounds limit the resources of the program. See [Usage]. Defaults to none.
	Bounds Bounds
}

// Options are the settings of [Find].
type Options struct {
	// Kinds lists the kinds to try, in this order. Defaults to Namespaces, Bubblewrap,
	// Landlock, from the strictest to the weakest.
	Kinds []Kind
}

// Attempt is a kind that does not work on this machine, with the reason.
type Attempt struct {
	Kind Kind
	Err  error
}

// Sandbox is a kind of sandbox that works on this machine. It is immutable and safe for
// concurrent use.
type Sandbox struct {
	kind   Kind
	means  means
	limits []Limit // the limits that it enforces
	failed []Attempt
}

// means are features of the machine that try has found.
type means struct {
	abi   int    // the version of Landlock
	users bool   // a user namespace is needed to make the other namespaces
	bwrap string // the path of bwrap
	watch bool   // this program calls Main, so it can watch resource use
}

// Find checks which kind of sandbox works on this machine. It runs a child that tries to
// escape. This takes some milliseconds, so call Find once and keep the result. If there
// is no sandbox, Find returns one of kind [None], whose description has the reasons.
func Find(ctx context.Context, opts *Options) *Sandbox {
	kinds := []Kind{Namespaces, Bubblewrap, Landlock}
	if opts != nil && opts.Kinds != nil {
		kinds = opts.Kinds
	}
	none := &Sandbox{kind: None}
	for _, kind := range kinds {
		found, err := try(ctx, kind)
		if err == nil {
			found.failed = none.failed
			return found
		}
		none.failed = append(none.failed, Attempt{Kind: kind, Err: err})
	}
	return none
}

// Kind returns the kind of the sandbox.
func (s *Sandbox) Kind() Kind { return s.kind }

// Holds reports whether the sandbox enforces a limit.
func (s *Sandbox) Holds(limit Limit) bool { return slices.Contains(s.limits, limit) }

// Description describes what a [Sandbox] can and cannot do. It is for display.
type Description struct {
	// Kind is the kind of the sandbox.
	Kind Kind
	// Means names the features of the machine that the sandbox uses.
	Means string
	// Holds lists the limits that the sandbox enforces.
	Holds []Limit
	// Lacks lists the limits that the sandbox does not enforce.
	Lacks []Limit
	// Failed lists the kinds that were tried before this kind and did not work.
	Failed []Attempt
}

// Describe returns what the sandbox can and cannot do.
func (s *Sandbox) Describe() Description {
	d := Description{Kind: s.kind, Means: s.means.String(), Failed: slices.Clone(s.failed)}
	for _, limit := range Limits() {
		if s.Holds(limit) {
			d.Holds = append(d.Holds, limit)
		} else {
			d.Lacks = append(d.Lacks, limit)
		}
	}
	return d
}

func (m means) String() string {
	var parts []string
	if m.abi > 0 {
		parts = append(parts, fmt.Sprintf("Landlock ABI %d", m.abi))
	}
	if m.users {
		parts = append(parts, "user namespaces")
	}
	if m.bwrap != "" {
		parts = append(parts, m.bwrap)
	}
	return strings.Join(parts, ", ")
}

// Command returns the command line that runs argv under a policy. Start the command line
// from this process, because it may contain /proc/self/exe. A program name without a
// slash is looked up in the PATH of this process. The program gets the working directory,
// the environment and the standard input, output and error with which you start it.
//
// If the sandbox cannot apply the policy, the program does not run. Then standard error
// gives the reason, and the exit code is 126 (with bubblewrap: the exit code of bwrap).
// If the program no longer exists, the exit code is 127.
func (s *Sandbox) Command(policy Policy, argv []string) ([]string, error) {
	if s.kind == None {
		return nil, s.noneError()
	}
	if len(argv) == 0 {
		return nil, errors.New("sandbox: there is no command")
	}
	program, err := lookUp(argv[0])
	if err != nil {
		return nil, err
	}
	resolved, err := resolve(policy)
	if err != nil {
		return nil, err
	}
	return s.command(resolved, program, argv)
}

// noneError returns ErrNone with the reasons.
func (s *Sandbox) noneError() error {
	var why []string
	for _, a := range s.failed {
		why = append(why, fmt.Sprintf("%s: %v", a.Kind, a.Err))
	}
	if len(why) == 0 {
		return ErrNone
	}
	return fmt.Errorf("%w (%s)", ErrNone, strings.Join(why, "; "))
}
