package hook

import "maps"

// members are the subscriptions of one phase, including disabled ones. Their order in the
// list has no meaning. They are in a list because reading ten thousand of them in memory
// order is much faster than iterating over a map.
type members struct {
	list  []*installed
	index map[string]int32 // index in the list, by id
}

// clone returns a copy with room for more.
func (m *members) clone(more int) *members {
	n := len(m.list) + more
	c := &members{list: append(make([]*installed, 0, n), m.list...), index: make(map[string]int32, n)}
	maps.Copy(c.index, m.index)
	return c
}

// find returns the member with an id, or nil.
func (m *members) find(id string) *installed {
	if i, ok := m.index[id]; ok {
		return m.list[i]
	}
	return nil
}

// add adds a member whose id is new.
func (m *members) add(e *installed) {
	m.index[e.sub.id] = int32(len(m.list))
	m.list = append(m.list, e)
}

// remove removes the member with an id. It does nothing if there is none.
func (m *members) remove(id string) {
	i, ok := m.index[id]
	if !ok {
		return
	}
	last := len(m.list) - 1
	m.list[i] = m.list[last]
	m.index[m.list[i].sub.id] = i
	m.list[last] = nil
	m.list = m.list[:last]
	delete(m.index, id)
}
