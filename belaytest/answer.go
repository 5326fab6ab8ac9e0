package belaytest

import (
	"context"
	"errors"
	"iter"

	"github.com/belay-run/belay"
)

// Answer runs a turn in the session "test" and returns its structured output, as
// [belay.Answer] does. If the turn ended without structured output, the value is the zero
// value: check this with [Turn.Answered] or [Turn.Ended]. [Agent.Resume] continues a turn
// that has parked.
func Answer[T any](a *Agent, text string, parts ...belay.Part) (T, *Turn) {
	a.t.Helper()
	var value T
	turn := a.Take(func(ctx context.Context) iter.Seq2[belay.Event, error] {
		return func(yield func(belay.Event, error) bool) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			events := a.Watch(ctx, &belay.WatchOptions{Session: session, Buffer: 1 << 20})
			var err error
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				var turn *belay.Turn
				if value, turn, err = belay.Answer[T](ctx, a.Session(session), text, parts...); turn == nil {
					cancel() // the turn did not begin, so there are no events
				}
			}()
			for event, err := range events {
				if !yield(event, err) {
					cancel() // cancel the turn and wait for its end
					<-ended
					return
				}
				if event.Kind == belay.EventTurnEnd && event.Depth == 0 {
					break
				}
			}
			if <-ended; err != nil && !errors.Is(err, belay.ErrNoAnswer) {
				yield(belay.Event{}, err)
			}
		}
	})
	return value, turn
}
