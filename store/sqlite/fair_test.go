package sqlite_test

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// If more writes wait than fit into a transaction, writes of running turns come first, but
// some new turns always begin.
func TestRunningTurnsGoFirst(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	for _, test := range []struct {
		name                 string
		begin, other         int // requests that wait
		wantBegin, wantOther int // requests of the first transaction
	}{
		{"few requests all fit", 10, 20, 10, 20},
		{"only new turns", 300, 0, 64, 0},
		{"only running turns", 0, 300, 0, 64},
		{"running turns go first", 300, 50, 14, 50},
		{"some new turns always begin", 300, 300, 8, 56},
		{"few new turns leave room", 2, 300, 2, 62},
	} {
		begin, other := s.FirstBatch(test.begin, test.other)
		if begin != test.wantBegin || other != test.wantOther {
			t.Errorf("%s: the transaction has %d new and %d other writes, want %d and %d", test.name, begin, other, test.wantBegin, test.wantOther)
		}
	}
}

// If many sessions run turns at once, the first turns end long before the last. The test
// counts transactions instead of measuring time.
func TestTurnsEndEarly(t *testing.T) {
	t.Parallel()
	const sessions, steps = 600, 4
	s := open(t, nil)
	ended := make(chan int64, sessions)
	release := s.Block()
	before := s.Stats().Transactions
	for i := range sessions {
		go func() { // ends with the turn
			defer func() { ended <- s.Stats().Transactions - before }()
			id := fmt.Sprint("s", i)
			stored, err := s.Open(context.Background(), id)
			for n := int64(1); n <= steps && err == nil; n++ {
				c := say(id, stored.Epoch, n, "text")
				if n > 1 {
					c.Messages[0].Role, c.Messages[0].Kind = "assistant", "assistant"
				}
				err = s.Commit(context.Background(), c)
			}
			if err != nil {
				t.Error(err)
			}
		}()
	}
	awaitWaiting(s, sessions)
	release()
	var at []int64
	for range sessions {
		select {
		case n := <-ended:
			at = append(at, n)
		case <-time.After(2 * time.Minute):
			t.Fatalf("%d of %d turns ended", len(at), sessions)
		}
	}
	if median, last := at[sessions/2], at[sessions-1]; median*10 > last*7 {
		t.Errorf("half of the turns ended after %d of %d transactions, want at most 70%%", median, last)
	}
}
