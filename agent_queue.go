package belay

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/belay-run/belay/hook"
)

// ownQueue is the queue of an agent without a store. The agent runs the jobs itself, with
// a worker that starts with the first job.
type ownQueue struct {
	*hook.MemoryQueue
	work func(ctx context.Context) error

	mu     sync.Mutex
	closed bool
	cancel context.CancelFunc // nil: no job has been enqueued yet
	done   chan struct{}      // closed when the worker has ended
}

// Enqueue stores jobs. The first call with jobs starts the worker.
func (q *ownQueue) Enqueue(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed && len(jobs) > 0 {
		return fmt.Errorf("enqueue: %w", ErrClosed)
	}
	if err := q.MemoryQueue.Enqueue(ctx, asked, jobs); err != nil {
		return err
	}
	if q.cancel == nil && len(jobs) > 0 {
		var working context.Context
		working, q.cancel = context.WithCancel(context.Background())
		q.done = make(chan struct{})
		go func() { // runs until the agent is closed
			defer close(q.done)
			_ = q.work(working) // a queue in memory returns no errors
		}()
	}
	return nil
}

// finishJobs waits until the jobs that are due have run. Then it ends the agent's own
// worker.
func (a *Agent) finishJobs(ctx context.Context) error {
	if a.queue == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, a.opts.Limits.End, errors.New("background jobs took longer than Limits.End"))
	defer cancel()
	return a.queue.close(ctx)
}

// close waits until no job runs or is due, or until ctx ends. Then it ends the worker.
// Jobs that are scheduled for a later time are lost.
func (q *ownQueue) close(ctx context.Context) error {
	err := q.Idle(ctx) // jobs may schedule more jobs
	q.mu.Lock()
	q.closed = true
	cancel := q.cancel
	q.mu.Unlock()
	if cancel == nil {
		return nil
	}
	if err == nil {
		err = q.Idle(ctx) // more jobs may have been added before closed was set
	}
	cancel()
	<-q.done
	return err
}
