package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind is a way to contain a program.
type Kind string

const (
	// None means no sandbox: the machine has none, or the requested kinds do not
	// work.
	None Kind = "none"
	// Namespaces is Landlock, within namespaces of its own for mounts, processes,
	// IPC and, without a network, the network. It enforces the most limits.
	Namespaces Kind = "landlock+namespaces"
	// Bubblewrap is the program bwrap, which makes such namespaces. It needs no call
	// of [Main].
	Bubblewrap Kind = "bubblewrap"
	// Landlock is only Landlock, for machines that do not allow namespaces.
	Landlock Kind = "landlock"
)

// ErrNone is the error of [Sandbox.Command] if there is no sandbox.
var ErrNone = errors.New("there is no sandbox on this machine")

// Policy defines what a program may change, read and reach. With the zero Policy it
// may change nothing, reach nothing outside, and read everything.
type Policy struct {
	// Write lists directories that may be changed, including everything below. Each
	// must exist and be absolute. Defaults to none.
	Write []string
	// Protect lists files and directories below Write that cannot be changed, moved or
	// replaced, by absolute names. Directories and symbolic links on the way to them are
	// protected, too. A missing file or directory cannot be created: while the sandbox
	// runs, an empty directory takes its place, or that of the first missing directory
	// on the way to it. So if there is no .git, protecting .git/config prevents git
	// init. See [Protection] and [Missing]. Defaults to none.
	Protect []string
	// Hide lists files and directories that can be neither read nor changed, by absolute
	// names: a file looks empty, and a directory is empty. The targets of links are
	// hidden. Names that do not exist when the program starts are not hidden. A
	// directory in Write, or a parent of it, cannot be hidden. See [Hiding]. Defaults to
	// none.
	Hide []string
	// Sockets lists Unix sockets of processes outside that may be used, by absolute
	// names, such as that of an SSH agent. Defaults to none.
	Sockets []string
	// Network is whether the network may be used. Without it there is only a
	// private loopback interface. Defaults to false.
	Network bool
	// Bounds limit the resources of the program. See [Usage]. Defaults to none.
	Bounds Bounds
}

// Options are the options of [Find].
type Options struct {
	// Kinds lists the kinds to try, in this order. Defaults to Namespaces,
	// Bubblewrap, Landlock: from the strictest to the weakest.
	Kinds []Kind
}

// Attempt is a kind that does not work here, and why.
type Attempt struct {
	Kind Kind
	Err  error
}

// Sandbox is the sandbox of this machine. It is immutable and safe for
// concurrent use.
type Sandbox struct {
	kind   Kind
	means  means
	limits []Limit // those it holds
	failed []Attempt
}

// means are the findings of the successful attempt.
type means struct {
	abi   int    // of Landlock
	users bool   // a user namespace is needed to make the others
	bwrap string // the program
	watch bool   // this program calls Main, so it can count resource use
}

// Find checks what this machine supports, by running a child that tries to
// escape. It takes some milliseconds: call it once, and keep the result. It never
// fails; if there is no sandbox, it returns one of kind [None] with the reason.
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

// Holds reports whether it enforces a limit.
func (s *Sandbox) Holds(limit Limit) bool { return slices.Contains(s.limits, limit) }

// Description describes what a [Sandbox] can and cannot do, for display.
type Description struct {
	// Kind is its kind.
	Kind Kind
	// Means names the features of the machine that it uses.
	Means string
	// Holds lists the limits it enforces.
	Holds []Limit
	// Lacks lists the limits it does not enforce.
	Lacks []Limit
	// Failed lists the kinds that were tried before it, and why they did not work.
	Failed []Attempt
}

// Describe returns what it can and cannot do.
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

// Command returns the command line that runs argv under a policy. Start it from
// this process: it may name this program as /proc/self/exe. A name without a slash
// is looked up in this process's PATH. The program gets the working directory, the
// environment and the standard input, output and error of the command line.
//
// If the policy cannot be applied at the start, the program does not run: the exit
// code is 126, or that of bwrap, and standard error says why. If the program no
// longer exists, the exit code is 127.
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

// noneError explains why there is no sandbox.
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
