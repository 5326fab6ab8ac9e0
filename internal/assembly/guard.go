package assembly

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect/guard"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/space"
)

// A Guarding is the engine with which Belay is a hook of other agents, and everything that
// the engine uses.
type Guarding struct {
	Engine *guard.Engine

	places  *Places
	leases  []*space.Lease
	closers []func(context.Context) error // Close calls the last one first
}

// Guard makes an engine from the hooks, the floor and the store of the settings. The
// caller must call Close, unless Guard returns an error.
func (a *Assembler) Guard(ctx context.Context, s *config.Loaded) (*Guarding, error) {
	g := &Guarding{}
	if err := a.guard(ctx, g, s); err != nil {
		return nil, errors.Join(err, g.Close(ctx))
	}
	return g, nil
}

func (a *Assembler) guard(ctx context.Context, g *Guarding, s *config.Loaded) error {
	own := *s
	own.OtherAgents.Ignore = []string{"all"} // the other agent runs its own hooks
	if g.places = a.openPlaces(ctx, &own, func(d *declare.Declaration) { besideOriginal(s, d) }); g.places.Err != nil {
		return mistake("hooks, spaces or agents have mistakes, and one of them may be a gate: correct these first, `belay check` checks everything:\n%w", g.places.Err)
	}
	floor, err := a.guardFloor(ctx, s)
	if err != nil {
		return err
	}
	store, err := a.OpenStore(ctx, s)
	if err != nil {
		return err
	}
	g.closers = append(g.closers, func(context.Context) error { return store.Close() })
	runtime, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{
		Grants: g.places.Host.Grants, Journal: store.Journal(), Queue: store.Queue(), Failed: a.hookFailed, Logger: a.logger(),
	})
	if err != nil {
		return err
	}
	g.closers = append(g.closers, runtime.Drain)
	if _, err := runtime.Install(a.Hooks...); err != nil {
		return err
	}
	for _, place := range g.places.All {
		lease, err := g.places.Host.Install(ctx, place, &space.Target{Hooks: runtime, Idle: true})
		if err != nil {
			return mistake("%w", err)
		}
		g.leases = append(g.leases, lease)
		g.closers = append(g.closers, lease.Unload)
	}
	var others []string
	for _, rule := range OtherPermissions(ctx, s).Rules {
		others = append(others, rule.Tool)
	}
	g.Engine, err = guard.New(guard.Options{
		Project: s.Project, Hooks: runtime, Floor: floor, Store: store, Expiry: s.Approvals.Expiry, Servers: guardServers(s, g.places, ruleTools(s, others)),
	})
	return err
}

// Changed reports whether hooks, spaces or their permissions differ from those that the
// engine uses.
func (g *Guarding) Changed() bool {
	return slices.ContainsFunc(g.leases, (*space.Lease).Changed)
}

// Close waits for hooks that still run, and closes everything.
func (g *Guarding) Close(ctx context.Context) error {
	var problems []error
	for _, end := range slices.Backward(g.closers) {
		problems = append(problems, end(context.WithoutCancel(ctx)))
	}
	g.closers = nil
	return errors.Join(problems...)
}

// guardFloor makes the floor for the calls of another agent. Belay does not run these
// calls, so its sandbox does not confine them. The floor also knows the tools that only
// other agents have.
func (a *Assembler) guardFloor(ctx context.Context, s *config.Loaded) (*Floor, error) {
	unconfined := *s
	unconfined.Sandbox.Mode = config.SandboxOff
	unconfined.Permit.Tools = guardProfiles(s.Permit.Tools)
	spill := SpillDir(s)
	if err := os.MkdirAll(spill, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory for long results: %w", err)
	}
	return a.NewFloor(ctx, &unconfined, spill)
}

// guardProfiles adds the profiles of tools that only other agents have. The settings can
// replace them.
func guardProfiles(given map[string]permit.Profile) map[string]permit.Profile {
	all := make(map[string]permit.Profile)
	for _, tool := range []string{ // these tools change only the agent's own notes and state
		"TodoRead", "EnterPlanMode", "ToolSearch", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "enter_plan_mode", "report_intent", "LSP",
	} {
		all[tool] = permit.Profile{}
	}
	maps.Copy(all, given)
	return all
}
