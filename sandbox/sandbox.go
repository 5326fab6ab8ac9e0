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
	// None is no containment: this machine has none, or what was asked for did not
	// work.
	None Kind = "none"
	// Namespaces is Landlock, within namespaces of its own for mounts, processes,
	// IPC and, without a network, the network. It holds the most.
	Namespaces Kind = "landlock+namespaces"
	// Bubblewrap is the program bwrap, which makes such namespaces. It needs no call
	// of [Main].
	Bubblewrap Kind = "bubblewrap"
	// Landlock is Landlock alone, for machines where nobody may make namespaces.
	Landlock Kind = "landlock"
)

// ErrNone is what [Sandbox.Command] answers where there is no containment.
var ErrNone = errors.New("there is no sandbox on this machine")

// Policy says what a program may change, read and reach. The zero Policy may change
// nothing, reach nothing outside and read everything.
type Policy struct {
	// Write lists directories that may be changed, with all that is below them. Each
	// must exist and be absolute. Defaults to none.
	Write []string
	// Protect lists files and directories below those that stay as they are, by
	// absolute names: they cannot be changed, moved or replaced, nor can a directory or
	// a symbolic link on the way to them. Where there is nothing by such a name, nothing
	// can be made: an empty directory is in its place, or in that of the first
	// directory on the way that is missing, for as long as the sandbox lasts. So
	// protecting .git/config where there is no .git keeps git init from working. Which
	// sandboxes hold this, [Protection] and [Missing] tell. Defaults to none.
	Protect []string
	// Hide lists files and directories that can be neither read nor changed, by absolute
	// names: a file looks empty, and a directory is empty. What they are links to is
	// hidden, and what is not there when the program is started is not. A directory that
	// Write names, or one above it, cannot be hidden. Which sandboxes hold this, [Hiding]
	// tells. Defaults to none.
	Hide []string
	// Sockets lists Unix sockets of processes outside that may be used, by absolute
	// names, such as that of an SSH agent. Defaults to none.
	Sockets []string
	// Network is whether the network may be used. Without it there is the loopback
	// interface alone, and nobody from outside is on it. Defaults to false.
	Network bool
	// Bounds limit how much of the machine the program uses. Which sandboxes hold this,
	// [Usage] tells. Defaults to none.
	Bounds Bounds
}

// Options are the options of [Find].
type Options struct {
	// Kinds lists what to try, in this order. Defaults to Namespaces, Bubblewrap,
	// Landlock: from what holds the most to what holds the least.
	Kinds []Kind
}

// Attempt is a kind that [Find] tried in vain, and why.
type Attempt struct {
	Kind Kind
	Err  error
}

// Sandbox is what this machine can do to contain a program. It is immutable and
// safe for concurrent use.
type Sandbox struct {
	kind   Kind
	means  means
	limits []Limit // those it holds
	failed []Attempt
}

// means is what the attempt that worked has found out.
type means struct {
	abi   int    // of Landlock
	users bool   // a user namespace is needed to make the others
	bwrap string // the program
	watch bool   // this program calls Main, and so can count what others use
}

// Find looks at what this machine can do, by running a child that tries to get
// out. It takes some milliseconds: do it once, and keep what it returns. It never
// fails; where there is no containment it returns a Sandbox of kind [None], which
// says why.
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

// Kind is the way in which it contains programs.
func (s *Sandbox) Kind() Kind { return s.kind }

// Holds reports whether it holds a limit.
func (s *Sandbox) Holds(limit Limit) bool { return slices.Contains(s.limits, limit) }

// Description is what a [Sandbox] can and cannot do, to be shown.
type Description struct {
	// Kind is its kind.
	Kind Kind
	// Means names the parts of the machine it is made of.
	Means string
	// Holds lists the limits it holds.
	Holds []Limit
	// Lacks lists those it does not hold.
	Lacks []Limit
	// Failed lists the kinds that were tried before it, and why they did not work.
	Failed []Attempt
}

// Describe tells what it can and cannot do.
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

// Command returns the command line that runs argv under a policy, for this process
// to start: it may name this process's own program as /proc/self/exe. A name
// without a slash is looked up in this process's PATH. Working directory and
// environment are those that the command line is started with, and its standard
// input, output and error are the program's.
//
// A policy that cannot be applied when it is started keeps the program from
// running: the exit code is 126, or what bwrap makes of it, and standard error says
// why. A program that is gone by then is exit code 127.
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

// noneError says why there is no containment.
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
