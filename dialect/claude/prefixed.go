package claude

import (
	"context"
	"strings"
	"sync"

	"github.com/belay-run/belay/skill"
)

// Prefixed returns a source with the skills of another source, whose names and ids begin with
// a prefix. The skills of plugins have such names.
func Prefixed(of skill.Source, prefix string) skill.Source { //nolint:ireturn // it is used through the interface
	return &prefixed{of: of, prefix: prefix}
}

type prefixed struct {
	of     skill.Source
	prefix string

	mu   sync.Mutex
	made map[*skill.Skill]*skill.Skill // by the skill of the other source
}

func (p *prefixed) List(ctx context.Context) ([]*skill.Skill, error) {
	skills, err := p.of.List(ctx)
	if skills == nil {
		return nil, err
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
