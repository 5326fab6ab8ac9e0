package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
)

// failing is a store that returns an error for one commit. If stored is true, it stores
// this commit all the same.
type failing struct {
	*sqlite.Store
	at     int64
	stored bool
	count  atomic.Int64
}

var errDisk = errors.New("the disk is full")

func (s *failing) Commit(ctx context.Context, c *belay.Commit) error {
	if s.count.Add(1) != s.at {
		return s.Store.Commit(ctx, c)
	}
	if s.stored {
		if err := s.Store.Commit(ctx, c); err != nil {
			return err
		}
	}
	return errDisk
}

// If a commit fails, the turn has not ended. It continues from the stored state, its end
// phases fire once, and nothing is repeated.
//
// SPEC L-01
func TestCommitNotTaken(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{false, true} {
		for at := range int64(5) { // the commits of the user's message, the call, its result, the answer and the end
			t.Run(fmt.Sprintf("commit %d, stored %t", at+1, stored), func(t *testing.T) {
				t.Parallel()
				s := openFile(t, "")
				broken := &failing{Store: s, at: at + 1, stored: stored}
				var mu sync.Mutex
				var ends []string
				ran := 0
				agent := newAgent(t, model{}, belay.Options{
					Store: broken,
					Tools: []belay.Tool{tool("send", func(context.Context, *belay.Invocation) error { ran++; return nil }, nil)},
					Hooks: []hook.Subscription{belay.TurnPostTurn.On("end", func(_ context.Context, in belay.TurnEnded) (belay.Note, error) {
						mu.Lock()
						defer mu.Unlock()
						ends = append(ends, string(in.Reason()))
						return belay.Note{}, nil
					}, nil)},
				})
				submit(t, s, "main", "a", "call send")
				c := start(t, broken, engine.Of(agent), engine.Options{})
				if taken := c.next(t); !errors.Is(taken.Err, errDisk) {
					t.Fatalf("the turn ended %+v, %v, want %v", taken.Turn, taken.Err, errDisk)
				}
				if at == 4 && stored { // the turn has ended, so the next attempt finds no turn
					if taken := <-c.taken; !errors.Is(taken.Err, belay.ErrNoTurn) {
						t.Fatalf("after its end there is %+v, %v", taken.Turn, taken.Err)
					}
				} else if taken := c.next(t); taken.Err != nil || taken.Turn.Reason != belay.EndTurn {
					t.Fatalf("the turn that goes on ended %+v, %v", taken.Turn, taken.Err)
				}
				c.stop()
				got := texts(t, s, "a")
				if len(got) != 4 || got[0] != "user: call send" || got[1] != "call: send" || got[3] != "assistant: done: call send" {
					t.Errorf("the session says %q", got)
				}
				if ran > 1 {
					t.Errorf("the tool ran %d times", ran)
				}
				most := []string{"end_turn"}
				if at == 4 && !stored { // the end phases had fired before the commit failed
					most = append(most, "end_turn")
				}
				if !slices.Equal(ends, most) {
					t.Errorf("turn.post_turn got %q, want %q", ends, most)
				}
				idle(t, s)
			})
		}
	}
}
