package toolbox

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/recorded"
)

// rememberedFiles is how many read files the process remembers, in all sessions together.
// It forgets the least recently used file first.
const rememberedFiles = 10_000

// sum is a hash of a file's content.
type sum [sha256.Size]byte

// memory records which content of a file each session has seen in this process. The results in
// the transcript say the same for other processes. It is safe for concurrent use.
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

// knows returns what the process knows that a session has seen of a file.
func (m *memory) knows(session string, at spot) (content sum, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.files[seenBy{session, at.id()}]
	if !ok {
		return sum{}, false
	}
	m.order.MoveToFront(e)
	return e.Value.(seenFile).sum, true
}

// check returns a failure if the session of a call has not seen the current content of a file. It
// asks the transcript about what the process does not know: another one may have run the session
// in the meantime.
func (m *memory) check(ctx context.Context, call *belay.Invocation, at spot, content sum) error {
	last, ok := m.knows(call.Session, at)
	if ok && last == content {
		return nil
	}
	seen, err := seenIn(ctx, call, at)
	switch {
	case err != nil:
		return err
	case seen == content.text():
		m.saw(call.Session, at, content)
		return nil
	case !ok && seen == "":
		return failf(belay.ClassDenied, "%q was not read in this session, so nothing was changed. Read it first, then make the call again.", at.shown)
	default:
		return failf(belay.ClassDenied, "%q has changed since it was read, so nothing was changed. Read it again, then adapt the call to the new content.", at.shown)
	}
}

// text returns the form of a sum in a view.
func (s sum) text() string { return hex.EncodeToString(s[:]) }

// seenIn returns the sum of what the transcript says that the session has seen last of a file, or
// "". The results of the current step are not stored yet.
func seenIn(ctx context.Context, call *belay.Invocation, at spot) (seen string, err error) {
	controls := call.Controls()
	if controls == nil { // outside a turn there is no transcript
		return "", nil
	}
	if seen, err = recorded.Seen(controls.Messages(ctx), at.shown); err != nil {
		return "", fmt.Errorf("read the transcript: %w", err)
	}
	return seen, nil
}
