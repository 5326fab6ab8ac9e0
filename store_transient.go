package belay

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
)

// transientStore is the store of an agent without Options.Store. It keeps sessions in
// memory until the agent is closed. Package store/memstore also keeps records and jobs in
// memory, and several agents can share it.
type transientStore struct {
	mu       sync.Mutex
	epoch    int64
	sessions map[string]*transientSession
}

type transientSession struct {
	held      bool
	epoch     int64
	messages  []*Message
	response  int64        // the number of the last response
	calls     []CallRecord // the calls of the last response, by index
	approvals []Approval
	asked     int // the index of the first approval of the last response
	state     SessionState
}

var _ Store = (*transientStore)(nil)

func newTransientStore() *transientStore {
	return &transientStore{sessions: make(map[string]*transientSession)}
}

// Open implements Store.
func (t *transientStore) Open(ctx context.Context, id string) (*Stored, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		s = &transientSession{}
		t.sessions[id] = s
	}
	if s.held {
		return nil, ErrHeld
	}
	t.epoch++
	s.held, s.epoch = true, t.epoch
	return &Stored{
		Epoch: s.epoch, Messages: Visible(s.messages), Last: int64(len(s.messages)), Calls: slices.Clone(s.calls),
		Approvals: slices.Clone(s.approvals[s.asked:]), State: s.state.Clone(),
	}, nil
}

// Commit implements Store.
func (t *transientStore) Commit(ctx context.Context, c *Commit) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[c.Session]
	if s == nil || !s.held || s.epoch != c.Epoch {
		return ErrFenced
	}
	last := int64(len(s.messages))
	if m := c.Amended; m != nil && (m.Seq != last || last == 0) {
		return ErrConflict
	}
	for _, m := range c.Messages {
		if last++; m.Seq != last {
			return ErrConflict
		}
	}
	if slices.ContainsFunc(c.Calls, func(call CallRecord) bool { return call.Message < 1 || call.Message > last }) ||
		slices.ContainsFunc(c.Approvals, func(a Approval) bool { return a.Session != c.Session || t.elsewhere(a) }) {
		return ErrConflict
	}
	s.apply(c)
	return nil
}

// elsewhere reports whether another session has an approval with the same id.
func (t *transientStore) elsewhere(a Approval) bool {
	for id, s := range t.sessions {
		if id != a.Session && slices.ContainsFunc(s.approvals, func(have Approval) bool { return have.ID == a.ID }) {
			return true
		}
	}
	return false
}

func (s *transientSession) apply(c *Commit) {
	if c.Amended != nil { // make a new slice: readers may still use the old one
		s.messages = append(slices.Clone(s.messages[:len(s.messages)-1]), c.Amended)
	}
	s.messages = append(s.messages, c.Messages...)
	for _, m := range c.Messages {
		if m.Kind == KindAssistant {
			s.response, s.calls, s.asked = m.Seq, nil, len(s.approvals)
		}
	}
	for _, call := range c.Calls {
		if call.Message != s.response {
			continue
		}
		at, found := slices.BinarySearchFunc(s.calls, call.Index, func(have CallRecord, index int) int { return have.Index - index })
		if !found {
			s.calls = slices.Insert(s.calls, at, CallRecord{})
		}
		s.calls[at] = call
	}
	for _, a := range c.Approvals {
		if a.Decided != nil {
			decided := *a.Decided
			a.Decided = &decided
		}
		switch at := slices.IndexFunc(s.approvals, func(have Approval) bool { return have.ID == a.ID }); {
		case at < 0:
			s.approvals = append(s.approvals, a)
		case s.approvals[at].Decided == nil: // a decision is final
			s.approvals[at] = a
		}
	}
	if c.State != nil {
		s.state = c.State.Clone()
	}
}

// Release implements Store.
func (t *transientStore) Release(_ context.Context, id string, epoch int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[id]; s != nil && s.epoch == epoch {
		s.held = false
	}
	return nil
}

// Read implements Store.
func (t *transientStore) Read(ctx context.Context, id string, after int64) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		messages, err := t.behind(id, after)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, m := range messages {
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			if !yield(m, nil) {
				return
			}
		}
	}
}

func (t *transientStore) behind(id string, after int64) ([]*Message, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		return nil, fmt.Errorf("session %q: %w", id, ErrNotFound)
	}
	return s.messages[min(max(after, 0), int64(len(s.messages))):], nil
}

// Decide implements Store.
func (t *transientStore) Decide(ctx context.Context, d Decision) (Approval, error) {
	if ctx.Err() != nil {
		return Approval{}, context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sessions {
		at := slices.IndexFunc(s.approvals, func(a Approval) bool { return a.ID == d.Approval })
		if at < 0 {
			continue
		}
		if err := s.approvals[at].Accepts(d, time.Now()); err != nil {
			return s.approvals[at], err
		}
		s.approvals[at].Decided = &d
		return s.approvals[at], nil
	}
	return Approval{}, fmt.Errorf("approval %q: %w", d.Approval, ErrNotFound)
}
