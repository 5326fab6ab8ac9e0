package serve

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/inspect"
)

type noInput struct{}

// hookList lists the hooks of the project.
type hookList struct {
	Hooks []inspect.HookLine `json:"hooks"`
}

func listHooks(ctx context.Context, s *Server, _ *request, _ *noInput) (hookList, error) {
	all, err := s.project.Hooks(ctx)
	return hookList{orEmpty(all)}, err
}

// orEmpty makes a list that is an empty JSON array, and not null.
func orEmpty[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

type planIn struct {
	Phase string `json:"phase,omitempty" in:"query" jsonschema:"the phase; by default all phases that have hooks"`
	Agent string `json:"agent,omitempty" in:"query" jsonschema:"show the turns of this declared agent, with its own hooks"`
}

// planEntry is one hook in a plan.
type planEntry struct {
	Position     int         `json:"position" jsonschema:"counted from 1"`
	ID           string      `json:"id"`
	Name         string      `json:"name,omitempty"`
	Priority     int         `json:"priority"`
	After        []string    `json:"after,omitempty" jsonschema:"the hooks directly before it"`
	Stage        int         `json:"stage" jsonschema:"hooks of one stage run together"`
	Runs         string      `json:"runs" jsonschema:"inline, overlapping, detached or queued"`
	Execution    string      `json:"execution"`
	Timeout      string      `json:"timeout,omitempty"`
	Failure      string      `json:"failure"`
	Match        string      `json:"match,omitempty"`
	Capabilities []string    `json:"capabilities"`
	Rewrites     bool        `json:"rewrites,omitempty"`
	Shadow       bool        `json:"shadow,omitempty"`
	Origin       hook.Origin `json:"origin"`
	Why          string      `json:"why" jsonschema:"the reason for the position"`
}

// plan is the order of the hooks of a phase.
type plan struct {
	Phase    string             `json:"phase"`
	Kind     string             `json:"kind"`
	Entries  []planEntry        `json:"entries"`
	Disabled []string           `json:"disabled,omitempty"`
	Agent    string             `json:"agent,omitempty"`
	Own      []string           `json:"own,omitempty" jsonschema:"the hooks that the agent itself declares"`
	OfAgents []inspect.HookLine `json:"of_agents,omitempty" jsonschema:"hooks that run only in the turns of the agents that declare them"`
}

// planList has the order of the hooks of each phase.
type planList struct {
	Plans []plan `json:"plans"`
}

// plans reads the plans of the project.
func (s *Server) plans(ctx context.Context, in *planIn) ([]inspect.Plan, error) {
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

func planHooks(ctx context.Context, s *Server, _ *request, in *planIn) (planList, error) {
	all, err := s.plans(ctx, in)
	out := planList{Plans: []plan{}}
	for i := range all {
		p := &all[i]
		one := plan{Phase: p.Phase, Kind: p.Kind.String(), Entries: []planEntry{}, Disabled: p.Disabled, Agent: p.Agent, Own: p.Own, OfAgents: p.OfAgents}
		for _, e := range p.Entries {
			entry := planEntry{
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

// graph is the order of the hooks as nodes and edges.
type graph struct {
	Nodes []graphNode `json:"nodes"`
	Edges []graphEdge `json:"edges"`
}

type graphNode struct {
	ID    string `json:"id" jsonschema:"the phase, a space and the id of the hook"`
	Phase string `json:"phase"`
	Hook  string `json:"hook"`
	Stage int    `json:"stage"`
	State string `json:"state" jsonschema:"on or off"`
}

type graphEdge struct {
	From string `json:"from" jsonschema:"this hook runs before the other"`
	To   string `json:"to"`
}

func hookGraph(ctx context.Context, s *Server, _ *request, in *planIn) (graph, error) {
	all, err := s.plans(ctx, in)
	out := graph{Nodes: []graphNode{}, Edges: []graphEdge{}}
	for i := range all {
		p := &all[i]
		id := func(hook string) string { return p.Phase + " " + hook }
		for _, e := range p.Entries {
			out.Nodes = append(out.Nodes, graphNode{id(e.ID), p.Phase, e.ID, e.Stage, "on"})
			for _, before := range e.After {
				out.Edges = append(out.Edges, graphEdge{id(before), id(e.ID)})
			}
		}
		for _, off := range p.Disabled {
			out.Nodes = append(out.Nodes, graphNode{id(off), p.Phase, off, 0, "off"})
		}
	}
	return out, err
}

// trustList lists the trusted directories.
type trustList struct {
	Directories []inspect.Trust `json:"directories"`
}

func hookTrust(_ context.Context, s *Server, _ *request, _ *noInput) (trustList, error) {
	all, err := s.project.Trust()
	return trustList{orEmpty(all)}, err
}

func readWorkers(ctx context.Context, s *Server, _ *request, _ *noInput) (inspect.Workload, error) {
	return inspect.WorkloadOf(ctx, s.store)
}

// skillList lists the skills.
type skillList struct {
	Skills []inspect.Skill `json:"skills"`
}

func listSkills(ctx context.Context, s *Server, q *request, _ *noInput) (skillList, error) {
	all, err := s.project.Skills(ctx)
	for i := range all {
		all[i].Path = q.token.path(all[i].Path)
	}
	return skillList{orEmpty(all)}, err
}

// agentList lists the declared agents.
type agentList struct {
	Agents []inspect.Agent `json:"agents"`
}

func listAgents(ctx context.Context, s *Server, q *request, _ *noInput) (agentList, error) {
	all, err := s.project.Agents(ctx)
	for i := range all {
		all[i].Path = q.token.path(all[i].Path)
		all[i].Tools, all[i].Skills = orEmpty(all[i].Tools), orEmpty(all[i].Skills)
	}
	return agentList{orEmpty(all)}, err
}

func listModels(_ context.Context, s *Server, q *request, _ *noInput) (*inspect.Models, error) {
	all, err := s.project.Models()
	if err != nil {
		return nil, err
	}
	return q.token.models(all), nil
}

type usageIn struct {
	Label map[string]string `json:"label,omitempty" in:"query" jsonschema:"only sessions with this label, as NAME=VALUE; may be repeated"`
	Since time.Time         `json:"since,omitzero" in:"query" jsonschema:"only sessions that changed at this time or later; their whole usage counts"`
}

// usage is what sessions have used.
type usage struct {
	Sessions int         `json:"sessions"`
	Turns    int         `json:"turns"`
	Usage    belay.Usage `json:"usage"`
	// Agents is the usage by the agent that ran the last turn of a session.
	Agents map[string]belay.Usage `json:"agents" jsonschema:"by the agent that ran the last turn of a session"`
}

func readUsage(ctx context.Context, s *Server, q *request, in *usageIn) (usage, error) {
	out := usage{Agents: make(map[string]belay.Usage)}
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
	for info, err := range s.pages(ctx, belay.SessionFilter{Labels: labels, Since: in.Since}, pageSize) {
		if err != nil {
			return out, err
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

// self describes the token of the request.
type self struct {
	Name   string            `json:"name"`
	Roles  []Role            `json:"roles"`
	Labels map[string]string `json:"labels,omitempty"`
}

func readSelf(_ context.Context, _ *Server, q *request, _ *noInput) (self, error) {
	return self{q.token.Name, q.token.Roles, q.token.Labels}, nil
}
