package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// readFaults are stores whose Read is wrong.
var readFaults = []fault{
	{"yields nothing where there is no session", onRead(func(messages []*belay.Message, err error) ([]*belay.Message, error) {
		if errors.Is(err, belay.ErrNotFound) {
			err = nil
		}
		return messages, err
	}), []string{"a missing session is ErrNotFound"}},
	{"treats a session without messages as missing", onRead(func(messages []*belay.Message, err error) ([]*belay.Message, error) {
		if len(messages) == 0 {
			err = belay.ErrNotFound
		}
		return messages, err
	}), []string{"a session without messages yields nothing", "reading can begin after any message"}},
	{"begins with the message after which it must begin", func(f *flawed) {
		f.read = func(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
			return f.inner.Read(ctx, session, after-1)
		}
	}, []string{"reading can begin after any message", "many messages are yielded in order"}},
	{"sorts numbers as text", onRead(func(messages []*belay.Message, err error) ([]*belay.Message, error) {
		slices.SortFunc(messages, func(a, b *belay.Message) int { return strings.Compare(fmt.Sprint(a.Seq), fmt.Sprint(b.Seq)) })
		return messages, err
	}), []string{"many messages are yielded in order"}},
	{"yields only the first 1000 messages", onRead(func(messages []*belay.Message, err error) ([]*belay.Message, error) {
		return messages[:min(len(messages), 1000)], err
	}), []string{"many messages are yielded in order"}},
	{"holds the session to read it", func(f *flawed) {
		f.read = func(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
			return func(yield func(*belay.Message, error) bool) {
				if _, err := f.inner.Open(ctx, session); err != nil {
					yield(nil, err)
					return
				}
				f.inner.Read(ctx, session, after)(yield)
			}
		}
	}, []string{"reading needs no hold and does not hold the session"}},
	{"reads what the model sees", onRead(func(messages []*belay.Message, err error) ([]*belay.Message, error) {
		for i, m := range slices.Backward(messages) {
			if m.IsCompaction {
				return messages[i:], err
			}
		}
		return messages, err
	}), []string{"reading yields messages from before a compaction", "a compaction that keeps nothing is the first message"}},
	{"can be read only once", func(f *flawed) {
		f.read = func(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
			messages, used := f.inner.Read(ctx, session, after), false
			return func(yield func(*belay.Message, error) bool) {
				if !used {
					used = true
					messages(yield)
				}
			}
		}
	}, []string{"a reading can be abandoned and started again"}},
	{"ends a cancelled reading in silence", onRead(func(messages []*belay.Message, err error) ([]*belay.Message, error) {
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return messages, err
	}), []string{"a cancelled reading ends with an error"}},
}
