package serve

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
)

type noInput struct{}

func listHooks(ctx context.Context, s *Server, _ *request, _ *noInput) (api.HookList, error) {
	all, err := s.project.Hooks(ctx)
	return api.HookList{Hooks: orEmpty(all)}, err
}

// orEmpty makes a list that is an empty JSON array, and not null.
func orEmpty[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// plans reads the plans of the project.
func (s *Server) plans(ctx context.Context, in *api.PlanHooks) ([]inspect.Plan, error) {
	if in.Phase != "" && !slices.ContainsFunc(belay.Phases(), func(p hook.AnyPhase) bool { return p.Name() == in.Phase }) {
		return nil, invalid("/phase", "there is no phase %q", in.Phase)
	}
	if in.Agent != "" {
		if err := s.project.CheckAgent(in.Agent); err != nil {
			return nil, invalid("/agent", "%v", err)
		}
	}
	return s.project.Plans(ctx, in.Phase, in.Agent)
}

func planHooks(ctx context.Context, s *Server, _ *request, in *api.PlanHooks) (api.PlanList, error) {
	all, err := s.plans(ctx, in)
	out := api.PlanList{Plans: []api.Plan{}}
	for i := range all {
		p := &all[i]
		one := api.Plan{Phase: p.Phase, Kind: p.Kind.String(), Entries: []api.PlanEntry{}, Disabled: p.Disabled, Agent: p.Agent, Own: p.Own, OfAgents: p.OfAgents}
		for _, e := range p.Entries {
			entry := api.PlanEntry{
				Position: e.Position, ID: e.ID, Name: e.Name, Priority: e.Priority, After: e.After, Stage: e.Stage, Runs: e.Runs, Execution: e.Execution.String(), Failure: e.Failure.String(),
				Match: e.Match, Capabilities: orEmpty(e.Capabilities.Names()), Rewrites: e.Rewrites, Shadow: e.Shadow, Origin: e.Origin, Why: e.Why,
			}
			if e.Timeout > 0 {
				entry.Timeout = e.Timeout.String()
			}
			one.Entries = append(one.Entries, entry)
		}
		out.Plans = append(out.Plans, one)
	}
	return out, err
}

// hookTrust lists the trusted directories. Only operators see the texts of changed files.
func hookTrust(_ context.Context, s *Server, q *request, _ *noInput) (api.TrustList, error) {
	all, err := s.project.Trust()
	for i := range all {
		for j := range all[i].Changes {
			if !q.token.may(RoleAdmin) {
				all[i].Changes[j].Diff = ""
			}
		}
	}
	return api.TrustList{Directories: orEmpty(all)}, err
}

func readWorkers(ctx context.Context, s *Server, _ *request, _ *noInput) (api.Workload, error) {
	return inspect.WorkloadOf(ctx, s.store)
}

func listSkills(ctx context.Context, s *Server, q *request, _ *noInput) (api.SkillList, error) {
	all, err := s.project.Skills(ctx)
	for i := range all {
		all[i].Path = q.token.path(all[i].Path)
	}
	return api.SkillList{Skills: orEmpty(all)}, err
}

func listAgents(ctx context.Context, s *Server, q *request, _ *noInput) (api.AgentList, error) {
	all, err := s.project.Agents(ctx)
	for i := range all {
		all[i].Path = q.token.path(all[i].Path)
		all[i].Tools, all[i].Skills = orEmpty(all[i].Tools), orEmpty(all[i].Skills)
	}
	return api.AgentList{Agents: orEmpty(all)}, err
}

func listModels(ctx context.Context, s *Server, q *request, _ *noInput) (api.Models, error) {
	all, err := s.project.Models()
	if err != nil {
		return api.Models{}, err
	}
	all = q.token.models(all)
	out := api.Models{Model: all.Model, Problem: all.Problem, Providers: []api.Provider{}, Object: "list", Data: []api.OpenAIModel{{ID: host.Main, Object: "model", OwnedBy: "belay"}}}
	for i := range all.Providers {
		out.Providers = append(out.Providers, all.Providers[i].Provider)
	}
	agents, err := s.project.Agents(ctx)
	for i := range agents {
		if len(agents[i].Mistakes) == 0 {
			out.Data = append(out.Data, api.OpenAIModel{ID: agents[i].Name, Object: "model", OwnedBy: "belay"})
		}
	}
	return out, err
}

func readSelf(_ context.Context, _ *Server, q *request, _ *noInput) (api.Self, error) {
	out := api.Self{Name: q.token.Name, Roles: []string{}, Labels: q.token.Labels}
	for _, role := range q.token.Roles {
		out.Roles = append(out.Roles, string(role))
	}
	return out, nil
}
