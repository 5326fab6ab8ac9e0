package toolbox

import (
	"container/list"
	"crypto/sha256"
	"sync"

	"github.com/belay-run/belay"
)

// rememberedFiles is how many read files the process remembers, in all sessions together.
// It forgets the least recently used file first.
const rememberedFiles = 10_000

// sum is a hash of a file's content.
type sum [sha256.Size]byte

// memory records which content of a file each session has seen. It is safe for concurrent
// use.
type memory struct {
	mu    sync.Mutex
	files map[seenBy]*list.Element
	order *list.List // of seenFile, the most recently used first
	most  int
}

type seenBy struct{ session, file string }

type seenFile struct {
	by  seenBy
	sum sum
}

func newMemory(most int) *memory {
	return &memory{files: map[seenBy]*list.Element{}, order: list.New(), most: most}
}

func (m *memory) saw(session string, at spot, content sum) {
	m.mu.Lock()
	defer m.mu.Unlock()
	by := seenBy{session, at.id()}
	if e, ok := m.files[by]; ok {
		e.Value = seenFile{by, content}
		m.order.MoveToFront(e)
		return
	}
	m.files[by] = m.order.PushFront(seenFile{by, content})
	if m.order.Len() > m.most {
		last := m.order.Back()
		delete(m.files, last.Value.(seenFile).by)
		m.order.Remove(last)
	}
}

// check returns a failure if the session has not seen the current content of a file.
func (m *memory) check(session string, at spot, content sum) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.files[seenBy{session, at.id()}]
	switch {
	case !ok:
		return failf(belay.ClassDenied, "%q was not read in this session, so nothing was changed. Read it first, then make the call again.", at.shown)
	case e.Value.(seenFile).sum != content:
		return failf(belay.ClassDenied, "%q has changed since it was read, so nothing was changed. Read it again, then adapt the call to the new content.", at.shown)
	}
	m.order.MoveToFront(e)
	return nil
}
