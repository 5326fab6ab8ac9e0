package record

import (
	"context"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// refusals are the errors of stores that callers check with errors.Is.
var refusals = []error{
	belay.ErrHeld, belay.ErrFenced, belay.ErrConflict, belay.ErrNotFound, belay.ErrNoTurn, belay.ErrClosed, belay.ErrCursor,
	belay.ErrDecided, belay.ErrWrongHash, belay.ErrExpired, belay.ErrScope,
	hook.ErrSettled, hook.ErrQueueFull, hook.ErrNotFound, hook.ErrJobState, context.Canceled,
}

// IsRefusal reports whether err is an error that callers check with errors.Is, and not a
// problem of the file or the server. A store returns such an error unchanged, also if it quotes
// a text that looks like a problem.
func IsRefusal(err error) bool {
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}
