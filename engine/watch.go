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
	// Message is the next message; nil if only the state is new. Its number is where
	// to continue from: see [Watch].
	Message *belay.Message `json:"message,omitempty"`
	// Info is the session's state before this update: which turn is running, whether
	// it is parked, how the last one ended. More messages may belong to this state; an
	// update without a message comes after all of them.
	Info belay.SessionInfo `json:"info"`
}

// watchPatience is how long a store may be unreachable before watching fails.
const watchPatience = 30 * time.Second

// Watch yields the messages of a session after the one numbered after: those that are
// stored and those that follow, whichever process stores them. It ends without an error
// when ctx is done, after the update that the caller is handling. It skips no message and
// repeats none: to continue later, call it again with the number of the last message.
// Between messages it yields the session's state when that has changed. States that follow
// one another quickly are yielded as one.
//
// It yields what is stored. Only the process that runs the turn sees text before the
// response is complete: see [belay.Agent.Watch].
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
	left    bool // the consumer has left, or ctx is done
	told    bool // something was read since run was called
}

// update yields an update, and reports whether to continue. After the end of ctx it
// yields nothing, even if the store has read more.
func (w *watching) update(ctx context.Context, u Update) bool {
	w.left = ctx.Err() != nil || !w.yield(u, nil)
	return !w.left
}

// run yields what is new until something fails.
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
