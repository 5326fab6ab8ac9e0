package assembly

import (
	"context"
	"slices"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/vendorhook"
)

// besideOriginal makes an imported hook do nothing in sessions of the agent from which it was
// imported, as long as that agent's files have the same hook: the agent runs its own hooks,
// and asks Belay, too. A hook that somebody has changed since the import runs.
func besideOriginal(s *config.Loaded, d *declare.Declaration) {
	d.Protocol = &besideProtocol{Protocol: d.Protocol, settings: s, decl: d}
}

type besideProtocol struct {
	declare.Protocol

	settings *config.Loaded
	decl     *declare.Declaration
}

// Ask returns an empty answer if the agent itself runs the hook. It reads the agent's files for
// each event, because the agent reads them again, too.
func (b *besideProtocol) Ask(ctx context.Context, e *worker.Envelope) (*declare.Question, error) {
	if e.Agent == string(b.decl.Dialect.Agent) && hasOriginal(b.settings, b.decl) {
		return &declare.Question{Known: true}, nil
	}
	return b.Protocol.Ask(ctx, e)
}

// hasOriginal reports whether the files of another agent have the same hook.
func hasOriginal(s *config.Loaded, d *declare.Declaration) bool {
	for _, own := range []bool{false, true} {
		_, hooks, _ := VendorHooks(s, d.Dialect.Agent, own) // hooks of a file that cannot be read do not run there
		if slices.ContainsFunc(hooks, func(o *declare.Declaration) bool {
			return slices.ContainsFunc(vendorhook.Source(o), func(from declare.Dialect) bool { return vendorhook.IsCopy(d, &from, o.Argv) })
		}) {
			return true
		}
	}
	return false
}
