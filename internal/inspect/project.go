package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/spill"
	"github.com/belay-run/belay/serve/api"
)

// Project describes the project of a host. Each method reads the files again, so that it
// shows the present state.
type Project struct {
	From     *assembly.Assembler
	Settings func() (*config.Loaded, error)
}

// hooks opens the hooks that apply to the turns of an agent of the project, and calls f with
// them.
func (p *Project) hooks(ctx context.Context, agent string, f func(*Hooks) error) (err error) {
	settings, err := p.Settings()
	if err != nil {
		return err
	}
	v, err := OpenHooks(ctx, p.From, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close(ctx)) }()
	if err := v.As(ctx, agent); err != nil {
		return err
	}
	return f(v)
}

// Hooks lists the hooks of the project.
func (p *Project) Hooks(ctx context.Context) (all []api.HookLine, err error) {
	err = p.hooks(ctx, "", func(v *Hooks) error {
		check, err := NewHookCheck(v.Settings)
		if err == nil {
			all = v.List(check)
		}
		return err
	})
	return all, err
}

// Plans returns the order of the hooks of a phase, or of all phases that have hooks. An
// agent name selects the turns of that declared agent.
func (p *Project) Plans(ctx context.Context, phase, agent string) (plans []Plan, err error) {
	err = p.hooks(ctx, agent, func(v *Hooks) error {
		check, err := NewHookCheck(v.Settings)
		if err != nil {
			return err
		}
		lines := v.List(check)
		for _, at := range belay.Phases() {
			if phase != "" && at.Name() != phase {
				continue
			}
			plan, err := v.Plan(at.Name(), lines)
			if err != nil {
				return err
			}
			if phase != "" || len(plan.Entries)+len(plan.Disabled)+len(plan.OfAgents) > 0 {
				plans = append(plans, plan)
			}
		}
		return nil
	})
	return plans, err
}

// Trust lists the directories that the user has trusted.
func (p *Project) Trust() ([]api.Trust, error) {
	settings, err := p.Settings()
	if err != nil {
		return nil, err
	}
	return ListTrust(settings)
}

// Skills lists the skills of the project.
func (p *Project) Skills(ctx context.Context) ([]api.Skill, error) {
	settings, err := p.Settings()
	if err != nil {
		return nil, err
	}
	var all []api.Skill
	for _, s := range assembly.AllSkills(ctx, settings).List() {
		all = append(all, SkillOf(s))
	}
	return all, nil
}

// Agents lists the declared agents.
func (p *Project) Agents(ctx context.Context) ([]api.Agent, error) {
	settings, err := p.Settings()
	if err != nil {
		return nil, err
	}
	own, _ := assembly.Agents(settings)
	spaces := assembly.SpacesHere(settings)
	check, err := p.From.NewAgentCheck(ctx, settings)
	if err != nil {
		return nil, err
	}
	var all []api.Agent
	for _, d := range assembly.AddSpaceAgents(own, spaces) {
		all = append(all, AgentOf(d, spaces, check.Mistakes(d)))
	}
	return all, nil
}

// CheckAgent returns an error if no agent has this name.
func (p *Project) CheckAgent(name string) error {
	settings, err := p.Settings()
	if err != nil {
		return err
	}
	own, _ := assembly.Agents(settings)
	names := []string{assembly.MainAgent}
	for _, d := range assembly.AddSpaceAgents(own, assembly.SpacesHere(settings)) {
		names = append(names, d.Name)
	}
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("%w: %q%s", assembly.ErrNoAgent, name, near.Hint(name, names))
}

// CheckModel returns an error if the name of a model is invalid.
func (p *Project) CheckModel(name string) error {
	settings, err := p.Settings()
	if err != nil {
		return err
	}
	_, _, err = settings.ModelOf(name)
	return err
}

// Models lists the providers and the models that are known without a request. It leaves out
// keys.
func (p *Project) Models() (*Models, error) {
	settings, err := p.Settings()
	if err != nil {
		return nil, err
	}
	o, err := ListModels(settings, nil)
	if err != nil {
		return nil, err
	}
	o.List(settings)
	for i := range o.Providers {
		one := &o.Providers[i]
		one.Key, one.KeyFrom, one.Detail, one.Remedy = "", "", "", ""
	}
	return o, nil
}

// CheckScope returns an error if a pattern cannot be the scope of an approval.
func (p *Project) CheckScope(ctx context.Context, store belay.ListStore, approval *belay.Approval, pattern string) error {
	settings, err := p.Settings()
	if err != nil {
		return err
	}
	return CheckScope(ctx, p.From, settings, store, approval, pattern)
}

// Delete removes a session, the files of its long results and its snapshots.
func (p *Project) Delete(ctx context.Context, store belay.ManageStore, session string) error {
	settings, err := p.Settings()
	if err != nil {
		return err
	}
	if err := store.Delete(ctx, session); err != nil {
		return err
	}
	return errors.Join(
		spill.Remove(assembly.SpillDir(settings), session),
		p.From.OpenSnapshots(settings).Delete(session),
	)
}

// MayRead reports whether the floor lets the main agent read a file, perhaps with approval.
func (p *Project) MayRead(ctx context.Context, path string) (bool, error) {
	settings, err := p.Settings()
	if err != nil {
		return false, err
	}
	floor, err := p.From.NewFloor(ctx, settings, assembly.SpillDir(settings))
	if err != nil {
		return false, err
	}
	input, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return floor.Of(nil).Explain(ctx, "read", input).Decision != belay.ToolDeny, nil
}
