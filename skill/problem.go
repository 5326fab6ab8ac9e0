package skill

import (
	"errors"
	"fmt"
)

// Problem describes what is wrong with a skill, a file or a source, and where. Do not
// show problems to a model: they also name hidden skills.
type Problem struct { //nolint:errname // it is mostly data, rarely an error
	Kind ProblemKind
	// Path and Line are the file and the line. If there is no file, Path is the name of
	// the source.
	Path string
	Line int
	// Skill is the skill's name, if it is known.
	Skill string
	// Message explains what is wrong and what to do.
	Message string
	// Err is the underlying error, if any.
	Err error
}

// ProblemKind says what a problem leads to.
type ProblemKind string

// The kinds of problems.
const (
	// NotLoaded means that a file or a source could not be loaded. The other files and
	// sources are loaded.
	NotLoaded ProblemKind = "not_loaded"
	// Shadowed means that a skill is hidden by another skill with the same name or id.
	Shadowed ProblemKind = "shadowed"
	// Tolerated means that a skill is loaded in spite of a mistake.
	Tolerated ProblemKind = "tolerated"
	// Violation is a violation of the specification that [Check] found.
	Violation ProblemKind = "violation"
)

// Error returns the problem in one line: path:line: message.
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

// Unwrap returns the underlying error.
func (p *Problem) Unwrap() error { return p.Err }

// problemsOf returns all problems in a joined error. It makes a problem of any other
// error.
func problemsOf(err error, source string) []Problem {
	if err == nil {
		return nil
	}
	if p, ok := err.(*Problem); ok { //nolint:errorlint // an error that wraps a problem says more
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

func joined(problems []Problem) error {
	all := make([]error, len(problems))
	for i := range problems {
		all[i] = &problems[i]
	}
	return errors.Join(all...)
}
