package chain

import (
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
)

// Granted knows the grants of the sessions that a store holds. Every commit has the state of
// its session, but the grants in it rarely change. So only a change adds a line to the chain.
type Granted struct {
	mu     sync.Mutex
	hashes map[string]string // by session, only of sessions that have grants
}

// Opened is called when the store has opened a session.
func (g *Granted) Opened(session string, grants []belay.Grant) { g.set(session, GrantsHash(grants)) }

// Changed reports whether a commit changes the grants of its session, and returns the hash of
// the new ones.
func (g *Granted) Changed(c *record.Commit) (hash string, changed bool) {
	if !c.State {
		return "", false
	}
	hash = GrantsHash(c.Grants)
	g.mu.Lock()
	defer g.mu.Unlock()
	return hash, g.hashes[c.Session()] != hash
}

// Stored is called when a commit is durable.
func (g *Granted) Stored(session string, c *record.Commit) {
	if c.State {
		g.set(session, GrantsHash(c.Grants))
	}
}

// Forget is called when the store no longer holds a session.
func (g *Granted) Forget(session string) { g.set(session, "") }

func (g *Granted) set(session, hash string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case hash == "":
		delete(g.hashes, session)
	case g.hashes == nil:
		g.hashes = map[string]string{session: hash}
	default:
		g.hashes[session] = hash
	}
}
