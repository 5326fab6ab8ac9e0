package looptest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/storetest"
)

// If a consumer panics, it leaves the stream, as with a break. The turn is aborted, its end
// phases fire, and the session can run the next turn.
//
// SPEC L-03
func TestAConsumerThatPanicsLeavesTheStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // if the session is stuck, synctest reports a deadlock
		var d diary
		slow := scripted.Step{Compute: func(ctx context.Context, _ *belay.Request) (scripted.Step, error) {
			<-ctx.Done()
			return scripted.Step{}, context.Cause(ctx)
		}}
		agent, _ := newAgent(t, &belay.Options{Hooks: []hook.Subscription{noteEnds(&d)}}, slow)
		session := agent.Session("s")
		func() {
			defer func() {
				if p := recover(); p != "gone" {
					t.Errorf("the consumer's panic arrived as %v", p)
				}
			}()
			for range session.Run(t.Context(), "a") {
				panic("gone")
			}
		}()
		takeTurn(t, session.Run(t.Context(), "b"), belay.EndTurn)
		wantEqual(t, "the reasons at turn.post_turn", d.all(), []string{"aborted", "end_turn"})
	})
}

// noteEnds returns a hook that notes the reasons of turns.
func noteEnds(d *diary) hook.Subscription {
	return belay.TurnPostTurn.On("ends", func(_ context.Context, e belay.TurnEnded) (belay.Note, error) {
		d.notef("%s", e.Reason())
		return belay.Note{}, nil
	}, nil)
}

// If a commit fails, turn.post_turn fires with the reason error. When the turn is resumed
// and ends, turn.post_turn fires again with the final reason.
//
// SPEC L-01
func TestATurnThatIsResumedAfterAFaultTellsItsEndAgain(t *testing.T) {
	t.Parallel()
	var d diary
	// The commits are the user's message and the response.
	store := storetest.Faulty(memstore.New(nil), &storetest.Plan{Commit: 2})
	session := agentOf(t, scriptOf(says("lost"), says("kept")), &belay.Options{Store: store, Hooks: []hook.Subscription{noteEnds(&d)}}).Session("s")
	if turn, err := session.Turn(t.Context(), "go"); turn.Reason != belay.EndError || !errors.Is(err, storetest.ErrInjected) {
		t.Fatalf("the turn is %+v, %v", turn, err)
	}
	resumed := takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
	wantEqual(t, "the answer", resumed.Text, "kept")
	wantEqual(t, "the reasons at turn.post_turn", d.all(), []string{"error", "end_turn"})
}

// fullJournal is a journal that rejects everything.
type fullJournal struct{ err error }

func (j fullJournal) Append(context.Context, []hook.Run) error { return j.err }

func TestLostRecordsAreToldWhetherOrNotSomebodyWatches(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	for rule, turn := range map[string]func(s *belay.Session) (*belay.Turn, error){
		"a turn that is watched": func(s *belay.Session) (*belay.Turn, error) { return belay.Await(s.Run(context.Background(), "go")) },
		"a turn that is not":     func(s *belay.Session) (*belay.Turn, error) { return s.Turn(context.Background(), "go") },
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			agent, err := belay.New(scriptOf(says("done")), &belay.Options{
				Runtime: &hook.RuntimeOptions{Journal: fullJournal{full}},
				Hooks: []hook.Subscription{belay.ModelPre.On("look", func(context.Context, belay.ModelRequest) (belay.Aside, error) {
					return belay.Aside{}, nil
				}, nil)},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = agent.Close(context.Background()) }) // Close reports the lost records again
			if _, err := turn(agent.Session("s")); !errors.Is(err, full) {
				t.Errorf("the turn ended with %v, want it to tell of the full disk", err)
			}
		})
	}
}
