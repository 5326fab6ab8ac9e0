package memstore

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/belay-run/belay"
)

// Open takes a hold on a session and reads it. It creates the session if necessary. Open
// copies no messages, so its cost does not depend on the length of the session. Every hold
// gets a new epoch.
func (s *Store) Open(ctx context.Context, name string) (*belay.Stored, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	se, ok := s.sessions[name]
	if !ok {
		se = &session{}
		s.sessions[name] = se
	}
	if se.held && !se.expired {
		return nil, fmt.Errorf("open session %q: %w", name, belay.ErrHeld)
	}
	s.epoch++
	se.epoch, se.held, se.expired = s.epoch, true, false
	s.touch(se)
	return se.read(), nil
}

// read returns the session as Open returns it. The caller holds the store's lock.
func (se *session) read() *belay.Stored {
	has := se.has()
	visible := has.visible
	if visible == nil {
		visible = se.messages
	}
	stored := &belay.Stored{
		Epoch:    se.epoch,
		Messages: slices.Clip(visible), // a caller that appends gets a new array
		Last:     int64(len(se.messages)),
		Calls:    slices.Clone(has.calls),
		State:    se.remembered(),
	}
	for _, a := range has.approvals[has.asked:] {
		stored.Approvals = append(stored.Approvals, a.copied())
	}
	return stored
}

// remembered returns a copy of the session's state. The caller holds the store's lock.
func (se *session) remembered() belay.SessionState {
	state := se.state.Clone()
	state.Pending = slices.Clip(state.Pending) // a caller that appends gets a new array
	return state
}

// Release releases the hold on a session. It does nothing if the epoch is not that of the
// current hold.
func (s *Store) Release(_ context.Context, name string, epoch int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if se, ok := s.sessions[name]; ok && se.epoch == epoch {
		se.held = false
	}
	return nil
}

// Expire makes the holder of a session count as gone, as if its process had ended. The next
// Open then takes over the session. Until then the holder can still commit. Use Expire only
// in tests.
func (s *Store) Expire(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if se, ok := s.sessions[name]; ok {
		se.expired = true
	}
}

// Read yields the messages of a session with numbers higher than after. The list is a
// snapshot from the start of the iteration.
func (s *Store) Read(ctx context.Context, name string, after int64) iter.Seq2[*belay.Message, error] {
	return func(yield func(*belay.Message, error) bool) {
		messages, err := s.behind(name, after)
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

func (s *Store) behind(name string, after int64) ([]*belay.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	se, ok := s.sessions[name]
	if !ok {
		return nil, fmt.Errorf("read session %q: %w", name, belay.ErrNotFound)
	}
	return se.messages[min(max(after, 0), int64(len(se.messages))):], nil
}
