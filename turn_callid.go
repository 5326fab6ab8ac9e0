package belay

import (
	"slices"
	"strconv"
)

// callIDs makes the ids of a session's calls unique. Providers require unique ids in a
// whole conversation, but some models start again with the same ids in each message.
type callIDs struct {
	known []countedID
	read  bool // known includes the ids of earlier messages
}

type countedID struct {
	id string
	n  int // how many times the id occurred
}

// An id with at least randomLength characters counts as random and is not checked. callIDs
// remembers at most rememberedSome shorter ids.
const (
	randomLength   = 16
	rememberedSome = 64
)

// apart returns the id, or a new id if an earlier call of the conversation has the same id.
// It returns an id with at least randomLength characters unchanged.
func (c *callIDs) apart(id string, conversation []*Message) string {
	if len(id) >= randomLength {
		return id
	}
	if !c.read {
		c.read = true
		for _, m := range conversation {
			for _, call := range m.Calls() {
				c.count(call.ID)
			}
		}
	}
	for own := id; ; {
		n := c.count(id)
		if n > 1 {
			own = id + "_" + strconv.Itoa(n)
		}
		if own == id || !c.knows(own) {
			return own
		}
	}
}

func (c *callIDs) knows(id string) bool {
	return slices.ContainsFunc(c.known, func(k countedID) bool { return k.id == id })
}

// count remembers an id and returns how many times it has occurred.
func (c *callIDs) count(id string) int {
	at := slices.IndexFunc(c.known, func(k countedID) bool { return k.id == id })
	if at < 0 {
		if len(c.known) >= rememberedSome {
			c.known = slices.Delete(c.known, 0, 1)
		}
		c.known = append(c.known, countedID{id: id})
		at = len(c.known) - 1
	}
	c.known[at].n++
	return c.known[at].n
}
