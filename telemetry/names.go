package telemetry

import "sync"

// names are the names of spans that were made before, so that the steps of a turn need no
// memory for theirs. The zero value is empty.
type names struct {
	mu  sync.RWMutex
	all map[[2]string]string
}

// mostNames is how many names are kept. A program has a few tools and models. A name may also
// come from a server for tools that changes its list.
const mostNames = 1000

// of returns the name with two parts.
func (n *names) of(kind, of string) string {
	key := [2]string{kind, of}
	n.mu.RLock()
	name, ok := n.all[key]
	n.mu.RUnlock()
	if ok {
		return name
	}
	name = kind + of
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = make(map[[2]string]string)
	}
	if len(n.all) < mostNames {
		n.all[key] = name
	}
	return name
}
