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

// longestID bounds the ids of sessions: those of children grow with their depth, and
// stores have them in an index.
const longestID = 256

// freshSession is the id of the session for one task of a call: the same when the call
// is resumed, by whatever process. The nth task of a call that has several counts from 1.
func freshSession(call *belay.Invocation, nth int) string {
	own := fmt.Sprintf("%s.%d.%s", call.Turn, call.Step, call.ID)
	if nth > 0 {
		own += "." + strconv.Itoa(nth)
	}
	return below(call.Session, own)
}

// durableSession is the id of the session that a subagent has for a parent's. No dot is
// in a name, so that it is never a fresh one's.
func durableSession(call *belay.Invocation, name string) string { return below(call.Session, name) }

func below(parent, own string) string {
	id := parent + "/" + own
	if len(id) <= longestID {
		return id
	}
	sum := sha256.Sum256([]byte(parent))
	return hex.EncodeToString(sum[:16]) + "/" + own
}

// look reads how a session stands. Nobody else may hold it.
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

// ended is the turn that a session ended with: what was parked has been finished
// elsewhere.
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

// queue has the tasks of one durable session wait for one another.
type queue struct {
	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	slot chan struct{}
	in   int // those who wait or have the slot
}

// enter waits until the session is free. Leave it when the task is over.
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

// parked remembers, for durable sessions, the turn of the parent in which a child was
// parked: as long as that turn waits, the child's does, and another task must not end it.
// Another process need not know. There the parent's turn is resumed before it makes new
// calls, or was given up.
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
