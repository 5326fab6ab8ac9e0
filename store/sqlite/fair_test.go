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
		name       string
		wait, want [3]int // writes that open a session, begin a turn, and others
	}{
		{"few writes all fit", [3]int{10, 10, 20}, [3]int{10, 10, 20}},
		{"only new sessions", [3]int{300, 0, 0}, [3]int{96, 0, 0}},
		{"only running turns", [3]int{0, 0, 300}, [3]int{0, 0, 96}},
		{"running turns go first", [3]int{300, 0, 50}, [3]int{46, 0, 50}},
		{"turns begin before sessions are opened", [3]int{300, 20, 30}, [3]int{46, 20, 30}},
		{"the oldest writes go in any case", [3]int{300, 300, 300}, [3]int{8, 0, 88}},
		{"few old writes leave room", [3]int{0, 2, 300}, [3]int{0, 2, 94}},
	} {
		if got := s.FirstBatch(test.wait[0], test.wait[1], test.wait[2]); got != test.want {
			t.Errorf("%s: the transaction has %d writes of each stage, want %d", test.name, got, test.want)
		}
	}
}

// If many sessions run turns at once, the first turns end long before the last. The test
// counts transactions instead of measuring time.
func TestTurnsEndEarly(t *testing.T) {
	t.Parallel()
	const sessions, steps = 900, 4
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
