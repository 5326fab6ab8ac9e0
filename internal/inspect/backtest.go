package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/space"
)

// Changes are the changes of a project's policy that a backtest tries. The zero value tries
// the policy as its files are now.
type Changes struct {
	// Hooks is a directory that replaces .belay of the project. Defaults to none.
	Hooks string
	// Rules is the content of a file whose key permit has the rules and guards that replace
	// those of the settings. RulesFile is its name, for errors. Defaults to none.
	Rules     []byte
	RulesFile string
	// Mode is the mode of the floor. Defaults to that of the settings.
	Mode string
}

// Backtest replays recorded sessions against the policy of the project, with changes.
// Unless opts allows effects, the programs of hooks run in a sandbox where they change
// nothing, and webhooks are not called.
func (p *Project) Backtest(ctx context.Context, records backtest.Records, c *Changes, opts *backtest.Options) (report *backtest.Report, err error) {
	settings, err := p.changed(c)
	if err != nil {
		return nil, err
	}
	o := p.From.Options
	o.Place, o.Trial = c.Hooks, !opts.AllowEffects
	from := assembly.New(&o)
	v, err := OpenHooks(ctx, from, settings)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close(ctx)) }()
	floor, err := from.NewFloor(ctx, settings, assembly.SpillDir(settings))
	if err != nil {
		return nil, err
	}
	try := *opts
	canTry := from.CanTry(ctx, settings)
	notes := v.Notes()
	try.Effects = func(sub hook.Subscription) string {
		why, kind := backtest.Effects(sub), sub.Options().Kind
		n, noted := notes.Of(sub.Phase().Name(), sub.ID(), sub.Options().Origin)
		if kind == hook.HandlerWebhook && noted && n.Closed {
			return "" // it denies, and a trial sends no request even if the grant comes now
		}
		if kind != hook.HandlerCommand && kind != hook.HandlerWorker {
			return why
		}
		if !canTry {
			return why + ", and there is no sandbox to try it in"
		}
		return ""
	}
	closed := v.closed(func(sub hook.Subscription) bool { return try.AllowEffects || try.Effects(sub) == "" })
	if err := refused(closed, c.Hooks); err != nil {
		return nil, err
	}
	common := &backtest.Policy{Hooks: v.Runtime.Subscriptions(), Grants: v.Places.Host.Grants, Floor: floor}
	try.PolicyOf = func(_ context.Context, agent string) (*backtest.Policy, error) {
		return v.policyOf(from, agent, common, floor), nil
	}
	if report, err = backtest.Run(ctx, records, common, &try); err != nil {
		return nil, err
	}
	for _, gate := range closed {
		denied := func(h backtest.HookTotal) bool { return h.ID == gate.id && h.Phase == gate.phase && h.Denied > 0 }
		if slices.ContainsFunc(report.Hooks, denied) {
			report.Notes = append(report.Notes, gate.String())
		}
	}
	return report, nil
}

// changed returns the settings of the project with the changes.
func (p *Project) changed(c *Changes) (*config.Loaded, error) {
	settings, err := p.Settings()
	if err != nil {
		return nil, err
	}
	if c.Mode != "" {
		if _, err := permit.ModeOf(c.Mode); err != nil {
			return nil, &assembly.Error{Err: err, Mistake: true}
		}
		if err := settings.Override("mode", "mode", c.Mode); err != nil {
			return nil, &assembly.Error{Err: err, Mistake: true}
		}
	}
	if c.Rules != nil {
		if err := settings.ReplaceRules(c.RulesFile, c.Rules); err != nil {
			return nil, &assembly.Error{Err: err, Mistake: true}
		}
	}
	if c.Hooks == "" {
		return settings, nil
	}
	if c.Hooks, err = filepath.Abs(c.Hooks); err != nil {
		return nil, fmt.Errorf("hooks: %w", err)
	}
	if !isDir(filepath.Join(c.Hooks, "hooks")) {
		if inner := filepath.Join(c.Hooks, ".belay"); isDir(filepath.Join(inner, "hooks")) {
			return nil, &assembly.Error{Err: fmt.Errorf("%s has no directory hooks, but %s has one", c.Hooks, inner), Mistake: true, Hint: "use --hooks " + inner}
		}
		return nil, &assembly.Error{Err: fmt.Errorf("%s has no directory hooks: give a directory in the form of .belay, with files in hooks/", c.Hooks), Mistake: true}
	}
	return settings, nil
}

