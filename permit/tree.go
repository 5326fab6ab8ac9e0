package permit

// tree is a map from names that does not change: with and without make another one,
// and share what is the same. What the shell knows is kept in trees, because every
// branch of a text is analysed from the same state, and compared afterwards.
// The zero value, nil, is empty.
//
// It is a treap: ordered by name, and a heap by a hash of the name, so that two trees
// with the same names have the same shape, however they came about.
type tree[V comparable] struct {
	name        string
	value       V
	rank        uint32
	left, right *tree[V]
}

// rank returns the hash of a name: FNV-1a, mixed once more.
func rank(name string) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	h ^= h >> 16
	return h * 0x85ebca6b
}

// get returns the value of a name.
func (t *tree[V]) get(name string) (value V, ok bool) {
	for t != nil {
		switch {
		case name == t.name:
			return t.value, true
		case name < t.name:
			t = t.left
		default:
			t = t.right
		}
	}
	return value, false
}

// has reports whether there is a value for a name.
func (t *tree[V]) has(name string) bool {
	_, ok := t.get(name)
	return ok
}

// with returns the tree with a value for a name.
func (t *tree[V]) with(name string, value V) *tree[V] {
	if old, ok := t.get(name); ok && old == value {
		return t
	}
	left, _, right := t.split(name)
	return meld(meld(left, &tree[V]{name: name, value: value, rank: rank(name)}), right)
}

// without returns the tree without a name.
func (t *tree[V]) without(name string) *tree[V] {
	if !t.has(name) {
		return t
	}
	left, _, right := t.split(name)
	return meld(left, right)
}

// node returns a tree with other branches.
func (t *tree[V]) node(left, right *tree[V]) *tree[V] {
	if left == t.left && right == t.right {
		return t
	}
	return &tree[V]{t.name, t.value, t.rank, left, right}
}

// split splits a tree at a name.
func (t *tree[V]) split(name string) (left, at, right *tree[V]) {
	switch {
	case t == nil:
		return nil, nil, nil
	case name == t.name:
		return t.left, t, t.right
	case name < t.name:
		left, at, right = t.left.split(name)
		return left, at, t.node(right, t.right)
	default:
		left, at, right = t.right.split(name)
		return t.node(t.left, left), at, right
	}
}

// meld joins two trees. All names of the first come before those of the second.
func meld[V comparable](a, b *tree[V]) *tree[V] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.rank > b.rank || a.rank == b.rank && a.name < b.name:
		return a.node(a.left, meld(a.right, b))
	default:
		return b.node(meld(a, b.left), b.right)
	}
}

// common returns the entries that are equal in both trees. It returns the first itself if
// nothing is lost.
func common[V comparable](a, b *tree[V]) *tree[V] {
	if a == b || a == nil {
		return a
	}
	if b == nil {
		return nil
	}
	left, at, right := b.split(a.name)
	left, right = common(a.left, left), common(a.right, right)
	if at == nil || at.value != a.value {
		return meld(left, right)
	}
	return a.node(left, right)
}

// united returns the names of both trees. It returns the first itself if nothing is new.
func united[V comparable](a, b *tree[V]) *tree[V] {
	if a == b || b == nil {
		return a
	}
	if a == nil {
		return b
	}
	if b.rank > a.rank || b.rank == a.rank && b.name < a.name {
		left, at, right := a.split(b.name)
		if at == nil {
			at = b
		}
		return at.node(united(left, b.left), united(right, b.right))
	}
	left, _, right := b.split(a.name)
	return a.node(united(a.left, left), united(a.right, right))
}
