package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Agents finds the agent of a name. A worker asks it for each turn. The agents must be
// on the worker's store. What it does not find is left to other workers.
type Agents func(ctx context.Context, name string) (*belay.Agent, error)

// Of finds the given agents by their names.
func Of(agents ...*belay.Agent) Agents {
	byName := make(map[string]*belay.Agent, len(agents))
	var names []string
	for _, a := range agents {
		byName[a.Name()] = a
		names = append(names, a.Name())
	}
	slices.Sort(names)
	return func(_ context.Context, name string) (*belay.Agent, error) {
		if a := byName[name]; a != nil {
			return a, nil
		}
		return nil, fmt.Errorf("there is no agent %q here, but %s: %w", name, strings.Join(names, ", "), belay.ErrNotFound)
	}
}
