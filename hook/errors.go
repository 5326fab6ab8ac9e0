package hook

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors for errors.Is.
var (
	// ErrClosed reports that a lease was closed.
	ErrClosed = errors.New("hook: the lease was closed")
	// ErrReleased reports that a snapshot was released.
	ErrReleased = errors.New("hook: the snapshot was released")
	// ErrNotFound reports that nothing has the given name.
	ErrNotFound = errors.New("hook: not found")
)

// InstallError reports all problems of an Install. Nothing was installed.
type InstallError struct {
	// Problems are *OptionError, *DependencyError, *CycleError, *RewriterOrderError or
	// *InUseError.
	Problems []error
}

func (e *InstallError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	if len(lines) == 1 {
		return "install: " + lines[0]
	}
	return fmt.Sprintf("install: %d problems\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// Unwrap returns the problems.
func (e *InstallError) Unwrap() []error { return e.Problems }

// OptionError reports a wrong field of one subscription.
type OptionError struct {
	Subscription string
	Phase        string
	Origin       Origin
	// Field is the option's wire name: id, timeout, match.tools, ...
	Field string
	// Reason says what is wrong and what to do.
	Reason string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("%ssubscription %q on %s: %s: %s", e.Origin.where(), e.Subscription, e.Phase, e.Field, e.Reason)
}

// where returns the file and line as the beginning of an error message.
func (o Origin) where() string {
	if o.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", o.File, o.Line)
}

// DependencyError reports that a subscription cannot be ordered before or after another:
// the other subscription does not exist, is disabled, is only on another phase, or is the
// same subscription.
type DependencyError struct {
	Subscription, Phase string
	// Field is the option's wire name: after or before.
	Field string
	// Dependency is the id that the option names.
	Dependency string
	Origin     Origin
	// Kind is missing, disabled, other_phase or self.
	Kind string
	// Reason says what is wrong and what to do.
	Reason string
}

func (e *DependencyError) Error() string {
	return fmt.Sprintf("%ssubscription %q on %s: %s: %s", e.Origin.where(), e.Subscription, e.Phase, e.Field, e.Reason)
}

// CycleError reports that subscriptions are ordered in a circle.
type CycleError struct {
	Phase string
	// Members are the subscriptions of one cycle. Each is ordered before the next, and the
	// last is ordered before the first. The smallest id comes first.
	Members []string
}

func (e *CycleError) Error() string {
	if len(e.Members) == 0 {
		return fmt.Sprintf("cycle on %s", e.Phase)
	}
	return fmt.Sprintf("cycle on %s: %s (each must run before the next): remove one of these dependencies",
		e.Phase, strings.Join(append(slices.Clone(e.Members), e.Members[0]), " -> "))
}

// RewriterOrderError reports that a subscription that rewrites is ordered after one that
// does not. Rewriters run first, so that all other handlers see the final input.
type RewriterOrderError struct{ Rewriter, Phase, After string }

func (e *RewriterOrderError) Error() string {
	return fmt.Sprintf("subscription %q on %s rewrites the input, so it must run before %q, which does not rewrite: remove this dependency",
		e.Rewriter, e.Phase, e.After)
}

// InUseError reports that a subscription cannot be removed, because other subscriptions
// name it in After or Before.
type InUseError struct {
	// Phase and Subscription identify the subscription that would be removed.
	Phase, Subscription string
	// Dependents are the subscriptions that name Subscription in After or Before.
	Dependents []string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("subscription %q on %s cannot be removed alone, because it is a dependency of %s: close the leases together with CloseAll",
		e.Subscription, e.Phase, strings.Join(e.Dependents, ", "))
}

func sortedList(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(names, ", ")
}
