package belay

import (
	"testing"
	"time"
)

// A watcher of a turn that runs in another process keeps no more events than its buffer
// holds. It learns how many it missed.
//
// SPEC V-03
func TestSharedEventsAreBounded(t *testing.T) {
	t.Parallel()
	es := NewEvents()
	sh := &sharing{events: es, ctx: t.Context(), watchers: make(map[string][]*watcher)}
	slow := newWatcher(nil, &WatchOptions{Session: "s", Buffer: 4})
	whole := newWatcher(nil, &WatchOptions{Session: "s", Buffer: 4, Lossless: true})
	sh.watchers["s"] = []*watcher{slow, whole}
	const sent = 1000
	for i := range sent {
		sh.deliver(&sharedEvents{Session: "s", Events: []sharedEvent{{Event: Event{Kind: EventTextDelta, Seq: uint64(i)}}}})
	}
	if events, missed := slow.take(); len(events) > 4 || len(events)+missed != sent {
		t.Errorf("%d events wait and %d were missed, want at most 4, and %d in all", len(events), missed, sent)
	}
	if events, missed := whole.take(); len(events) != sent || missed != 0 {
		t.Errorf("a lossless watcher has %d events and missed %d, want all", len(events), missed)
	}
}

// An event after the end of a turn, such as the output of a hook, does not change the position
// in the stored events: a client that continues after it does not get the end of the turn
// twice.
//
// SPEC V-03
func TestPositionsAfterTheEnd(t *testing.T) {
	t.Parallel()
	var positions []string
	s := &storedWatch{watcher: newWatcher(nil, nil), ctx: t.Context(), session: "s", at: position{message: 2}, turn: "1-x", yield: func(e Event, err error) bool {
		if err != nil {
			t.Error(err)
		}
		positions = append(positions, e.Position)
		return true
	}}
	end := Event{Kind: EventTurnEnd, Session: "s", Turn: "1-x", stored: 2, turns: 1, End: &Turn{ID: "1-x", Reason: EndTurn}, Time: time.Now()}
	for _, e := range []Event{end, {Kind: EventHookOutput, Session: "s", stored: 2}, {Kind: EventHookRun, Session: "s", Turn: "2-y", stored: 2}} {
		if err := s.pass(&e); err != nil {
			t.Fatal(err)
		}
	}
	if len(positions) != 3 {
		t.Fatalf("the positions are %q, want three", positions)
	}
	for _, at := range positions {
		if at != "2-end-1-"+string(EndTurn) {
			t.Errorf("the positions are %q, want all of them behind the end of the turn", positions)
		}
	}
}

// FuzzPosition checks that a position that can be read is written as it was read.
func FuzzPosition(f *testing.F) {
	for _, text := range []string{"0", "12", "3-1", "7-end-2-end_turn", "1-", "-1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := parsePosition(text)
		if err != nil {
			return
		}
		again, err := parsePosition(at.String())
		if err != nil || again != at {
			t.Errorf("%q is read as %+v, which is written as %q and read as %+v, %v", text, at, at, again, err)
		}
	})
}
