package memstore_test

import (
	"context"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
)

// Commit allocates memory only when the list of messages grows. Its cost does not depend on
// the size of the session.
func TestCommitAllocatesLittle(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	s := memstore.New(nil)
	c := &belay.Commit{Session: "a", Epoch: open(t, s, "a").Epoch, State: &belay.SessionState{Turn: &belay.TurnState{ID: "turn"}}}
	const rounds = 2000
	messages := make([]*belay.Message, rounds+1) // AllocsPerRun adds a warm-up run
	for i := range messages {
		messages[i] = message(int64(i + 1))
		if i%2 == 0 {
			messages[i].Kind, messages[i].Parts = belay.KindAssistant, []belay.Part{{Call: &belay.CallPart{ID: "c"}}}
		}
	}
	calls, next := make([]belay.CallRecord, 3), 0
	allocs := testing.AllocsPerRun(rounds, func() {
		c.Messages, c.Calls = messages[next:next+1], calls
		for i := range calls {
			calls[i] = belay.CallRecord{Message: int64(next + 1), Index: i}
		}
		if err := s.Commit(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		next++
	})
	if allocs > 0 {
		t.Errorf("a commit of a message, three calls and a state allocates %.0f times, want 0 but for growth", allocs)
	}
}

func TestOpenCostsTheSameForAnyLength(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	allocs := func(length int64) float64 {
		s := memstore.New(nil)
		epoch := open(t, s, "a").Epoch
		for seq := range length {
			commit(t, s, epoch, belay.Commit{Messages: []*belay.Message{message(seq + 1)}})
		}
		return testing.AllocsPerRun(20, func() {
			s.Expire("a")
			if stored := open(t, s, "a"); int64(len(stored.Messages)) != length {
				t.Fatalf("%d messages are opened, want %d", len(stored.Messages), length)
			}
		})
	}
	if short, long := allocs(1), allocs(5000); long > short {
		t.Errorf("opening 5,000 messages allocates %.0f times and one message %.0f times, want the same", long, short)
	}
}

// BenchmarkCommit measures a commit of one message. For comparison, "floor" measures only
// the append to a list.
func BenchmarkCommit(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		var list []*belay.Message
		m := message(1)
		b.ReportAllocs()
		for b.Loop() {
			list = append(list, m)
		}
		if len(list) < b.N {
			b.Fatalf("the list has %d messages, want one for each round", len(list))
		}
	})
	b.Run("message", func(b *testing.B) {
		s := memstore.New(nil)
		m := message(0)
		c := &belay.Commit{Session: "a", Epoch: open(b, s, "a").Epoch, Messages: []*belay.Message{m}}
		b.ReportAllocs()
		for b.Loop() {
			m.Seq++ // reusing the message is safe: the store does not read it again
			if err := s.Commit(context.Background(), c); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkOpen measures opening a session of ten thousand messages.
func BenchmarkOpen(b *testing.B) {
	s := memstore.New(nil)
	epoch := open(b, s, "a").Epoch
	for seq := range int64(10_000) {
		commit(b, s, epoch, belay.Commit{Messages: []*belay.Message{message(seq + 1)}})
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Expire("a")
		open(b, s, "a")
	}
}
