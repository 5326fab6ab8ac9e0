package subagent_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/subagent"
)

// A process is killed while a subagent works. The resumed turn of the parent must count
// the usage of every response once. This must be true whether or not the parent has
// stored the child's usage before. The parent stores the child's usage when another call
// of the same message ends.
//
// SPEC L-01, S-07
func TestWhatAChildUsedBeforeAKillIsCountedOnce(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{1, 2, 3} {
		for _, sibling := range []bool{false, true} {
			t.Run(fmt.Sprintf("depth %d, sibling %t", depth, sibling), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { countAfterKill(t, depth, sibling) })
			})
		}
	}
}

func countAfterKill(t *testing.T, depth int, sibling bool) {
	store := memstore.New(nil)
	hold, over := make(chan struct{}), make(chan struct{})
	work := belay.NewTool("work", "works", func(context.Context, struct{}) (string, error) {
		<-hold
		return "worked", nil
	}, nil)
	quick := belay.NewTool("quick", "ends", func(context.Context, struct{}) (string, error) {
		time.Sleep(time.Second) // fake clock: the child is working by then
		return "ended", nil
	}, nil)
	family := func() *belay.Agent {
		paid := scripted.Step{Calls: []scripted.Call{call("work", nil)}, Usage: belay.Usage{In: 400, Out: 40, Cost: 0.5}}
		factory := subagent.Agent(script(paid, says("done")), &belay.Options{Tools: []belay.Tool{work}})
		e := newExtension(t, nil, subagent.Subagent{Name: fmt.Sprint("child", depth), Factory: factory})
		for d := depth - 1; d > 0; d-- {
			between := script(scripted.Step{Calls: []scripted.Call{invoke(fmt.Sprint("child", d+1), "x")}, Usage: belay.Usage{In: 50, Out: 5}}, says("done"))
			factory = subagent.Agent(between, &belay.Options{Extensions: []belay.Extension{e}})
			e = newExtension(t, nil, subagent.Subagent{Name: fmt.Sprint("child", d), Factory: factory})
		}
		first := scripted.Step{Calls: []scripted.Call{invoke("child1", "x")}, Usage: belay.Usage{In: 10, Out: 1}}
		if sibling {
			first.Calls = append(first.Calls, call("quick", nil))
		}
		model := script(first, scripted.Step{Text: "end", Usage: belay.Usage{In: 20, Out: 2}})
		return newAgent(t, model, &belay.Options{Store: store, Tools: []belay.Tool{quick}, Extensions: []belay.Extension{e}})
	}
	killed := family()
	go func() {
		defer close(over)
		_, _ = killed.Session("s").Turn(t.Context(), "go") // fails, because another process takes the session
	}()
	time.Sleep(time.Minute) // fake clock: all wait for the tool, and the result of quick is stored
	n := 0
	for s, err := range store.Sessions(t.Context(), belay.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		store.Expire(s.ID)
		n++
	}
	if n != depth+1 {
		t.Fatalf("there are %d sessions, want those of the family: %d", n, depth+1)
	}
	h := take(t, family().Session("s").Resume(t.Context()))
	h.ended(t, belay.EndTurn)
	want := belay.Usage{In: 10 + 50*(depth-1) + 400 + 20, Out: 1 + 5*(depth-1) + 40 + 2, Cost: 0.5}
	if h.end.Usage != want {
		t.Errorf("the turn's usage is %+v, want %+v", h.end.Usage, want)
	}
	close(hold)
	<-over
}
