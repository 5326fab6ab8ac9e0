package looptest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
)

// If the commit of a response fails, the usage of the turn still includes the response
// once. This holds if the same process resumes the turn, abandons it, or fails to store
// it again. It also holds if the commit was stored although it returned an error.
//
// SPEC L-01, L-07
func TestAResponseWhoseCommitFailsIsCounted(t *testing.T) {
	t.Parallel()
	lost := errors.New("the store is away")
	for name, test := range map[string]struct {
		fails  map[int]bool // the numbers of the commits that fail; if true, the commit is stored all the same
		closes bool         // the session is closed before the turn is resumed, as a worker does
		gives  bool         // the turn is abandoned
		asked  int          // number of requests to the model
	}{
		"it is resumed":                    {fails: map[int]bool{2: false}, asked: 2},
		"it is resumed in another session": {fails: map[int]bool{2: false}, closes: true, asked: 2},
		"it fails twice":                   {fails: map[int]bool{2: false, 3: false}, asked: 3},
		"it was stored after all":          {fails: map[int]bool{2: true}, asked: 1},
		"it is abandoned":                  {fails: map[int]bool{2: false}, gives: true, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, asked, commits := &lossyStore{Store: memstore.New(nil)}, 0, 0
				store.fail = func() (stored bool, err error) {
					commits++
					if stored, ok := test.fails[commits]; ok {
						return stored, lost
					}
					return true, nil
				}
				agent := agentOf(t, modelFunc(func(_ context.Context, _ *belay.Request, yield func(belay.Chunk, error) bool) {
					asked++
					yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text("done")}, StopReason: belay.StopEnd, Usage: belay.Usage{In: 1000, Out: 1, Cost: 0.1}}}, nil)
				}), &belay.Options{Store: store})
				turn, err := agent.Session("s").Turn(t.Context(), "a")
				for range test.fails {
					if !errors.Is(err, lost) {
						t.Fatalf("the turn is %+v, %v, want the store's error", turn, err)
					}
					s := agent.Session("s")
					if test.closes {
						if err := s.Close(t.Context()); err != nil {
							t.Fatal(err)
						}
						s = agent.Session("s")
					}
					if test.gives {
						turn, err = s.Abandon(t.Context())
						continue
					}
					turn, err = belay.Await(s.Resume(t.Context()))
				}
				if err != nil && !errors.Is(err, belay.ErrNoTurn) {
					t.Fatal(err)
				}
				if got := agent.Session("s").Usage(); asked != test.asked || got.In != 1000*test.asked || got.Out != test.asked {
					t.Errorf("the model was asked %d times and the session took %+v, want %d responses counted", asked, got, test.asked)
				}
			})
		})
	}
}

// lossyStore is a store whose commits can fail, and can be stored although they fail.
type lossyStore struct {
	belay.Store

	fail func() (stored bool, err error)
}

func (s *lossyStore) Commit(ctx context.Context, c *belay.Commit) error {
	stored, err := s.fail()
	if stored {
		return errors.Join(s.Store.Commit(ctx, c), err)
	}
	return err
}
