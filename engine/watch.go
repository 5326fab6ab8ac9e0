package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/belay-run/belay"
)

// Update is a new message or state of a watched session.
type Update struct {
	// Message is the next message, or nil if only the state has changed. Pass its number to
	// [Watch] to continue after it.
	Message *belay.Message `json:"message,omitempty"`
	// Info is the state of the session just before Watch read Message. It says which turn
	// is running, whether that turn is parked, and how the last turn ended. Several updates
	// may have the same state. An update without a message comes after all messages of its
	// state.
	Info belay.SessionInfo `json:"info"`
}

// watchPatience is how long the store may be unreachable before Watch fails.
const watchPatience = 30 * time.Second

// Watch yields the messages of a session with numbers higher than after: messages that
// are already stored, and later messages. It does not matter which process stores them.
// Watch skips no message and repeats none. To continue later, call Watch again with the
// number of the last message.
//
// Watch also yields the session's state when the state has changed. If the state changes
// several times quickly, Watch may yield only the last state. When ctx ends, Watch ends
// without an error after the current update.
//
// Watch yields only stored messages. To see text before a response is complete, use
// [belay.Agent.Watch] in the process that runs the turn.
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

// watching is the state of one call of Watch.
type watching struct {
	store   belay.TurnStore
	session string
	after   int64
	yield   func(Update, error) bool
	state   string
	left    bool // the caller has stopped, or ctx has ended
	told    bool // the store has reported a state in this run
}

// update yields an update and reports whether to continue. If ctx has ended, it yields
// nothing.
func (w *watching) update(ctx context.Context, u Update) bool {
	w.left = ctx.Err() != nil || !w.yield(u, nil)
	return !w.left
}

// run yields updates until an error occurs, ctx ends or the caller wants no more.
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
			if !w.update(ctx, Update{Message: m, Info: info}) {
				return nil
			}
			w.after = m.Seq
		}
		state := stateOf(&info)
		if state == w.state {
			continue
		}
		w.state = state
		if !w.update(ctx, Update{Info: info}) {
			return nil
		}
	}
	return context.Cause(ctx)
}

// stateOf returns a text that identifies a state.
func stateOf(info *belay.SessionInfo) string {
	s := &info.State
	if s.Turn == nil {
		return fmt.Sprint(s.Turns, " ", s.Last)
	}
	return fmt.Sprint(s.Turns, " ", s.Turn.ID, " ", s.Turn.Parked, " ", s.Turn.Ended)
}
