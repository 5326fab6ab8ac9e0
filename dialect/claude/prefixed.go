package claude

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay/skill"
)

// Prefixed returns a source with the skills of another source, whose names and ids begin with
// a prefix. The skills of plugins have such names.
// If has is not nil, it says which of them belong to the plugin, by their paths.
func Prefixed(of skill.Source, prefix string, has func(path string) bool) skill.Source { //nolint:ireturn // it is used through the interface
	return &prefixed{of: of, prefix: prefix, has: has}
}

type prefixed struct {
	of     skill.Source
	prefix string
	has    func(path string) bool

	mu   sync.Mutex
	made map[*skill.Skill]*skill.Skill // by the skill of the other source
}

func (p *prefixed) List(ctx context.Context) ([]*skill.Skill, error) {
	skills, err := p.of.List(ctx)
	if skills == nil {
		return nil, err
	}
	if p.has != nil {
		skills = slices.DeleteFunc(slices.Clone(skills), func(one *skill.Skill) bool { return !p.has(one.Path) })
		err = p.without(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	made := make(map[*skill.Skill]*skill.Skill, len(skills))
	all := make([]*skill.Skill, len(skills))
	for i, one := range skills {
		all[i] = p.made[one]
		if all[i] == nil {
			renamed := *one
			renamed.Name = p.prefix + one.Name
			renamed.ID = p.prefix + one.ID
			all[i] = &renamed
		}
		made[one] = all[i]
	}
	p.made = made
	return all, err
}

func (p *prefixed) Read(ctx context.Context, id, section string) (skill.Reading, error) {
	r, err := p.of.Read(ctx, strings.TrimPrefix(id, p.prefix), section)
	r.Name = p.prefix + r.Name
	return r, err
}

// without returns the problems that the error of a source joins, but not those of files that do
// not belong to the plugin.
func (p *prefixed) without(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		joined = joinedErrors{err}
	}
	var left []error
	for _, one := range joined.Unwrap() {
		if problem, ok := errors.AsType[*skill.Problem](one); one != nil && (!ok || p.has(problem.Path)) {
			left = append(left, one)
		}
	}
	return errors.Join(left...)
}

type joinedErrors []error

func (j joinedErrors) Unwrap() []error { return j }