// isDir reports whether a path is a directory.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// closedGate is a gate that denies everything, because its directory is not trusted or lacks a
// grant.
type closedGate struct {
	id, phase, reason string
	place             *space.Space
	hint              string // what helps, or ""
}

// String says what the gate does, and why.
func (g *closedGate) String() string {
	what := "call"
	if g.phase == belay.UserPromptSubmit.Name() {
		what = "message"
	}
	return fmt.Sprintf("hook %s would deny every %s: %s", g.id, what, g.reason)
}

// closed returns the closed gates that would be asked, also those of agents. A backtest reports that
// they deny everything that they match.
func (v *Hooks) closed(asked func(hook.Subscription) bool) []*closedGate {
	notes := v.Notes()
	subs := v.Runtime.Subscriptions()
	for _, h := range v.OfAgents {
		subs = append(subs, h.Sub)
	}
	var all []*closedGate
	for _, sub := range subs {
		opts := sub.Options()
		n, noted := notes.Of(sub.Phase().Name(), sub.ID(), opts.Origin)
		place := v.Places.Of(opts.Origin.File)
		if !noted || !n.Closed || !asked(sub) || place == nil {
			continue
		}
		gate := &closedGate{id: sub.ID(), phase: sub.Phase().Name(), reason: n.Reason, place: place}
		switch standing, _ := v.Places.Host.Standing(place); {
		case opts.Kind != hook.HandlerWebhook:
			gate.hint = "if you trust its programs: belay trust " + place.Dir
		case !standing.Trusted, standing.Record != nil && !slices.Contains(standing.Record.Grants, space.GrantWebhook):
			gate.hint = "if you trust its programs and webhooks: belay trust --grant webhook " + place.Dir
		}
		all = append(all, gate)
	}
	return all
}

// refused returns an error if gates in a directory that is tried are closed. A backtest would report
// that everything is denied.
func refused(closed []*closedGate, dir string) error {
	var problems []error
	var hint string
	for _, gate := range closed {
		if dir != "" && gate.place.Dir == resolved(dir) {
			problems, hint = append(problems, errors.New(gate.String())), cmp.Or(hint, gate.hint)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &assembly.Error{Err: errors.Join(problems...), Mistake: true, Hint: hint}
}

// resolved follows the links of a path.
func resolved(dir string) string {
	if direct, err := filepath.EvalSymlinks(dir); err == nil {
		return direct
	}
	return dir
}

// policyOf returns the policy for the turns of an agent, or nil if it is the common one.
func (v *Hooks) policyOf(from *assembly.Assembler, agent string, common *backtest.Policy, floor *assembly.Floor) *backtest.Policy {
	if agent == assembly.MainAgent {
		return nil
	}
	d, err := from.FindAgent(v.Settings, agent)
	if err != nil {
		return nil // the agent is no longer declared, or was never
	}
	own := *common
	own.Hooks = slices.Clone(common.Hooks)
	place := v.Places.Of(d.Path)
	for _, h := range v.OfAgents {
		taken := slices.ContainsFunc(own.Hooks, func(sub hook.Subscription) bool {
			return sub.ID() == h.Sub.ID() && sub.Phase().Name() == h.Sub.Phase().Name()
		})
		if h.Agent == agent && h.Place == place && !taken {
			own.Hooks = append(own.Hooks, h.Sub)
		}
	}
	own.Hooks = append(own.Hooks, assembly.LimitHooks(d, floor)...)
	own.Floor = floor.InMode(d.Mode)
	return &own
}
