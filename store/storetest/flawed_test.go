package storetest_test

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/storetest"
)

// flawed is a store whose methods a fault can replace. Without a fault it passes every
// rule. It encodes all values as JSON, like a database.
type flawed struct {
	inner *memstore.Store
	// A fault can replace these functions. There is one for each method.
	open    func(ctx context.Context, session string) (*belay.Stored, error)
	commit  func(ctx context.Context, c *belay.Commit) error
	release func(ctx context.Context, session string, epoch int64) error
	read    func(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error]
	decide  func(ctx context.Context, d belay.Decision) (belay.Approval, error)
	journal func() hook.Journal
	list    func(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error]
	inbox   func(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error]
	reopen  func()

	describe func(ctx context.Context, session string, update belay.SessionUpdate) error
	delete   func(ctx context.Context, session string) error
	// take copies a commit before it is stored.
	take func(c *belay.Commit) belay.Commit

	// Faults use these values.
	mu        sync.Mutex
	epochs    map[string]int64 // epoch of the newest hold, by session
	messages  map[string][]*belay.Message
	calls     map[string][]belay.CallRecord // all committed calls, by session
	approvals map[string]belay.Approval
}

func newFlawed() *flawed {
	f := &flawed{
		inner: memstore.New(&memstore.Options{MaxJobs: 8}), epochs: make(map[string]int64), messages: make(map[string][]*belay.Message),
		calls: make(map[string][]belay.CallRecord), approvals: make(map[string]belay.Approval),
	}
	f.open, f.commit, f.release, f.read, f.decide = f.inner.Open, f.inner.Commit, f.inner.Release, f.inner.Read, f.inner.Decide
	f.journal, f.list, f.inbox = f.inner.Journal, f.inner.Sessions, f.inner.Approvals
	f.describe, f.delete = f.inner.Describe, f.inner.Delete
	f.take = func(c *belay.Commit) belay.Commit {
		own := *c
		own.Messages, own.Calls, own.Approvals, own.State = ownCopy(c.Messages), ownCopy(c.Calls), ownCopy(c.Approvals), ownCopy(c.State)
		return own
	}
	f.reopen = func() {
		for session := range f.known() {
			f.inner.Expire(session)
		}
	}
	return f
}

// known returns the epochs of the sessions that were opened.
func (f *flawed) known() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.epochs)
}

// said returns the stored messages of a session.
func (f *flawed) said(session string) []*belay.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.messages[session])
}

// asked returns an approval as last committed.
func (f *flawed) asked(id string) belay.Approval {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.approvals[id]
}

func (f *flawed) Open(ctx context.Context, session string) (*belay.Stored, error) {
	stored, err := f.open(ctx, session)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.epochs[session] = stored.Epoch
	}
	return stored, err
}

func (f *flawed) Commit(ctx context.Context, c *belay.Commit) error {
	own := f.take(c)
	err := f.commit(ctx, &own)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.messages[c.Session] = append(f.messages[c.Session], own.Messages...)
		f.calls[c.Session] = append(f.calls[c.Session], own.Calls...)
		for _, a := range own.Approvals {
			f.approvals[a.ID] = a
		}
	}
	return err
}

func (f *flawed) Describe(ctx context.Context, session string, update belay.SessionUpdate) error {
	return f.describe(ctx, session, update)
}

func (f *flawed) Delete(ctx context.Context, session string) error { return f.delete(ctx, session) }

func (f *flawed) Release(ctx context.Context, session string, epoch int64) error {
	return f.release(ctx, session, epoch)
}

func (f *flawed) Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
	return f.read(ctx, session, after)
}

func (f *flawed) Decide(ctx context.Context, d belay.Decision) (belay.Approval, error) {
	return f.decide(ctx, d)
}

func (f *flawed) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	return f.list(ctx, filter)
}

func (f *flawed) Approvals(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
	return f.inbox(ctx, filter)
}

func (f *flawed) Journal() hook.Journal { return f.journal() }

func (f *flawed) Queue() hook.Queue { return f.inner.Queue() }

// ownCopy copies a value: it encodes and decodes it as JSON.
func ownCopy[T any](v T) T {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var own T
	if err := json.Unmarshal(data, &own); err != nil {
		panic(err)
	}
	return own
}

// options returns options with which no rule is skipped.
func options() storetest.Options {
	return storetest.Options{
		Expire: func(_ testing.TB, s belay.Store, session string) { s.(*flawed).inner.Expire(session) },
		Reopen: func(_ testing.TB, s belay.Store) belay.Store {
			s.(*flawed).reopen()
			return s
		},
	}
}

func TestFlawedKeepsTheRulesItIsToBreak(t *testing.T) {
	t.Parallel()
	opts := options()
	storetest.Test(t, func(testing.TB) belay.Store { return newFlawed() }, &opts)
}

// The following functions make faults that change stored or returned values.

// onCommit makes a store that changes commits.
func onCommit(change func(f *flawed, c *belay.Commit)) func(f *flawed) {
	return func(f *flawed) {
		commit := f.commit
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			change(f, c)
			return commit(ctx, c)
		}
	}
}

// onMessage makes a store that changes each message of a commit.
func onMessage(change func(m *belay.Message)) func(f *flawed) {
	return onCommit(func(_ *flawed, c *belay.Commit) {
		for _, m := range c.Messages {
			change(m)
		}
	})
}

// onOpen makes a store that changes what Open returns.
func onOpen(change func(f *flawed, session string, stored *belay.Stored)) func(f *flawed) {
	return func(f *flawed) {
		open := f.open
		f.open = func(ctx context.Context, session string) (*belay.Stored, error) {
			stored, err := open(ctx, session)
			if err == nil {
				change(f, session, stored)
			}
			return stored, err
		}
	}
}

// onRefusal makes a store that calls change when it rejects a commit. change can alter the
// store or the error.
func onRefusal(change func(ctx context.Context, f *flawed, c *belay.Commit, err error) error) func(f *flawed) {
	return func(f *flawed) {
		commit := f.commit
		f.commit = func(ctx context.Context, c *belay.Commit) error {
			err := commit(ctx, c)
			if err != nil {
				return change(ctx, f, c, err)
			}
			return nil
		}
	}
}

// onRead makes a store that changes the messages that Read yields.
func onRead(change func(messages []*belay.Message, err error) ([]*belay.Message, error)) func(f *flawed) {
	return func(f *flawed) {
		read := f.read
		f.read = func(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
			return func(yield func(*belay.Message, error) bool) {
				var messages []*belay.Message
				var failed error
				for m, err := range read(ctx, session, after) {
					if err != nil {
						failed = err
						break
					}
					messages = append(messages, m)
				}
				messages, failed = change(messages, failed)
				for _, m := range messages {
					if !yield(m, nil) {
						return
					}
				}
				if failed != nil {
					yield(nil, failed)
				}
			}
		}
	}
}

// onDecide makes a store whose Decide calls change.
func onDecide(change func(ctx context.Context, f *flawed, d belay.Decision) (belay.Approval, error)) func(f *flawed) {
	return func(f *flawed) {
		f.decide = func(ctx context.Context, d belay.Decision) (belay.Approval, error) { return change(ctx, f, d) }
	}
}
