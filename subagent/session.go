package subagent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/belay-run/belay"
)

// longestID is the maximum length of a session id. It is needed because the ids of
// children grow with their depth, and stores index them.
const longestID = 256

// freshSession returns the session id for one task of a call. Another process that
// resumes the call gets the same id. nth numbers the tasks of delegate from 1. It is 0
// for invoke_subagent.
func freshSession(call *belay.Invocation, nth int) string {
	own := fmt.Sprintf("%s.%d.%s", call.Turn, call.Step, call.ID)
	if nth > 0 {
		own += "." + strconv.Itoa(nth)
	}
	return below(call.Session, own)
}

// durableSession returns the session id of a durable subagent for a parent session. It
// never equals an id of freshSession, because names contain no dot.
func durableSession(call *belay.Invocation, name string) string { return below(call.Session, name) }

func below(parent, own string) string {
	id := parent + "/" + own
	if len(id) <= longestID {
		return id
	}
	sum := sha256.Sum256([]byte(parent))
	return hex.EncodeToString(sum[:16]) + "/" + own
}

// look reads the state of a session. It fails if another process has the session open.
func look(ctx context.Context, store belay.Store, session string) (*belay.Stored, error) {
	stored, err := store.Open(ctx, session)
	if err != nil {
		return nil, fmt.Errorf("its session cannot be opened: %w", err)
	}
	if err := store.Release(context.WithoutCancel(ctx), session, stored.Epoch); err != nil {
		return nil, fmt.Errorf("its session %q cannot be released: %w", session, err)
	}
	return stored, nil
}

// ended returns the last turn of a session, which another process has finished.
func ended(stored *belay.Stored) *belay.Turn {
	end := &belay.Turn{Reason: stored.State.Last}
	for _, m := range slices.Backward(stored.Messages) {
		if m.Role == belay.RoleAssistant {
			end.ID, end.Text, end.Steps = m.Turn, m.Text(), m.Step
			break
		}
	}
	return end
}

// queue makes the tasks of one durable session run one after the other.
type queue struct {
	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	slot chan struct{}
	in   int // number of tasks that wait for the slot or have it
}

// enter waits until the session is free. The caller must call leave when the task is
// over.
func (q *queue) enter(ctx context.Context, session string) (leave func(), err error) {
	q.mu.Lock()
	l := q.lines[session]
	if l == nil {
		l = &line{slot: make(chan struct{}, 1)}
		if q.lines == nil {
			q.lines = make(map[string]*line)
		}
		q.lines[session] = l
	}
	l.in++
	q.mu.Unlock()
	gone := func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if l.in--; l.in == 0 {
			delete(q.lines, session)
		}
	}
	select {
	case l.slot <- struct{}{}:
		return func() { <-l.slot; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, fmt.Errorf("it waited for an earlier task of the same subagent: %w", context.Cause(ctx))
	}
}

// parked remembers, for each durable session, the parent's turn in which the child was
// parked. While that turn waits, another task must not end the child. It is enough to
// remember this in memory: in another process, the parent's turn is either resumed before
// it makes new calls, or abandoned.
type parked struct {
	mu    sync.Mutex
	turns map[string]string
}

func (p *parked) set(session, turn string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns == nil {
		p.turns = make(map[string]string)
	}
	p.turns[session] = turn
}

func (p *parked) clear(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.turns, session)
}

func (p *parked) in(session, turn string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return turn != "" && p.turns[session] == turn
}
