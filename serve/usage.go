package serve

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

func readUsage(ctx context.Context, s *Server, q *request, in *api.ReadUsage) (api.Usage, error) {
	out := api.Usage{Agents: make(map[string]belay.Usage)}
	store, ok := s.store.(belay.UsageStore)
	if !ok {
		return out, errors.New("the store's usage cannot be added up")
	}
	filter := belay.UsageFilter{Since: in.Since, Until: in.Until, Labels: make(map[string]string)}
	maps.Copy(filter.Labels, q.token.Labels)
	for name, value := range in.Label {
		if limit, ok := filter.Labels[name]; ok && limit != value {
			return out, nil
		}
		filter.Labels[name] = value
	}
	total, err := store.Usage(ctx, filter)
	if err != nil {
		return out, err
	}
	for i := range total { // at most one
		out.Usage, out.Turns, out.Sessions = total[i].Usage, total[i].Turns, total[i].Sessions
	}
	filter.By = belay.ByAgent
	agents, err := store.Usage(ctx, filter)
	if err != nil {
		return out, err
	}
	for i := range agents {
		if agents[i].Key != "" {
			out.Agents[agents[i].Key] = agents[i].Usage
		}
	}
	if in.By == "" {
		return out, nil
	}
	parts := agents
	if by, label, _ := strings.Cut(in.By, ":"); by != string(belay.ByAgent) {
		filter.By, filter.Label = belay.UsageKey(by), label
		parts, err = store.Usage(ctx, filter)
	}
	out.Rows = []api.UsageRow{}
	for i := range parts {
		out.Rows = append(out.Rows, api.UsageRow{Key: parts[i].Key, Usage: parts[i].Usage, Turns: parts[i].Turns, Sessions: parts[i].Sessions})
	}
	return out, err
}
