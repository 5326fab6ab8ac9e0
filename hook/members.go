package hook

import "maps"

// members are the subscriptions of one phase, the disabled ones too. Their order
// in the list means nothing. They are a list because looking at ten thousand of
// them one after the other is mostly waiting for memory, and the order in which
// they were added is the order in which they lie there.
type members struct {
	list  []*installed
	index map[string]int32 // by id, where in the list
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

// add puts in a member whose id is not there yet.
func (m *members) add(e *installed) {
	m.index[e.sub.id] = int32(len(m.list))
	m.list = append(m.list, e)
}

// remove takes the member with an id out, if it is there.
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
