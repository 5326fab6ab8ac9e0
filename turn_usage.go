package belay

// spend adds usage to the turn and to all its parents.
func (t *turn) spend(u Usage) {
	t.state.Usage = t.state.Usage.add(u)
	if t.lineage != nil {
		t.lineage.charge(t.state.ID, u)
	}
}

// charge adds the usage of a child's turn to all its parents. turn is the id of the child's
// turn. It is empty if another program ran the turn: then only the sum is counted.
func (l *lineage) charge(turn string, u Usage) {
	for ; l != nil && u != (Usage{}); l = l.parent.lineage {
		u = l.parent.wishes.count(turn, u)
		turn = l.parent.state.ID
	}
}

// catchUp adds usage from before a child's turn was resumed or abandoned, if the parent has
// not counted it yet. The parent's process may have been killed before it stored that
// usage.
func (l *lineage) catchUp(child *TurnState) {
	w := &l.parent.wishes
	w.mu.Lock()
	have := w.children[child.ID]
	if ahead := have.minus(child.Usage); ahead != (Usage{}) {
		if w.ahead == nil {
			w.ahead = make(map[string]Usage)
		}
		w.ahead[child.ID] = ahead
	}
	w.mu.Unlock()
	l.charge(child.ID, child.Usage.minus(have))
}

// count adds the usage of a child's turn and returns the new part of it. After catchUp of a
// grandchild, this turn may have counted usage that the child itself has not counted yet.
func (w *wishes) count(turn string, u Usage) Usage {
	w.mu.Lock()
	defer w.mu.Unlock()
	if turn != "" {
		if ahead, ok := w.ahead[turn]; ok {
			u, w.ahead[turn] = u.minus(ahead), ahead.minus(u)
		}
		if w.children == nil {
			w.children = make(map[string]Usage)
		}
		w.children[turn] = w.children[turn].add(u)
	}
	w.spent = w.spent.add(u)
	return u
}
