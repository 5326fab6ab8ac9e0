package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
)

// abortWord begins a message that asks the worker of a session to abort its turn.
const abortWord = "abort "

// abortOrder is the content of such a message.
type abortOrder struct {
	Session string `json:"session"`
	Because string `json:"because"`
}

// Abort asks the worker that runs the turn of a session to abort the turn, in whichever
// process it is. The turn ends with the reason aborted, and because says why. Abort does not
// wait for that, and the message can be lost: look at the session to see whether its turn has
// ended. Only turns that a Worker runs can be aborted in this way.
func Abort(ctx context.Context, store belay.BusStore, session, because string) error {
	data, err := json.Marshal(abortOrder{session, because})
	if err == nil {
		err = store.Broadcast(ctx, abortWord+string(data))
	}
	if err != nil {
		return fmt.Errorf("abort the turn of session %q: %w", session, err)
	}
	return nil
}

// hearAborts aborts turns when other processes ask for it. It ends when ctx ends.
func (w *Worker) hearAborts(ctx context.Context) {
	store, ok := w.store.(belay.BusStore)
	if !ok {
		return
	}
	for message := range store.Broadcasts(ctx) {
		text, ok := strings.CutPrefix(message, abortWord)
		var order abortOrder
		if ok && json.Unmarshal([]byte(text), &order) == nil {
			w.Abort(order.Session, errors.New(order.Because))
		}
	}
}
