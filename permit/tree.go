package permit

// tree is an immutable map with names as keys. with and without return another tree,
// which shares the unchanged parts. The state of the shell is kept in trees: the analysis
// of each branch starts from the same state, and the results are compared. A nil tree is
// empty.
//
// A tree is a treap: ordered by name, and a heap by a hash of the name. So two trees with
// the same names have the same shape, whatever the order of the changes was.
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

func (t *tree[V]) has(name string) bool {
	_, ok := t.get(name)
	return ok
}

// with returns a tree that also has this name and value.
func (t *tree[V]) with(name string, value V) *tree[V] {
	if old, ok := t.get(name); ok && old == value {
		return t
	}
	left, _, right := t.split(name)
	return meld(meld(left, &tree[V]{name: name, value: value, rank: rank(name)}), right)
}

// without returns a tree that lacks this name.
func (t *tree[V]) without(name string) *tree[V] {
	if !t.has(name) {
		return t
	}
	left, _, right := t.split(name)
	return meld(left, right)
}

// node returns t with other branches. If the branches are the same as before, it returns
// t itself.
func (t *tree[V]) node(left, right *tree[V]) *tree[V] {
	if left == t.left && right == t.right {
		return t
	}
	return &tree[V]{t.name, t.value, t.rank, left, right}
}

// split returns the names before a name, the node with the name or nil, and the names
// after it.
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

// meld joins two trees. All names of a must come before all names of b.
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

// common returns the entries that are equal in both trees. It returns a itself if no
// entry is lost.
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

// united returns the entries of both trees. It returns a itself if b adds nothing.
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
