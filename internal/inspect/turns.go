package inspect

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tracecontext"
	"github.com/belay-run/belay/serve/api"
)

// MessagesBefore returns the messages of a session whose number is lower than before, the
// newest first, and at most n of them. It reads no other messages.
func MessagesBefore(ctx context.Context, store belay.Store, session string, before int64, n int) ([]*belay.Message, error) {
	var all []*belay.Message
	for m, err := range store.Read(ctx, session, max(before-1-int64(n), 0)) {
		if err != nil {
			return nil, err
		}
		if m.Seq >= before {
			break
		}
		all = append(all, m)
	}
	slices.Reverse(all)
	return all, nil
}

// Beginning returns a text that has at most n characters. It ends with … if it was cut.
func Beginning(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for i := range text {
		if n--; n < 0 {
			return text[:i] + "…"
		}
	}
	return text
}

// turnWindow is how many messages are read at once when a listing looks for turns. turnReads
// is how many windows one listing reads.
const (
	turnWindow = 200
	turnReads  = 20
)

// shownText is how many characters of a user's message the list of turns has.
const shownText = 200

// Turns returns the turns of a session with a message before a number, the newest first. If
// next is not 0, there are earlier turns with messages before next.
func Turns(ctx context.Context, store belay.Store, info *belay.SessionInfo, before int64, limit int) (turns []api.Turn, next int64, err error) {
	if before == 0 || before > info.Last+1 {
		before = info.Last + 1
	}
	var of []*belay.Message // of the turn that is being collected, the newest first
	flush := func() {
		turns = append(turns, TurnOf(info, of))
		of = nil
	}
	for range turnReads {
		messages, err := MessagesBefore(ctx, store, info.ID, before, turnWindow)
		if err != nil {
			return nil, 0, err
		}
		for _, m := range messages {
			if len(of) > 0 && of[0].Turn != m.Turn {
				if flush(); len(turns) == limit {
					return turns, m.Seq + 1, nil
				}
			}
			of = append(of, m)
			before = m.Seq
		}
		if len(messages) == 0 || before <= 1 {
			if len(of) > 0 {
				flush()
			}
			return turns, 0, nil
		}
	}
	if len(turns) > 0 { // the last turn is incomplete, so the next page begins with it
		return turns, of[0].Seq + 1, nil
	}
	flush() // one turn with very many messages: show its end
	return turns, before, nil
}

// TurnOf describes a turn from its messages, the newest first.
func TurnOf(info *belay.SessionInfo, of []*belay.Message) api.Turn {
	newest, oldest := of[0], of[len(of)-1]
	turn := api.Turn{ID: newest.Turn, First: oldest.Seq, Last: newest.Seq, Begin: oldest.Time, End: newest.Time, State: "ended"}
	if !IsChild(info.ID) {
		turn.Trace = tracecontext.Trace(info.ID, turn.ID)
	}
	for _, m := range of {
		turn.Steps = max(turn.Steps, m.Step)
		if m.Usage != nil {
			turn.Usage = AddUsage(turn.Usage, *m.Usage)
		}
		for i := range m.Parts {
			switch p := &m.Parts[i]; {
			case p.Call != nil:
				turn.Calls++
			case p.Result != nil && p.Result.IsError:
				turn.Failed++
			}
		}
		if m.Kind == belay.KindUser {
			turn.Text = Beginning(UserText(m), shownText)
		}
	}
	switch open := info.State.Turn; {
	case open != nil && open.ID == turn.ID:
		turn.State, turn.End = StateOf(*info), time.Time{}
	case newest.Seq == info.Last && open == nil:
		turn.State = StateOf(*info)
	case newest.Kind == belay.KindAssistant && len(newest.Calls()) == 0:
		turn.State = "done"
	}
	return turn
}

// UserText returns a user's message as the user typed it.
func UserText(m *belay.Message) string {
	if m.PreModifiedText != nil {
		return *m.PreModifiedText
	}
	return strings.TrimSpace(m.Text())
}

// AddUsage returns the sum of two usages.
func AddUsage(a, b belay.Usage) belay.Usage {
	return belay.Usage{In: a.In + b.In, Out: a.Out + b.Out, CacheRead: a.CacheRead + b.CacheRead, CacheWrite: a.CacheWrite + b.CacheWrite, Cost: a.Cost + b.Cost}
}
