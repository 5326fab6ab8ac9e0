package hook

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// MemoryQueue keeps jobs in memory, up to a limit. It is the reference implementation of a
// Queue. Its jobs are lost when the process ends. It remembers only the keys of the newest
// successes.
type MemoryQueue struct {
	journal  Journal
	capacity int
	clock    Clock

	mu      sync.Mutex
	waiting []memoryJob
	running map[string]Job
	done    map[string]bool // the newest keys that succeeded
	order   []string        // the keys of done, the oldest first
	keys    map[string]bool // keys of waiting and running jobs
	changed chan struct{}   // closed and replaced when a job is added, settled or retried
}

type memoryJob struct {
	Job
	since time.Time
}

// MemoryQueueOptions are a queue's settings. A nil pointer is valid.
type MemoryQueueOptions struct {
	// Capacity is the maximum number of waiting jobs. Defaults to 1,024.
	Capacity int
	// Clock replaces the machine's clock in tests. Defaults to the machine's clock.
	Clock Clock
}

// NewMemoryQueue makes a queue that stores the records of its runs in the journal.
func NewMemoryQueue(journal Journal, opts *MemoryQueueOptions) *MemoryQueue {
	q := &MemoryQueue{
		journal: journal, capacity: 1024, running: make(map[string]Job),
		done: make(map[string]bool), keys: make(map[string]bool), changed: make(chan struct{}),
	}
	if opts != nil {
		q.clock = opts.Clock
		if opts.Capacity > 0 {
			q.capacity = opts.Capacity
		}
	}
	return q
}

func (q *MemoryQueue) now() time.Time {
	if q.clock != nil {
		return q.clock.Now()
	}
	return time.Now()
}

// Enqueue stores jobs and the record of the run that scheduled them.
func (q *MemoryQueue) Enqueue(ctx context.Context, asked Run, jobs []Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	fresh := make([]memoryJob, 0, len(jobs))
	keys := make(map[string]bool)
	for _, job := range jobs {
		if job.ID == "" || job.Key == "" {
			return fmt.Errorf("enqueue: a job needs an id and a key, got id %q", job.ID)
		}
		if !q.done[job.Key] && !q.keys[job.Key] && !keys[job.Key] {
			keys[job.Key] = true
			fresh = append(fresh, memoryJob{job, q.now()})
		}
	}
	if len(q.waiting)+len(fresh) > q.capacity {
		return fmt.Errorf("enqueue: cannot add %d jobs: %d jobs already wait, and the limit is %d: %w", len(fresh), len(q.waiting), q.capacity, ErrQueueFull)
	}
	if err := q.journal.Append(ctx, []Run{asked}); err != nil {
		return err
	}
	for key := range keys {
		q.keys[key] = true
	}
	q.waiting = append(q.waiting, fresh...)
	q.wake()
	return nil
}

// wake makes every waiting Claim and Idle look at the jobs again. The caller holds q.mu.
func (q *MemoryQueue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// Claim waits for a job that is due and claims it.
func (q *MemoryQueue) Claim(ctx context.Context) (Job, error) {
	for {
		if ctx.Err() != nil {
			return Job{}, context.Cause(ctx)
		}
		job, ok, changed, next := q.take()
		if ok {
			return job, nil
		}
		due := make(chan struct{})
		stop := func() bool { return true }
		if next > 0 {
			stop = q.after(next, func() { close(due) })
		}
		select {
		case <-changed:
		case <-due:
		case <-ctx.Done():
			stop()
			return Job{}, context.Cause(ctx)
		}
		stop()
	}
}

func (q *MemoryQueue) after(d time.Duration, f func()) func() bool {
	if q.clock != nil {
		return q.clock.AfterFunc(d, f)
	}
	return time.AfterFunc(d, f).Stop
}

// take claims the job that has been due the longest. If no job is due, take returns a
// channel that is closed at the next change, and the time until the next job is due, or 0.
func (q *MemoryQueue) take() (job Job, ok bool, changed <-chan struct{}, next time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, best := q.now(), -1
	for i := range q.waiting {
		if best < 0 || q.waiting[i].due().Before(q.waiting[best].due()) {
			best = i
		}
	}
	if best < 0 {
		return Job{}, false, q.changed, 0
	}
	if wait := q.waiting[best].due().Sub(now); wait > 0 {
		return Job{}, false, q.changed, wait
	}
	job = q.waiting[best].Job
	q.waiting = slices.Delete(q.waiting, best, best+1)
	job.Attempt++
	q.running[job.ID] = job
	return job, true, nil, 0
}

func (j memoryJob) due() time.Time {
	if j.At.After(j.since) {
		return j.At
	}
	return j.since
}

// Settle stores how an attempt ended: see [ClaimQueue].
func (q *MemoryQueue) Settle(ctx context.Context, job Job, attempt Run, again time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.running[job.ID]; !ok {
		return fmt.Errorf("settle: job %q is not running: %w", job.ID, ErrNotFound)
	}
	if err := q.journal.Append(ctx, []Run{attempt}); err != nil {
		return err
	}
	delete(q.running, job.ID)
	switch {
	case attempt.State == Completed:
		delete(q.keys, job.Key)
		q.remember(job.Key)
	case !again.IsZero():
		job.At = again
		q.waiting = append(q.waiting, memoryJob{job, q.now()})
	default:
		delete(q.keys, job.Key)
	}
	q.wake()
	return nil
}

// Idle waits until no job is running and no job is due. Jobs for a later time may still
// wait.
func (q *MemoryQueue) Idle(ctx context.Context) error {
	for {
		q.mu.Lock()
		now, changed := q.now(), q.changed
		busy := len(q.running) > 0 || slices.ContainsFunc(q.waiting, func(j memoryJob) bool { return !j.due().After(now) })
		q.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the jobs: %w", context.Cause(ctx))
		}
	}
}

// remember keeps the key of a job that succeeded. To limit memory, it keeps only the newest
// keys, up to sixteen times the capacity. The caller holds q.mu.
func (q *MemoryQueue) remember(key string) {
	if q.done[key] {
		return
	}
	q.done[key] = true
	q.order = append(q.order, key)
	if len(q.order) > 16*q.capacity {
		delete(q.done, q.order[0])
		q.order = q.order[1:]
	}
}

// Remove removes the waiting jobs for which match reports true, and frees their keys. If
// match reports true for a running job, Remove returns false and removes nothing.
func (q *MemoryQueue) Remove(match func(Job) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, job := range q.running {
		if match(job) {
			return false
		}
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(job memoryJob) bool {
		if !match(job.Job) {
			return false
		}
		delete(q.keys, job.Key)
		return true
	})
	q.wake() // Idle may wait for the removed jobs
	return true
}

// Stats returns the number of waiting and running jobs, and how long the oldest waiting job
// has been due.
func (q *MemoryQueue) Stats(context.Context) (QueueStats, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	stats := QueueStats{Waiting: len(q.waiting), Running: len(q.running), Capacity: q.capacity}
	now := q.now()
	for _, job := range q.waiting {
		stats.OldestAge = max(stats.OldestAge, now.Sub(job.due()))
	}
	return stats, nil
}

var (
	_ ClaimQueue = (*MemoryQueue)(nil)
	_ StatQueue  = (*MemoryQueue)(nil)
)
