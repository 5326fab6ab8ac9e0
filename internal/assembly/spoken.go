package assembly

import (
	"fmt"
	"slices"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/vendorhook"
	"github.com/belay-run/belay/internal/visible"
)

// speak makes a hook with the key dialect run as a hook of the agent that the key names.
func speak(s *config.Loaded, d *declare.Declaration, transcript vendorhook.Transcript) ([]vendorhook.Note, error) {
	agents := agentsWithHooks()
	for i := range agents {
		if agents[i].vendor == d.Dialect.Agent {
			return agents[i].speak(&vendorhook.Options{Project: RealDir(s.Project), Strict: s.OtherAgents.Strict, Mode: s.Mode, Transcript: transcript}, d)
		}
	}
	return nil, fmt.Errorf("dialect: Belay runs no hooks of %s", d.Dialect.Agent.Title())
}

// tellSpoken adds remarks about hooks with the key dialect.
func (p *Places) tellSpoken(s *config.Loaded, hooks []*declare.Declaration) {
	for _, d := range hooks {
		if d.Dialect == nil {
			continue
		}
		own := *d
		notes, _ := speak(s, &own, nil) // installing the hook reports the error
		for _, n := range notes {
			p.Remarks = append(p.Remarks, visible.OneLine(fmt.Sprintf("%s:%d: %s", ShownPath(s, n.File), n.Line, n.Message)))
		}
	}
}

// replaces switches hooks of a directory of another agent off, if Belay's own files have
// them, too: so a hook that "belay import" has copied runs once.
func (p *Places) replaces(s *config.Loaded, place *HookPlace) {
	read, first := place.Read, true
	place.Read = func() ([]*declare.Declaration, error) {
		hooks, err := read()
		for _, d := range hooks {
			from := vendorhook.Source(d)
			if len(from) == 0 || slices.ContainsFunc(from, func(f declare.Dialect) bool { return !p.hasSpoken(&f, d, place.Private) }) {
				continue
			}
			d.Options.Disabled = true
			if first {
				p.Remarks = append(p.Remarks, fmt.Sprintf("%s:%d: this hook does not run, because Belay's own files have it, too", ShownPath(s, d.File), d.Line))
			}
		}
		first = false
		return hooks, err
	}
}

// hasSpoken reports whether Belay's own files have a hook of another agent. A hook of the
// project does not replace one of the user.
func (p *Places) hasSpoken(from *declare.Dialect, d *declare.Declaration, private bool) bool {
	for _, place := range p.All {
		if place.Foreign() != nil || private != (place.Origin.Kind == hook.OriginOperator) || place.Origin.Kind == hook.OriginSpace {
			continue
		}
		if slices.ContainsFunc(place.Hooks, func(o *declare.Declaration) bool {
			return o.Dialect != nil && *o.Dialect == *from && slices.Equal(o.Argv, d.Argv) && !o.Options.Disabled && !o.Options.Shadow
		}) {
			return true
		}
	}
	return false
}
