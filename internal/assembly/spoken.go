package assembly

import (
	"fmt"
	"slices"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/vendorhook"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/space"
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
		p.wakes.Use(&own)
		for _, n := range notes {
			p.Remarks = append(p.Remarks, visible.OneLine(fmt.Sprintf("%s:%d: %s", ShownPath(s, n.File), n.Line, n.Message)))
		}
	}
}

// replaces switches hooks and servers of a directory of another agent off, if Belay's own
// files have them, too: so what "belay import" has copied runs once.
func (p *Places) replaces(s *config.Loaded, place *HookPlace) {
	if serve := place.Servers; serve != nil && place.Origin.Name == projectServersName {
		place.Servers = func() ([]mcptool.Server, []string, error) {
			servers, programs, err := serve()
			own := ownServers(s)
			return slices.DeleteFunc(servers, func(one mcptool.Server) bool { return own[one.Name] != "" }), programs, err
		}
	}
	read, first := place.Read, true
	place.Read = func() ([]*declare.Declaration, error) {
		hooks, err := read()
		place.replaced = 0
		for _, d := range hooks {
			p.wakes.Use(d)
			from := vendorhook.Source(d)
			if len(from) == 0 || slices.ContainsFunc(from, func(f declare.Dialect) bool { return !p.hasSpoken(&f, d, place.Private) }) {
				continue
			}
			d.Options.Disabled, d.Replaced = true, true
			place.replaced += vendorhook.Handlers(d)
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
			if o.Options.Disabled || o.Options.Shadow {
				return false
			}
			return vendorhook.IsCopy(o, from, d.Argv) || vendorhook.IsSuccessor(o, from, d.Argv) && p.trusts(place)
		}) {
			return true
		}
	}
	return false
}

// trusts reports whether the hooks of a place may run. A hook that somebody has changed since
// the import replaces nothing before that: until then it may check less than the original.
func (p *Places) trusts(place *space.Space) bool {
	if place.Origin.Kind == hook.OriginOperator {
		return true
	}
	standing, err := p.Host.Standing(place)
	return err == nil && standing.Trusted
}
