package belay

// spend adds usage to the turn and to all its parents.
func (t *turn) spend(u Usage) {
	t.state.Usage = t.state.Usage.add(u)
	if t.lineage != nil {
		t.lineage.charge(t.state.ID, u)
	}
}

// charge adds the usage of a child's turn to all its parents. turn is the id of the
// child's turn. It is empty if another program ran the turn: then the parents add only
// its total usage.
func (l *lineage) charge(turn string, u Usage) {
	for ; l != nil && u != (Usage{}); l = l.parent.lineage {
		u = l.parent.wishes.count(turn, u)
		turn = l.parent.state.ID
	}
}

// catchUp is called when a child's turn is resumed or abandoned. It adds the earlier
// usage of that turn that the parent has not counted, for example because the parent's
// process was killed before it stored this usage.
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

// count adds the usage of a child's turn, and returns the part that was not counted
// before. Usage may have been counted before: after catchUp of a grandchild, this turn is
// ahead of the child.
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
