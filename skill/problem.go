package skill

import (
	"errors"
	"fmt"
)

// Problem tells what is wrong with a skill, a file or a source, and where. It is
// for people: it names hidden skills too.
type Problem struct { //nolint:errname // it is told far more often than returned
	Kind ProblemKind
	// Path and Line are the file and the place in it; the path of something that is
	// no file is the name of its source.
	Path string
	Line int
	// Skill is the skill's name, if it is known.
	Skill string
	// Message says what is wrong, and what to do.
	Message string
	// Err is the error behind it, if there is one.
	Err error
}

// ProblemKind says what became of what has a problem.
type ProblemKind string

// The kinds of problems.
const (
	// NotLoaded is a file that is no skill, or a source that could not be read. The
	// others are there.
	NotLoaded ProblemKind = "not_loaded"
	// Shadowed is a skill that another of its name or id stands in front of.
	Shadowed ProblemKind = "shadowed"
	// Tolerated is a skill that is there, with something wrong about it.
	Tolerated ProblemKind = "tolerated"
	// Violation is what [Check] finds.
	Violation ProblemKind = "violation"
)

// Error is the problem in a line: path:line: message.
func (p *Problem) Error() string {
	switch {
	case p.Path != "" && p.Line > 0:
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message)
	case p.Path != "":
		return p.Path + ": " + p.Message
	default:
		return p.Message
	}
}

// Unwrap returns the error behind it.
func (p *Problem) Unwrap() error { return p.Err }

// problemsOf takes the problems out of an error, and makes one of what is none.
func problemsOf(err error, source string) []Problem {
	if err == nil {
		return nil
	}
	if p, ok := err.(*Problem); ok { //nolint:errorlint // what wraps a problem says more than it
		return []Problem{*p}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []Problem
		for _, e := range joined.Unwrap() {
			all = append(all, problemsOf(e, source)...)
		}
		return all
	}
	return []Problem{{Kind: NotLoaded, Path: source, Message: err.Error(), Err: err}}
}

// joined makes one error of problems.
func joined(problems []Problem) error {
	all := make([]error, len(problems))
	for i := range problems {
		all[i] = &problems[i]
	}
	return errors.Join(all...)
}
