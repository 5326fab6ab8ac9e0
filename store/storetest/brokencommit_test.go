package storetest_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// commitFaults are stores with wrong commits, or with wrong rejections of commits.
var commitFaults = []fault{
	{"stores the first message of a commit", onCommit(func(_ *flawed, c *belay.Commit) {
		c.Messages = c.Messages[:min(len(c.Messages), 1)]
	}), []string{"messages are numbered without a gap"}},
	{"leaves out what is there already", func(f *flawed) {
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			last := int64(len(f.said(c.Session)))
			c.Messages = slices.DeleteFunc(c.Messages, func(m *belay.Message) bool { return m.Seq <= last })
			if err := f.inner.Commit(ctx, c); !errors.Is(err, belay.ErrConflict) {
				return err
			}
			return nil
		}
	}, []string{"an existing message number is ErrConflict", "of many concurrent commits of one message number one is stored"}},
	{"numbers the messages itself", onCommit(func(f *flawed, c *belay.Commit) {
		for i, m := range c.Messages {
			m.Seq = int64(len(f.said(c.Session)) + i + 1)
		}
	}), []string{
		"a message that leaves a gap is ErrConflict", "a gap within a commit is ErrConflict", "a conflicting commit changes nothing",
		"an existing message number is ErrConflict",
	}},
	{"leaves out calls of messages that are not there", onCommit(func(f *flawed, c *belay.Commit) {
		last := int64(len(f.said(c.Session)) + len(c.Messages))
		c.Calls = slices.DeleteFunc(c.Calls, func(call belay.CallRecord) bool { return call.Message < 1 || call.Message > last })
	}), []string{"a call of a missing message is ErrConflict"}},
	{"amends nothing", onCommit(func(_ *flawed, c *belay.Commit) { c.Amended = nil }), []string{
		"an amended message replaces the last one", "amending a message other than the last is ErrConflict",
	}},
	{"amends only the last message, and is silent about others", onCommit(func(f *flawed, c *belay.Commit) {
		if c.Amended != nil && (c.Amended.Seq == 0 || c.Amended.Seq != int64(len(f.said(c.Session)))) {
			c.Amended = nil
		}
	}), []string{"amending a message other than the last is ErrConflict"}},
	{"refuses a commit of nothing", func(f *flawed) {
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			if len(c.Messages)+len(c.Calls)+len(c.Approvals)+len(c.Runs)+len(c.Jobs) == 0 && c.State == nil {
				return errors.New("nothing to commit")
			}
			return f.inner.Commit(ctx, c)
		}
	}, []string{"an empty commit is harmless"}},
	{"stores no state beside messages", onCommit(func(_ *flawed, c *belay.Commit) {
		if len(c.Messages) > 0 {
			c.State = nil
		}
	}), []string{"a commit stores everything at once"}},
	{"keeps the caller's state", func(f *flawed) {
		kept := make(map[string]*belay.SessionState)
		take := f.take
		f.take = func(c *belay.Commit) belay.Commit {
			if c.State != nil {
				kept[c.Session] = c.State
			}
			return take(c)
		}
		onOpen(func(_ *flawed, session string, stored *belay.Stored) {
			if state := kept[session]; state != nil {
				stored.State = *state
			}
		})(f)
	}, []string{"changes that a caller makes to its commit afterwards have no effect", "changes that a caller makes to an opened session have no effect"}},
	{"stores messages alone when it is cancelled", func(f *flawed) {
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			if ctx.Err() != nil {
				c.State, c.Calls = nil, nil
				return errors.Join(ctx.Err(), f.inner.Commit(context.WithoutCancel(ctx), c))
			}
			return f.inner.Commit(ctx, c)
		}
	}, []string{"a cancelled commit is stored completely or not at all"}},
	{"says nothing when it is cancelled", onRefusal(func(_ context.Context, _ *flawed, _ *belay.Commit, err error) error {
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}), []string{"a cancelled commit is stored completely or not at all"}},
	{"stores the runs of a commit that it refuses", onRefusal(func(ctx context.Context, f *flawed, c *belay.Commit, err error) error {
		for _, run := range c.Runs {
			_ = f.inner.Journal().Append(ctx, []hook.Run{run})
		}
		return err
	}), []string{
		"a fenced commit changes nothing", "a conflicting commit changes nothing",
		"a commit with a run that has already ended differently changes nothing", "a commit with an invalid job changes nothing",
		"a commit with too many jobs is hook.ErrQueueFull and changes nothing",
	}},
	{"stores the state of a commit that it refuses", refusedPart(func(c *belay.Commit) *belay.Commit {
		return &belay.Commit{State: c.State}
	}), everyRefusal},
	{"stores the calls of a commit that it refuses", refusedPart(func(c *belay.Commit) *belay.Commit {
		return &belay.Commit{Calls: c.Calls}
	}), everyRefusal},
	{"stores the approvals of a commit that it refuses", refusedPart(func(c *belay.Commit) *belay.Commit {
		return &belay.Commit{Approvals: c.Approvals}
	}), everyRefusal},
	{"stores the jobs of a commit that it refuses", refusedPart(func(c *belay.Commit) *belay.Commit {
		return &belay.Commit{Jobs: c.Jobs}
	}), []string{
		"a fenced commit changes nothing", "a conflicting commit changes nothing",
		"a commit with a run that has already ended differently changes nothing",
	}},
	{"writes the transcript before the journal and the queue", func(f *flawed) {
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			transcript, records := *c, belay.Commit{Session: c.Session, Epoch: c.Epoch, Runs: c.Runs, Jobs: c.Jobs}
			transcript.Runs, transcript.Jobs = nil, nil
			if err := f.inner.Commit(ctx, &transcript); err != nil {
				return err
			}
			return f.inner.Commit(ctx, &records)
		}
	}, []string{
		"a commit with a run that has already ended differently changes nothing", "a commit with an invalid job changes nothing",
		"a commit with too many jobs is hook.ErrQueueFull and changes nothing",
	}},
	{"leaves out jobs that do not fit", onRefusal(func(ctx context.Context, f *flawed, c *belay.Commit, err error) error {
		if !errors.Is(err, hook.ErrQueueFull) {
			return err
		}
		c.Jobs = nil
		return f.inner.Commit(ctx, c)
	}), []string{"a commit with too many jobs is hook.ErrQueueFull and changes nothing"}},
	{"leaves out jobs that are not sound", onCommit(func(_ *flawed, c *belay.Commit) {
		c.Jobs = slices.DeleteFunc(c.Jobs, func(job hook.Job) bool { return job.ID == "" })
	}), []string{"a commit with an invalid job changes nothing"}},
	{"refuses everything once it has refused", func(f *flawed) {
		refused := false
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			if refused {
				return errors.New("current transaction is aborted")
			}
			err := f.inner.Commit(ctx, c)
			refused = err != nil
			return err
		}
	}, []string{"a rejected commit succeeds when the reason is removed"}},
	{"loses a commit now and then", func(f *flawed) {
		lost := make(chan struct{}, 1)
		lost <- struct{}{}
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			if len(c.Messages) > 0 && c.Messages[0].Seq == 6 {
				select {
				case <-lost:
					return nil
				default:
				}
			}
			return f.inner.Commit(ctx, c)
		}
	}, []string{"concurrent writes to many sessions lose nothing"}},
	{"stores a message at a time", func(f *flawed) {
		reads := make(chan struct{})
		f.read = func(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
			return func(yield func(*belay.Message, error) bool) {
				for m, err := range f.inner.Read(ctx, session, after) {
					if !yield(m, err) {
						return
					}
				}
				select {
				case reads <- struct{}{}:
				default:
				}
			}
		}
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			for _, m := range c.Messages {
				one := belay.Commit{Session: c.Session, Epoch: c.Epoch, Messages: []*belay.Message{m}}
				if err := f.inner.Commit(ctx, &one); err != nil {
					return err
				}
				for range 2 { // the second read began after the message was stored
					select {
					case <-reads:
					case <-time.After(20 * time.Millisecond):
					}
				}
			}
			return nil
		}
	}, []string{"a reader sees a commit completely or not at all"}},
}

// everyRefusal are the rules that find a rejected commit that changes something.
var everyRefusal = []string{
	"a fenced commit changes nothing", "a conflicting commit changes nothing",
	"a commit with a run that has already ended differently changes nothing", "a commit with an invalid job changes nothing",
	"a commit with too many jobs is hook.ErrQueueFull and changes nothing",
}

// refusedPart makes a store that rejects a commit but stores a part of it.
func refusedPart(part func(c *belay.Commit) *belay.Commit) func(f *flawed) {
	return onRefusal(func(ctx context.Context, f *flawed, c *belay.Commit, err error) error {
		some := part(c)
		some.Session, some.Epoch = c.Session, f.known()[c.Session]
		_ = f.inner.Commit(ctx, some)
		return err
	})
}
