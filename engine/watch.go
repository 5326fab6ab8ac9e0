package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/belay-run/belay"
)

// Update is what is new in a session that is watched.
type Update struct {
	// Message is the next message; nil if it is the state that is new. Its number is
	// where to go on from: see [Watch].
	Message *belay.Message `json:"message,omitempty"`
	// Info is the session as it was read before this update: which turn is under way,
	// whether it is parked, how the last one ended. Further messages may belong to it;
	// an update without a message comes behind all of them.
	Info belay.SessionInfo `json:"info"`
}

// watchPatience is how long a store may be away before watching fails.
const watchPatience = 30 * time.Second

// Watch yields the messages of a session behind the one numbered after, those that are
// there and those that come, whichever process stores them, until ctx is done, which is
// no error. No message is left out, and none comes twice: whoever was cut off calls it
// again with the number of the last one. Between them it yields the session's state when
// that has changed: states that follow one another quickly are told as one.
//
// It tells what is stored. What the model says before its response is whole is told in
// the process that takes the turn alone: see [belay.Agent.Watch].
func Watch(ctx context.Context, store belay.TurnStore, session string, after int64) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		w := &watching{store: store, session: session, after: after, yield: yield}
		var failing time.Time
		for {
			err := w.run(ctx)
			switch {
			case w.left || ctx.Err() != nil:
				return
			case w.told:
				failing = time.Time{}
			}
			if failing.IsZero() {
				failing = time.Now()
			}
			if errors.Is(err, belay.ErrNotFound) || errors.Is(err, belay.ErrClosed) || time.Since(failing) > watchPatience {
				yield(Update{}, fmt.Errorf("watch session %q from message %d: %w", session, w.after, err))
				return
			}
			rest(ctx, firstPause)
		}
	}
}

// watching is one Watch.
type watching struct {
	store   belay.TurnStore
	session string
	after   int64
	yield   func(Update, error) bool
	state   string
	left    bool // the consumer has left
	told    bool // something was read since run was called
}

// run tells what is new until something fails.
func (w *watching) run(ctx context.Context) error {
	w.told = false
	for info, err := range w.store.Changes(ctx, w.session) {
		if err != nil {
			return err
		}
		w.told = true
		for m, err := range w.store.Read(ctx, w.session, w.after) {
			if err != nil {
				return err
			}
			if !w.yield(Update{Message: m, Info: info}, nil) {
				w.left = true
				return nil
			}
			w.after = m.Seq
		}
		state := stateOf(&info)
		if state == w.state {
			continue
		}
		w.state = state
		if !w.yield(Update{Info: info}, nil) {
			w.left = true
			return nil
		}
	}
	return context.Cause(ctx)
}

// stateOf tells states apart.
func stateOf(info *belay.SessionInfo) string {
	s := &info.State
	if s.Turn == nil {
		return fmt.Sprint(s.Turns, " ", s.Last)
	}
	return fmt.Sprint(s.Turns, " ", s.Turn.ID, " ", s.Turn.Parked, " ", s.Turn.Ended)
}
