package serve

import (
	"context"
	"maps"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
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

func hookGraph(ctx context.Context, s *Server, _ *request, in *api.PlanHooks) (api.Graph, error) {
	all, err := s.plans(ctx, in)
	out := api.Graph{Nodes: []api.GraphNode{}, Edges: []api.GraphEdge{}}
	for i := range all {
		p := &all[i]
		id := func(hook string) string { return p.Phase + " " + hook }
		for _, e := range p.Entries {
			out.Nodes = append(out.Nodes, api.GraphNode{ID: id(e.ID), Phase: p.Phase, Hook: e.ID, Stage: e.Stage, State: "on"})
			for _, before := range e.After {
				out.Edges = append(out.Edges, api.GraphEdge{From: id(before), To: id(e.ID)})
			}
		}
		for _, off := range p.Disabled {
			out.Nodes = append(out.Nodes, api.GraphNode{ID: id(off), Phase: p.Phase, Hook: off, State: "off"})
		}
	}
	return out, err
}

func hookTrust(_ context.Context, s *Server, _ *request, _ *noInput) (api.TrustList, error) {
	all, err := s.project.Trust()
	return api.TrustList{Directories: orEmpty(all)}, err
}

func readWorkers(ctx context.Context, s *Server, _ *request, _ *noInput) (api.Workload, error) {
	return inspect.WorkloadOf(ctx, s.store)
}

func listSkills(ctx context.Context, s *Server, q *request, _ *noInput) (api.SkillList, error) {
	all, err := s.project.Skills(ctx)
	for i := range all {
		all[i].Path = q.path(all[i].Path)
	}
	return api.SkillList{Skills: orEmpty(all)}, err
}

// path leaves out the path of a file for tokens that are limited to labels: it tells about
// the machine.
func (q *request) path(path string) string {
	if len(q.token.Labels) > 0 {
		return ""
	}
	return path
}

func listAgents(ctx context.Context, s *Server, q *request, _ *noInput) (api.AgentList, error) {
	all, err := s.project.Agents(ctx)
	for i := range all {
		all[i].Path = q.path(all[i].Path)
		all[i].Tools, all[i].Skills = orEmpty(all[i].Tools), orEmpty(all[i].Skills)
	}
	return api.AgentList{Agents: orEmpty(all)}, err
}

func listModels(_ context.Context, s *Server, _ *request, _ *noInput) (api.Models, error) {
	all, err := s.project.Models()
	if err != nil {
		return api.Models{}, err
	}
	out := api.Models{Model: all.Model, Problem: all.Problem, Providers: []api.Provider{}}
	for i := range all.Providers {
		out.Providers = append(out.Providers, all.Providers[i].Provider)
	}
	return out, nil
}

func readUsage(ctx context.Context, s *Server, q *request, in *api.ReadUsage) (api.Usage, error) {
	out := api.Usage{Agents: make(map[string]belay.Usage)}
	labels := maps.Clone(q.token.Labels)
	if labels == nil {
		labels = make(map[string]string)
	}
	for name, value := range in.Label {
		if limit, ok := labels[name]; ok && limit != value {
			return out, nil
		}
		labels[name] = value
	}
	for info, err := range s.store.Sessions(ctx, belay.SessionFilter{Labels: labels}) {
		if err != nil {
			return out, err
		}
		if info.Changed.Before(in.Since) {
			break // the last changed sessions come first
		}
		if inspect.IsChild(info.ID) {
			continue // its parent's usage includes it
		}
		out.Sessions++
		out.Turns += info.State.Turns
		spent := info.State.Spent()
		out.Usage = addUsage(out.Usage, spent)
		if info.State.Agent != "" {
			out.Agents[info.State.Agent] = addUsage(out.Agents[info.State.Agent], spent)
		}
	}
	return out, nil
}

func readSelf(_ context.Context, _ *Server, q *request, _ *noInput) (api.Self, error) {
	out := api.Self{Name: q.token.Name, Roles: []string{}, Labels: q.token.Labels}
	for _, role := range q.token.Roles {
		out.Roles = append(out.Roles, string(role))
	}
	return out, nil
}
