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

// longestID bounds the ids of sessions: ids of children grow with their depth, and
// stores index them.
const longestID = 256

// freshSession returns the session id for one task of a call. It is the same when another
// process resumes the call. Tasks of a call are numbered from 1.
func freshSession(call *belay.Invocation, nth int) string {
	own := fmt.Sprintf("%s.%d.%s", call.Turn, call.Step, call.ID)
	if nth > 0 {
		own += "." + strconv.Itoa(nth)
	}
	return below(call.Session, own)
}

// durableSession returns the id of a subagent's session for a parent session. Names
// contain no dot, so it never equals a fresh id.
func durableSession(call *belay.Invocation, name string) string { return below(call.Session, name) }

func below(parent, own string) string {
	id := parent + "/" + own
	if len(id) <= longestID {
		return id
	}
	sum := sha256.Sum256([]byte(parent))
	return hex.EncodeToString(sum[:16]) + "/" + own
}

// look reads the state of a session. It fails if another holder has the
// session.
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

// ended returns the last turn of a session: another process has finished the
// parked turn.
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

// queue runs the tasks of one durable session one after the other.
type queue struct {
	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	slot chan struct{}
	in   int // tasks that wait or hold the slot
}

// enter waits until the session is free. Call leave when the task is over.
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

// parked remembers, for durable sessions, the parent's turn in which a child was parked.
// As long as that turn waits, the child waits too, and another task must not end it.
// Other processes do not need this: there the parent's turn is resumed before it makes
// new calls, or it was abandoned.
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
