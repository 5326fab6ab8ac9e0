package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Agents returns the agent with the given name. A worker calls it for each turn. The agents
// must use the worker's store. If Agents returns an error, the worker leaves the turn to
// other workers.
type Agents func(ctx context.Context, name string) (*belay.Agent, error)

// Of returns an Agents function that finds the given agents by name.
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
		return nil, fmt.Errorf("agent %q is not available in this worker, which has %s: %w", name, strings.Join(names, ", "), belay.ErrNotFound)
	}
}
