package serve

import (
	"cmp"
	"context"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
)

// statsSpan is how far back the statistics of hooks go by default.
const statsSpan = 24 * time.Hour

func hookStats(ctx context.Context, s *Server, _ *request, in *api.HookStats) (api.HookStatList, error) {
	journal, err := s.journal()
	if err != nil {
		return api.HookStatList{}, err
	}
	since := in.Since
	if since.IsZero() {
		since = time.Now().Add(-statsSpan)
	}
	return inspect.HookStats(ctx, journal, since, in.Limit)
}

// quarantineSpan is how long a record of a quarantined hook counts.
const quarantineSpan = time.Hour

// quarantined returns the hooks whose newest record says that they are quarantined: too many of
// their runs do not stop.
func quarantined(ctx context.Context, journal hook.ListJournal) (map[string]bool, error) {
	found := make(map[string]bool)
	since := time.Now().Add(-quarantineSpan)
	for r, err := range journal.List(ctx, hook.Filter{States: []hook.State{hook.Failed, hook.Skipped}, Since: since, Newest: true, Limit: 1000}) {
		if err != nil {
			return nil, err
		}
		if r.Class == codes.Quarantined {
			found[r.Subscription] = true
		}
	}
	for id := range found {
		for r, err := range journal.List(ctx, hook.Filter{Subscription: id, Since: since, Newest: true, Limit: 1}) {
			if err != nil {
				return nil, err
			}
			found[id] = r.Class == codes.Quarantined
		}
	}
	return found, nil
}

func hookGraph(ctx context.Context, s *Server, _ *request, in *api.PlanHooks) (api.Graph, error) {
	out := api.Graph{Nodes: []api.GraphNode{}, Edges: []api.GraphEdge{}}
	all, err := s.plans(ctx, in)
	if err != nil {
		return out, err
	}
	journal, err := s.journal()
	if err != nil {
		return out, err
	}
	stuck, err := quarantined(ctx, journal)
	if err != nil {
		return out, err
	}
	for i := range all {
		p := &all[i]
		id := func(hook string) string { return p.Phase + " " + hook }
		node := func(hook string) api.GraphNode {
			line := p.Lines[hook]
			return api.GraphNode{ID: id(hook), Phase: p.Phase, Hook: hook, State: line.State, Untrusted: line.Untrusted, Origin: line.Origin, Why: line.Reason}
		}
		for _, e := range p.Entries {
			one := node(e.ID)
			one.Stage, one.Origin, one.Why = e.Stage, e.Origin, cmp.Or(one.Why, e.Why)
			if one.State = cmp.Or(one.State, "on"); stuck[e.ID] {
				one.State, one.Why = "quarantined", "too many of its runs did not stop after their timeout, so it is not started"
			}
			out.Nodes = append(out.Nodes, one)
			for _, before := range e.After {
				out.Edges = append(out.Edges, api.GraphEdge{From: id(before), To: id(e.ID)})
			}
		}
		for _, off := range p.Disabled {
			one := node(off)
			one.State = cmp.Or(one.State, "off")
			if one.Why == "" {
				one.Why = "its declaration or the settings switch it off"
			}
			out.Nodes = append(out.Nodes, one)
		}
	}
	return out, nil
}
