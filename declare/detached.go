package declare

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/detach"
)

// mostDetached limits how many detached commands of a set run at the same time.
const mostDetached = 32

// leaveTime is how long Close waits for detached commands before it stops them.
const leaveTime = 5 * time.Second

// detached makes the question of a command with a protocol, and leaves it to the runtime to
// start the command, for which nobody waits. The command gets its question now: later the
// conversation has gone on. The journal gets the end of the command.
func (h *handler) detached(ctx context.Context, e *worker.Envelope) (json.RawMessage, error) {
	asked, err := h.d.Protocol.Ask(ctx, e)
	if err != nil || asked.Known {
		return nil, err
	}
	run, err := h.set.execution(ctx, h.d, e)
	if err != nil {
		return nil, err
	}
	return nil, &detach.Work{Begin: func(ended func(error)) { h.begin(ctx, e, asked, run, ended) }}
}

// begin starts a detached command, if there is room for it.
func (h *handler) begin(ctx context.Context, e *worker.Envelope, asked *Question, run *Execution, ended func(error)) {
	select {
	case h.set.running <- struct{}{}:
	default:
		ended(&hook.SafeError{Code: codes.Overloaded, Message: "the hook was not started, because too many commands run in the background"})
		return
	}
	go func() { // ends with the command, which has a timeout; Close stops it, too
		defer func() { <-h.set.running }()
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		defer cancel(nil)
		over := make(chan struct{})
		defer close(over)
		go h.set.outlast(over, cancel) // ends with the command
		ended(h.left(ctx, e, asked, run))
	}()
}

// left runs a detached command. It returns why the command failed.
func (h *handler) left(ctx context.Context, e *worker.Envelope, asked *Question, run *Execution) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &hook.SafeError{Code: codes.Panic, Message: "the answer of the hook could not be read", Err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	_, err = h.answered(ctx, e, asked, run)
	return err
}

// outlast stops a detached command some time after the set was closed.
func (s *Set) outlast(ended <-chan struct{}, stop context.CancelCauseFunc) {
	select {
	case <-ended:
		return
	case <-s.closed:
	}
	late := time.NewTimer(leaveTime)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		stop(errLeft)
	}
}

// errLeft means that a detached command was stopped because its hooks were unloaded.
var errLeft = &hook.SafeError{Code: codes.Error, Message: "the command was stopped, because its hooks were unloaded"}

// leave waits until no detached command runs. It takes all places, so that none can start
// later.
func (s *Set) leave() {
	for range mostDetached {
		s.running <- struct{}{}
	}
}
