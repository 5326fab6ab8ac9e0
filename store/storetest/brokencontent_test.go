package storetest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// contentFaults are stores that change the content.
var contentFaults = []fault{
	{"fills in what is empty", func(f *flawed) {
		onCommit(func(_ *flawed, c *belay.Commit) {
			for _, m := range c.Messages {
				if m.Time.IsZero() {
					m.Time = time.Now()
				}
			}
			for i := range c.Calls {
				if c.Calls[i].Input == nil {
					c.Calls[i].Input = json.RawMessage("{}")
				}
			}
			for i := range c.Approvals {
				if a := &c.Approvals[i]; a.Expires.IsZero() {
					a.Expires = a.Asked.AddDate(200, 0, 0)
				}
			}
		})(f)
	}, []string{
		"empty fields of a message come back empty", "empty fields of a call come back empty",
		"empty fields of an approval come back empty",
	}},
	{"forgets usage and results", onCommit(func(_ *flawed, c *belay.Commit) {
		for _, m := range c.Messages {
			m.Usage = nil
		}
		for i := range c.Calls {
			c.Calls[i].Result = nil
		}
		for i := range c.Approvals {
			c.Approvals[i].Reason = ""
		}
		if c.State != nil && c.State.Turn != nil {
			c.State.Turn.Policy = nil
		}
	}), []string{
		"every field of a message comes back", "every field of a call comes back", "every field of a state comes back",
		"every field of an approval comes back",
	}},
	{"takes empty for absent", onMessage(func(m *belay.Message) {
		if m.PreModifiedText != nil && *m.PreModifiedText == "" {
			m.PreModifiedText = nil
		}
	}), []string{"an empty original text differs from a missing original text"}},
	{"takes absent for empty", onMessage(func(m *belay.Message) {
		if m.PreModifiedText == nil {
			m.PreModifiedText = new(string)
		}
	}), []string{"an empty original text differs from a missing original text"}},
	{"does not know a kind", onMessage(func(m *belay.Message) {
		if m.Kind == belay.KindInjected {
			m.Kind = belay.KindUser
		}
	}), []string{"every role, kind and part comes back"}},
	{"ends a text at a NUL", onMessage(func(m *belay.Message) {
		for i := range m.Parts {
			m.Parts[i].Text, _, _ = strings.Cut(m.Parts[i].Text, "\x00")
		}
	}), []string{"a NUL and other control characters in a text come back"}},
	{"sorts the keys of JSON", onMessage(func(m *belay.Message) {
		for i := range m.Parts {
			if p := &m.Parts[i]; p.Opaque != nil {
				p.Opaque = normalized(p.Opaque)
			}
		}
	}), []string{"JSON keeps the order of its keys and the spelling of its numbers", "every field of a message comes back"}},
	{"cuts what is large", onMessage(func(m *belay.Message) {
		for i := range m.Parts {
			if media := m.Parts[i].Media; media != nil {
				media.Data = media.Data[:min(len(media.Data), 1<<20)]
			}
		}
	}), []string{"a large message comes back"}},
	{"takes wall time for time", onMessage(func(m *belay.Message) {
		year, month, day := m.Time.Date()
		hour, minute, second := m.Time.Clock()
		m.Time = time.Date(year, month, day, hour, minute, second, m.Time.Nanosecond(), time.UTC)
	}), []string{"a time comes back as the same moment, whatever its zone"}},
	{"opens the newest messages alone", onOpen(func(_ *flawed, _ string, stored *belay.Stored) {
		stored.Messages = stored.Messages[max(len(stored.Messages)-50, 0):]
	}), []string{"without a compaction Open returns all messages"}},
	{"opens all messages", onOpen(func(f *flawed, session string, stored *belay.Stored) {
		stored.Messages = f.said(session)
	}), []string{
		"a compaction that keeps nothing is the first message", "the messages that a compaction keeps come after it",
		"the last compaction counts", "a compaction within a commit counts",
	}},
	{"opens nothing from before a compaction", onOpen(func(_ *flawed, _ string, stored *belay.Stored) {
		if len(stored.Messages) == 0 || !stored.Messages[0].IsCompaction {
			return
		}
		from := stored.Messages[0].Seq
		stored.Messages = slices.DeleteFunc(slices.Clone(stored.Messages), func(m *belay.Message) bool { return m.Seq < from })
	}), []string{"the messages that a compaction keeps come after it", "the last compaction counts", "a compaction within a commit counts"}},
	{"opens the messages in the order of their numbers", onOpen(func(_ *flawed, _ string, stored *belay.Stored) {
		stored.Messages = slices.SortedFunc(slices.Values(stored.Messages), func(a, b *belay.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	}), []string{"the messages that a compaction keeps come after it", "the last compaction counts", "a compaction within a commit counts"}},
	{"opens compactions among the messages that one keeps", onOpen(func(f *flawed, session string, stored *belay.Stored) {
		if len(stored.Messages) > 0 && stored.Messages[0].IsCompaction {
			summary, said := stored.Messages[0], f.said(session)
			kept := said[max(summary.Keep, 1)-1 : summary.Seq-1]
			stored.Messages = slices.Concat([]*belay.Message{summary}, kept, said[summary.Seq:])
		}
	}), []string{"the last compaction counts"}},
	{"goes by the first compaction", onOpen(func(f *flawed, session string, stored *belay.Stored) {
		said := f.said(session)
		for _, m := range said {
			if m.IsCompaction {
				stored.Messages = said[max(m.Keep, 1)-1:]
				return
			}
		}
	}), []string{"the last compaction counts"}},
	{"goes by the compactions of all sessions", onOpen(func(f *flawed, _ string, stored *belay.Stored) {
		for other := range f.known() {
			for _, m := range f.said(other) {
				if m.IsCompaction {
					stored.Messages = slices.DeleteFunc(slices.Clone(stored.Messages), func(own *belay.Message) bool { return own.Seq < m.Seq })
				}
			}
		}
	}), []string{"a compaction in one session does not affect another"}},
	{"keeps the first call of a place", onCommit(func(f *flawed, c *belay.Commit) {
		f.mu.Lock()
		defer f.mu.Unlock()
		c.Calls = slices.DeleteFunc(c.Calls, func(call belay.CallRecord) bool {
			return slices.ContainsFunc(f.calls[c.Session], func(known belay.CallRecord) bool { return samePlace(known, call) })
		})
	}), []string{"a call replaces the one of the same message and index"}},
	{"keeps the first call of a place within a commit", onCommit(func(_ *flawed, c *belay.Commit) {
		c.Calls = slices.CompactFunc(c.Calls, samePlace)
	}), []string{"if a commit has two calls with the same index, the later one is stored"}},
	{"opens calls by their id", onOpen(func(_ *flawed, _ string, stored *belay.Stored) {
		slices.SortFunc(stored.Calls, func(a, b belay.CallRecord) int { return cmp.Compare(a.ID, b.ID) })
	}), []string{"calls come back in the order of their index"}},
	{"opens the calls of all responses", onOpen(func(f *flawed, session string, stored *belay.Stored) {
		f.mu.Lock()
		defer f.mu.Unlock()
		stored.Calls = slices.Clone(f.calls[session])
	}), []string{"only the calls of the last response come back", "a response without calls has none"}},
	{"opens the calls of the last response that has any", onOpen(func(f *flawed, session string, stored *belay.Stored) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if all := f.calls[session]; len(stored.Calls) == 0 && len(all) > 0 {
			stored.Calls = slices.Clone(all[len(all)-1:])
		}
	}), []string{"a response without calls has none"}},
	{"opens calls while nothing follows their response", onOpen(func(_ *flawed, _ string, stored *belay.Stored) {
		if len(stored.Calls) > 0 && stored.Calls[0].Message != stored.Last {
			stored.Calls = nil
		}
	}), []string{"later messages do not hide the calls of a response"}},
	{"mixes up the calls and states of sessions", func(f *flawed) {
		var calls []belay.CallRecord
		var state belay.SessionState
		onCommit(func(_ *flawed, c *belay.Commit) {
			calls = append(calls, c.Calls...)
			if c.State != nil {
				state = *c.State
			}
		})(f)
		onOpen(func(_ *flawed, _ string, stored *belay.Stored) {
			for i := range stored.Calls {
				for _, other := range calls {
					if samePlace(stored.Calls[i], other) {
						stored.Calls[i] = other
					}
				}
			}
			stored.State = state
		})(f)
	}, []string{"the calls of one session are not those of another", "the state of one session is not that of another"}},
	{"takes no state for an empty one", onCommit(func(_ *flawed, c *belay.Commit) {
		if c.State == nil {
			c.State = &belay.SessionState{}
		}
	}), []string{"a commit without a state keeps the stored state"}},
	{"keeps what a new state does not have", func(f *flawed) {
		var turn *belay.TurnState
		onCommit(func(_ *flawed, c *belay.Commit) {
			if c.State == nil {
				return
			}
			if c.State.Turn == nil {
				c.State.Turn = turn
			}
			turn = c.State.Turn
		})(f)
	}, []string{"a state replaces the whole previous state"}},
	{"counts the messages that are opened", onOpen(func(_ *flawed, _ string, stored *belay.Stored) {
		stored.Last = int64(len(stored.Messages))
	}), []string{"a compaction that keeps nothing is the first message", "the messages that a compaction keeps come after it"}},
	{"does not count messages", func(f *flawed) {
		f.open = func(ctx context.Context, session string) (*belay.Stored, error) {
			stored, err := f.inner.Open(ctx, session)
			if err == nil {
				stored.Last = 0
			}
			return stored, err
		}
	}, []string{"messages are numbered without a gap", "a released session can be opened"}},
}

func samePlace(a, b belay.CallRecord) bool { return a.Message == b.Message && a.Index == b.Index }

// normalized returns JSON as a database with its own JSON type would return it.
func normalized(raw json.RawMessage) json.RawMessage {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return raw
	}
	text, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return text
}
