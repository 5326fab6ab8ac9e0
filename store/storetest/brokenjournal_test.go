package storetest_test

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// journalFaults are stores that handle the runs and jobs of commits wrongly.
var journalFaults = []fault{
	{"drops the runs", onCommit(func(_ *flawed, c *belay.Commit) { c.Runs = nil }), []string{
		"the runs of a commit are in the journal", "concurrent writes to many sessions lose nothing",
		"appended runs and committed runs are in one list",
	}},
	{"drops the runs of a commit that has jobs", onCommit(func(_ *flawed, c *belay.Commit) {
		if len(c.Jobs) > 0 {
			c.Runs = nil
		}
	}), []string{"the jobs of a commit are in the queue, and its runs in the journal"}},
	{"refuses a run that it has", func(f *flawed) {
		seen := make(map[string]bool)
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			for _, run := range c.Runs {
				if seen[run.ID] {
					return errors.New("duplicate key")
				}
				seen[run.ID] = true
			}
			return f.inner.Commit(ctx, c)
		}
	}, []string{"the runs of a commit are stored by the rules of the journal"}},
	{"has a journal apart from that of its commits", func(f *flawed) {
		apart := hook.NewMemoryJournal(100)
		f.journal = func() hook.Journal { return apart }
	}, []string{"appended runs and committed runs are in one list", "the runs of a commit are in the journal"}},
	{"drops the jobs", onCommit(func(_ *flawed, c *belay.Commit) { c.Jobs = nil }), []string{
		"the jobs of a commit are in the queue, and its runs in the journal", "a job with an existing key is skipped, and the commit is stored",
	}},
	{"forgets how a job is retried", onCommit(func(_ *flawed, c *belay.Commit) {
		for i := range c.Jobs {
			c.Jobs[i].Retry = hook.Retry{}
		}
	}), []string{"the queue returns a job as it was committed"}},
	{"refuses a job whose key is there already", func(f *flawed) {
		seen := make(map[string]bool)
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			for _, job := range c.Jobs {
				if seen[job.Key] {
					return errors.New("duplicate key")
				}
				seen[job.Key] = true
			}
			return f.inner.Commit(ctx, c)
		}
	}, []string{"a job with an existing key is skipped, and the commit is stored"}},
	{"queues jobs before it commits", func(f *flawed) {
		looked := make(chan struct{}, 1)
		f.read = func(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
			return func(yield func(*belay.Message, error) bool) {
				f.inner.Read(ctx, session, after)(yield)
				looked <- struct{}{}
			}
		}
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			if len(c.Jobs) > 0 {
				jobs := belay.Commit{Session: c.Session, Epoch: c.Epoch, Jobs: c.Jobs}
				if err := f.inner.Commit(ctx, &jobs); err != nil {
					return err
				}
				select {
				case <-looked: // the worker that claims the job has already read the session
				case <-time.After(time.Second):
				}
			}
			c.Jobs = nil
			return f.inner.Commit(ctx, c)
		}
	}, []string{"a worker that claims a job sees its commit"}},
}
