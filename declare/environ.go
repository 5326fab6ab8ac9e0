package declare

import (
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/internal/tracecontext"
)

// passed are the variables that every hook gets, besides LC_*.
var passed = []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "SHELL"}

// environ is the environment of the Belay process.
type environ struct {
	host    map[string]string
	common  []string // the variables that every hook gets
	project string
}

func newEnviron(all []string, project string) *environ {
	e := &environ{host: make(map[string]string, len(all)), project: project}
	for _, entry := range all {
		if name, value, ok := strings.Cut(entry, "="); ok {
			e.host[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.host)) {
		if slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") || windowsNeeds(name) {
			e.common = append(e.common, name+"="+e.host[name])
		}
	}
	return e
}

// of returns the environment of a program: the common variables, the variables of the
// declaration, and Belay's own variables. env is nil for a worker, which has no single
// session or phase.
func (e *environ) of(d *Declaration, env *worker.Envelope) []string {
	all := slices.Clone(e.common)
	for _, entry := range d.Env {
		if _, _, literal := strings.Cut(entry, "="); literal {
			all = append(all, entry)
		} else if value, ok := e.host[entry]; ok {
			all = append(all, entry+"="+value)
		}
	}
	all = append(all, "BELAY_PROJECT_DIR="+e.project)
	if env != nil {
		all = append(all, "BELAY_SESSION="+env.Session, "BELAY_PHASE="+env.Phase)
		if env.Traceparent != "" {
			all = append(all, tracecontext.Variable+"="+env.Traceparent)
		}
	}
	return all
}
