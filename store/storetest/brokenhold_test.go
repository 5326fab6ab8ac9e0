package storetest_test

import (
	"context"
	"errors"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
)

var holdFaults = []fault{
	{"opens a new session with a state", onOpen(func(_ *flawed, _ string, stored *belay.Stored) {
		if stored.Last == 0 {
			stored.State.Turns = 1
		}
	}), []string{"a new session is empty"}},
	{"opens a session that is held", func(f *flawed) {
		f.open = func(ctx context.Context, session string) (*belay.Stored, error) {
			f.inner.Expire(session)
			return f.inner.Open(ctx, session)
		}
	}, []string{
		"opening a held session is ErrHeld", "of many concurrent opens of a session one succeeds",
		"an approval of a held session can be decided, and the session stays held",
	}},
	{"hands out one session at a time", func(f *flawed) {
		f.open = func(ctx context.Context, session string) (*belay.Stored, error) {
			for other := range f.known() {
				if other != session {
					return nil, belay.ErrHeld
				}
			}
			return f.inner.Open(ctx, session)
		}
	}, []string{"opening a held session is ErrHeld", "sessions with similar names are separate"}},
	{"never releases a session", func(f *flawed) {
		f.release = func(context.Context, string, int64) error { return nil }
	}, []string{"a released session can be opened", "each hold has a higher epoch than the previous one"}},
	{"gives every hold the same epoch", func(f *flawed) {
		epochs := make(map[string]int64)
		f.open = func(ctx context.Context, session string) (*belay.Stored, error) {
			stored, err := f.inner.Open(ctx, session)
			if err == nil {
				epochs[session], stored.Epoch = stored.Epoch, 7
			}
			return stored, err
		}
		translated := func(session string, epoch int64) int64 {
			if epoch == 7 {
				return epochs[session]
			}
			return -1
		}
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			c.Epoch = translated(c.Session, c.Epoch)
			return f.inner.Commit(ctx, c)
		}
		f.release = func(ctx context.Context, session string, epoch int64) error {
			return f.inner.Release(ctx, session, translated(session, epoch))
		}
	}, []string{
		"each hold has a higher epoch than the previous one", "a commit of a former holder is ErrFenced",
		"a takeover has a higher epoch and fences the former holder", "the hold of a process that has ended can be taken over",
		"a second release does not release the hold of another holder", "a commit without messages is fenced too",
	}},
	{"releases a session whatever the epoch", func(f *flawed) {
		f.release = func(ctx context.Context, session string, _ int64) error {
			return f.inner.Release(ctx, session, f.known()[session])
		}
	}, []string{
		"a release with the wrong epoch is harmless", "a second release does not release the hold of another holder",
		"a takeover has a higher epoch and fences the former holder",
	}},
	{"returns an error for a release with the wrong epoch", func(f *flawed) {
		f.release = func(ctx context.Context, session string, epoch int64) error {
			if f.known()[session] != epoch {
				return belay.ErrFenced
			}
			return f.inner.Release(ctx, session, epoch)
		}
	}, []string{"a release with the wrong epoch is harmless", "releasing a missing session is harmless"}},
	{"creates the session that is released", func(f *flawed) {
		f.release = func(ctx context.Context, session string, epoch int64) error {
			if _, ok := f.known()[session]; !ok {
				stored, err := f.inner.Open(ctx, session)
				return errors.Join(err, f.inner.Release(ctx, session, stored.Epoch))
			}
			return f.inner.Release(ctx, session, epoch)
		}
	}, []string{"releasing a missing session is harmless"}},
	{"does not distinguish upper and lower case", func(f *flawed) {
		f.open = func(ctx context.Context, session string) (*belay.Stored, error) {
			return f.inner.Open(ctx, strings.ToLower(session))
		}
	}, []string{"sessions with similar names are separate"}},
	{"does not look at the epoch", func(f *flawed) {
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			c.Epoch = f.known()[c.Session]
			return f.inner.Commit(ctx, c)
		}
	}, []string{
		"a commit with another epoch is ErrFenced", "a commit of a former holder is ErrFenced", "a fenced commit changes nothing",
		"a takeover has a higher epoch and fences the former holder",
	}},
	{"refuses with errors of its own", onRefusal(func(context.Context, *flawed, *belay.Commit, error) error {
		return errors.New("constraint violated")
	}), []string{
		"a commit with another epoch is ErrFenced", "an existing message number is ErrConflict",
		"a commit with too many jobs is hook.ErrQueueFull and changes nothing",
		"a commit with a run that has already ended differently changes nothing", "of many concurrent commits of one message number one is stored",
	}},
	{"creates the session of a commit", func(f *flawed) {
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			if _, ok := f.known()[c.Session]; !ok {
				stored, err := f.inner.Open(ctx, c.Session)
				if err != nil {
					return err
				}
				c.Epoch = stored.Epoch
			}
			return f.inner.Commit(ctx, c)
		}
	}, []string{"a commit to a session that nobody opened is ErrFenced"}},
	{"takes commits after the release", onRefusal(func(ctx context.Context, f *flawed, c *belay.Commit, err error) error {
		if !errors.Is(err, belay.ErrFenced) || f.known()[c.Session] != c.Epoch {
			return err
		}
		stored, err := f.inner.Open(ctx, c.Session)
		if err != nil {
			return err
		}
		c.Epoch = stored.Epoch
		return errors.Join(f.inner.Commit(ctx, c), f.inner.Release(ctx, c.Session, c.Epoch))
	}), []string{"a commit after the release is ErrFenced"}},
	{"fences only commits with messages", func(f *flawed) {
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			if len(c.Messages) == 0 {
				c.Epoch = f.known()[c.Session]
			}
			return f.inner.Commit(ctx, c)
		}
	}, []string{"a commit without messages is fenced too"}},
	{"loses everything when it is reopened", func(f *flawed) {
		f.reopen = func() {
			fresh := memstore.New(nil)
			f.inner = fresh
			f.open, f.commit, f.release, f.read, f.decide = fresh.Open, fresh.Commit, fresh.Release, fresh.Read, fresh.Decide
			f.journal = fresh.Journal
		}
	}, []string{
		"committed data survives the end of the process", "an approval that was pending when the process ended can be decided, once",
		"the hold of a process that has ended can be taken over",
	}},
}
