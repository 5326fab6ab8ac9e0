package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// tripwire counts the points that a process passes, prints them to standard output, and
// kills the process at one of them.
type tripwire struct {
	kill string // the point at which to kill the process

	mu   sync.Mutex
	seen map[string]int
}

// line is a line of a child's standard output. The parent learns about the child only
// through these lines. A write counts as acknowledged if a line before the kill reports
// it.
type line struct {
	Point    string           `json:"point,omitempty"`
	Messages []*belay.Message `json:"messages,omitempty"`
	Runs     []hook.Run       `json:"runs,omitempty"`

	// Only the stories about approvals use the fields below.

	Ready   bool            `json:"ready,omitempty"`
	Asked   *belay.Approval `json:"asked,omitempty"`
	Decided *ruling         `json:"decided,omitempty"`
	End     belay.EndReason `json:"end,omitempty"`
}

func say(l line) {
	text, err := json.Marshal(l)
	if err == nil {
		_, err = os.Stdout.Write(append(text, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("crashtest: %v", err)) // the parent has ended
	}
}

// pass marks a point. Points with the same name are numbered.
func (w *tripwire) pass(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[name]++
	point := fmt.Sprintf("%s #%d", name, w.seen[name])
	say(line{Point: point})
	if point == w.kill {
		die()
	}
}

// store is a store with points before and after each write.
type store struct {
	belay.JournalStore
	wire *tripwire
}

// Open passes points too, because it writes the hold on the session.
func (s *store) Open(ctx context.Context, id string) (*belay.Stored, error) {
	s.wire.pass("before a hold")
	stored, err := s.JournalStore.Open(ctx, id)
	s.wire.pass("after a hold")
	return stored, err
}

// Release passes points too, because it removes the hold.
func (s *store) Release(ctx context.Context, id string, epoch int64) error {
	s.wire.pass("before a release")
	err := s.JournalStore.Release(ctx, id, epoch)
	s.wire.pass("after a release")
	return err
}

// Decide passes points too, because it writes a person's decision.
func (s *store) Decide(ctx context.Context, d belay.Decision) (belay.Approval, error) {
	s.wire.pass("before a decision")
	a, err := s.JournalStore.Decide(ctx, d)
	s.wire.pass("after a decision")
	return a, err
}

// Commit prints the messages and records after the store has acknowledged them.
func (s *store) Commit(ctx context.Context, c *belay.Commit) error {
	s.wire.pass("before a commit")
	err := s.JournalStore.Commit(ctx, c)
	if err == nil {
		say(line{Messages: c.Messages, Runs: c.Runs})
		s.wire.pass("after a commit")
	}
	return err
}

// Journal returns the store's journal, with points.
func (s *store) Journal() hook.Journal { return &journal{s.JournalStore.Journal(), s.wire} }

// Queue returns the store's queue, with points.
func (s *store) Queue() hook.Queue {
	return &queue{s.JournalStore.Queue().(durableQueue), s.wire}
}

type journal struct {
	hook.Journal
	wire *tripwire
}

// Append prints the records after the journal has acknowledged them.
func (j *journal) Append(ctx context.Context, runs []hook.Run) error {
	if len(runs) == 0 {
		return j.Journal.Append(ctx, runs)
	}
	j.wire.pass("before records")
	err := j.Journal.Append(ctx, runs)
	if err == nil {
		say(line{Runs: runs})
		j.wire.pass("after records")
	}
	return err
}

// durableQueue has the interfaces that a store's queue needs for background work.
type durableQueue interface {
	hook.WorkQueue
	hook.StatQueue
	hook.InputQueue
}

type queue struct {
	durableQueue
	wire *tripwire
}

// Enqueue prints the record after the queue has acknowledged it.
func (q *queue) Enqueue(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
	return q.queued(asked, func() error { return q.durableQueue.Enqueue(ctx, asked, jobs) })
}

// EnqueueInput prints the record after the queue has acknowledged it.
func (q *queue) EnqueueInput(ctx context.Context, asked hook.Run, job hook.Job, input json.RawMessage) error {
	return q.queued(asked, func() error { return q.durableQueue.EnqueueInput(ctx, asked, job, input) })
}

func (q *queue) queued(asked hook.Run, enqueue func() error) error {
	q.wire.pass("before " + asked.Subscription + " is queued")
	err := enqueue()
	if err == nil {
		say(line{Runs: []hook.Run{asked}})
		q.wire.pass("after " + asked.Subscription + " is queued")
	}
	return err
}

// Work adds a point before and after each attempt.
func (q *queue) Work(ctx context.Context, perform func(context.Context, hook.Job) (hook.Run, time.Time)) error {
	return q.durableQueue.Work(ctx, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		q.wire.pass("before an attempt at " + nameOf(job))
		run, again := perform(ctx, job)
		q.wire.pass("after an attempt at " + nameOf(job))
		return run, again
	})
}

func nameOf(job hook.Job) string {
	if job.Handler != "" {
		return job.Handler
	}
	return job.Subscription
}
