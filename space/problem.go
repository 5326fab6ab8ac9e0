package space

import (
	"errors"
	"fmt"
	"slices"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/subagent"
)

// Problem is a mistake in a file of a space.
type Problem struct { //nolint:errname // it is mostly data, rarely an error
	Path string
	// Line is the line number, from 1. 0 means the whole file.
	Line int
	// Message says what is wrong and what to do.
	Message string
}

// Error returns the problem in one line, in the form "path:line: message".
func (p *Problem) Error() string {
	if p.Line == 0 {
		return p.Path + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message)
}

// Problems returns the problems that an error of this package joins, in order.
func Problems(err error) []*Problem {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Problem
		for _, e := range joined.Unwrap() {
			all = append(all, Problems(e)...)
		}
		return all
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return []*Problem{p}
	}
	return nil
}

type problems struct{ list []*Problem }

func (p *problems) addf(path string, line int, format string, args ...any) {
	p.list = append(p.list, &Problem{path, line, fmt.Sprintf(format, args...)})
}

// add adds an error. An error that is not a Problem is reported for the whole directory.
func (p *problems) add(dir string, err error) {
	if problem, ok := errors.AsType[*Problem](err); ok {
		p.list = append(p.list, problem)
		return
	}
	p.addf(dir, 0, "%s", reason(err))
}

// declared adds the mistakes in declared hooks. Any other error is reported for the
// directory.
func (p *problems) declared(dir string, err error) {
	faults := declare.Faults(err)
	for _, f := range faults {
		p.addf(f.File, f.Line, "%s", f.Message)
	}
	if err != nil && len(faults) == 0 {
		p.addf(dir, 0, "%v", err)
	}
}

// servers adds the mistakes in a file with MCP servers.
func (p *problems) servers(file string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			p.servers(file, e)
		}
		return
	}
	if f, ok := errors.AsType[*mcptool.FaultError](err); ok {
		p.addf(f.File, f.Line, "%s", f.Message)
	} else if err != nil {
		p.addf(file, 0, "%s", reason(err))
	}
}

func (p *problems) agents(found []subagent.Problem) {
	for _, f := range found {
		p.addf(f.Path, f.Line, "%s", f.Message)
	}
}

func (p *problems) err() error {
	errs := make([]error, 0, len(p.list))
	for _, one := range slices.Compact(p.list) {
		errs = append(errs, one)
	}
	return errors.Join(errs...)
}
