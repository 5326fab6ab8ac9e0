package declare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

const (
	firstBackoff = 100 * time.Millisecond
	mostBackoff  = 30 * time.Second
	// patience is the maximum time that a call waits until its worker can be restarted. If
	// the wait would be longer, the call fails at once.
	patience = time.Second
	// greeting is the minimum time that a worker has to start and answer the handshake.
	greeting = 10 * time.Second
)

// keeper keeps one worker process running for all hooks that name the same program.
type keeper struct {
	set    *Set
	d      *Declaration // the first of hooks
	hooks  []*Declaration
	key    string
	wanted bool // at least one of the hooks is enabled

	mu       sync.Mutex
	current  *process  // the last process that was started, or nil
	deaths   int       // how often the worker has died since a call succeeded
	rest     time.Time // the worker is not started before this time
	last     error     // why the worker died last
	shutDown bool
}

// pool returns the keeper for a hook's worker. It makes one if there is none.
func (s *Set) pool(h *handler) *keeper {
	key := strings.Join(append(append([]string{h.d.Dir, fmt.Sprint(len(h.d.Argv))}, h.d.Argv...), h.d.Env...), "\x00")
	if i := slices.IndexFunc(s.workers, func(k *keeper) bool { return k.key == key }); i >= 0 {
		s.workers[i].wanted = s.workers[i].wanted || !h.opts.Disabled
		s.workers[i].hooks = append(s.workers[i].hooks, h.d)
		return s.workers[i]
	}
	k := &keeper{set: s, d: h.d, hooks: []*Declaration{h.d}, key: key, wanted: !h.opts.Disabled}
	s.workers = append(s.workers, k)
	return k
}

// worker sends a call to the hook's worker and reads the answer.
func (h *handler) worker(ctx context.Context, k *keeper, e *worker.Envelope) (json.RawMessage, error) {
	params, err := encode(e)
	if err != nil {
		return nil, err
	}
	p, err := k.running(ctx)
	if err != nil {
		return nil, err
	}
	said := p.call(ctx, "run", params)
	if said.err == nil {
		k.succeeded()
	}
	return h.codec.answered(&said)
}

// answered reads the response of a worker to a call.
func (c *codec) answered(said *response) (json.RawMessage, error) {
	answer, err := map[string]any(nil), said.err
	switch {
	case err != nil:
	case said.result[0] == '{':
		answer, err = c.object(said.result)
	default:
		err = noObject(said.result)
	}
	if said.found == nil { // the worker gave no response
		return nil, err
	}
	return c.settle(said.found, answer, err)
}

// running returns the worker process after the handshake. It starts a process if none
// runs.
func (k *keeper) running(ctx context.Context) (*process, error) {
	for {
		p, wait, err := k.take(ctx)
		switch {
		case err != nil:
			return nil, err
		case p == nil:
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
				continue
			case <-k.set.closed:
				err = ErrClosed
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
			timer.Stop()
			return nil, err
		}
		select {
		case <-p.ready:
			return p, nil
		case <-p.done:
			return nil, p.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take returns the running process, or starts one. If Belay must wait before it may start
// the worker again, take returns how long.
func (k *keeper) take(ctx context.Context) (*process, time.Duration, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shutDown {
		return nil, 0, ErrClosed
	}
	if k.current != nil && !k.current.isOver() {
		return k.current, 0, nil
	}
	if wait := time.Until(k.rest); wait > patience {
		return nil, 0, fmt.Errorf("the worker failed, and Belay does not start it again before %s: %w", k.rest.Format(time.TimeOnly), cmp.Or(k.last, errEnded))
	} else if wait > 0 {
		return nil, wait, nil
	}
	run, err := k.set.execution(ctx, k.d, nil)
	if err != nil {
		return nil, 0, err
	}
	k.current = startProcess(k, run)
	return k.current, 0, nil
}

// errEnded means that a worker ended for an unknown reason.
var errEnded = errors.New("the worker ended")

// died notes that the worker has died, and sets the time of the next start.
func (k *keeper) died(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shutDown {
		return
	}
	pause := mostBackoff
	if k.deaths < 16 {
		pause = min(k.set.opts.Backoff<<k.deaths, mostBackoff)
	}
	k.deaths++
	k.last, k.rest = err, time.Now().Add(pause)
	k.set.opts.Logger.Warn("worker ended", "subscription", k.set.id(k.d.ID), "file", k.d.File, "error", err, "restart_in", pause)
}

func (k *keeper) succeeded() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deaths = 0
}

// warm starts the worker and waits until the handshake is done. It does not start a worker
// that is not trusted.
func (k *keeper) warm(ctx context.Context) error {
	if k.set.opts.Trust != nil {
		if err := k.set.opts.Trust(ctx, k.d); err != nil {
			return nil //nolint:nilerr // its calls report the error
		}
	}
	_, err := k.running(ctx)
	return err
}

// close ends the worker for good, and waits until it has ended.
func (k *keeper) close() {
	k.mu.Lock()
	k.shutDown = true
	p := k.current
	k.mu.Unlock()
	if p != nil {
		p.end()
	}
}

// workerError returns an error that the worker itself reported.
func workerError(message string) error {
	return &hook.SafeError{Code: codes.Error, Message: "the worker reported an error", Err: errors.New(message)}
}
