package engine_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/store/sqlite"
)

// seenEvents reads events until the end of a turn.
func seenEvents(ctx context.Context, t *testing.T, watcher *belay.Events, store belay.Store, session, after string) []belay.Event {
	t.Helper()
	var all []belay.Event
	for e, err := range watcher.Watch(ctx, store, &belay.WatchOptions{Session: session, After: after}) {
		if err != nil {
			t.Errorf("watch: %v", err)
			return all
		}
		all = append(all, e)
		if e.Kind == belay.EventTurnEnd {
			return all
		}
	}
	return all
}

// A watcher in another process gets the same stored events, with the same positions, as the
// process that runs the turn. From any position it gets exactly the rest.
//
// SPEC V-03
func TestEventsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	here, there := openFile(t, path), openFile(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	events := belay.NewEvents()
	agent := newAgent(t, model{}, belay.Options{Store: here, Events: events, Tools: []belay.Tool{tool("look", func(context.Context, *belay.Invocation) error { return nil }, nil)}})
	queued, err := agent.Session("s").Submit(ctx, "call look")
	if err != nil {
		t.Fatal(err)
	}
	local, remote := make(chan []belay.Event, 1), make(chan []belay.Event, 1)
	go func() { local <- seenEvents(ctx, t, events, here, "s", "0") }()
	go func() { remote <- seenEvents(ctx, t, belay.NewEvents(), there, "s", "0") }()
	worker, err := engine.New(here, engine.Of(agent), nil)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	working, stop := context.WithCancel(ctx)
	go func() { ran <- worker.Run(working) }()
	l, r := <-local, <-remote
	stop()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	want := []belay.EventKind{belay.EventTurnStart, belay.EventModelResponse, belay.EventToolUse, belay.EventToolUseResult, belay.EventModelResponse, belay.EventTurnEnd}
	stored := func(all []belay.Event) (kept []belay.Event) {
		for _, e := range all {
			if slices.Contains(want, e.Kind) {
				kept = append(kept, e)
			}
		}
		return kept
	}
	l = stored(l)
	if len(l) != len(want) || len(r) != len(want) {
		t.Fatalf("the process that runs the turn sees %d stored events, the other %d events, want %d", len(l), len(r), len(want))
	}
	for i, kind := range want {
		if l[i].Kind != kind || r[i].Kind != kind || l[i].Position != r[i].Position || l[i].Turn != r[i].Turn || l[i].Agent != r[i].Agent {
			t.Errorf("event %d is %s at %s in %s of %s here, and %s at %s in %s of %s there, want %s", i, l[i].Kind, l[i].Position, l[i].Turn, l[i].Agent, r[i].Kind, r[i].Position, r[i].Turn, r[i].Agent, kind)
		}
	}
	if first := r[0].Message; first == nil || first.Queued != queued.ID {
		t.Errorf("turn_start has message %+v, want one with the id %s of the queued turn", first, queued.ID)
	}
	if end := l[len(l)-1].End; end.Text != "done: call look" || end.Steps != 2 {
		t.Errorf("the turn_end of the process that runs the turn is %+v, want it with text and steps", end)
	}
	for i := range r[:len(r)-1] {
		rest := seenEvents(ctx, t, belay.NewEvents(), there, "s", r[i].Position)
		if len(rest) != len(r)-i-1 {
			t.Errorf("after %s there are %d events, want %d", r[i].Position, len(rest), len(r)-i-1)
		}
	}
}

// A watcher gets an error when its session is deleted.
//
// SPEC V-03
func TestEventsOfADeletedSession(t *testing.T) {
	t.Parallel()
	store := openFile(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := store.Describe(ctx, "s", belay.SessionUpdate{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for _, err := range belay.NewEvents().Watch(ctx, store, &belay.WatchOptions{Session: "s", After: "0"}) {
			ended <- err
			return
		}
		ended <- nil
	}()
	if err := store.Delete(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, belay.ErrNotFound) {
		t.Errorf("the watcher ends with %v, want ErrNotFound", err)
	}
}

// A turn that was not queued can be queued after a decision. A worker then resumes it.
//
// SPEC V-02
func TestRequeue(t *testing.T) {
	t.Parallel()
	store := openFile(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	parks := true
	agent := newAgent(t, model{}, belay.Options{Store: store, Tools: []belay.Tool{belay.NewRawTool(belay.ToolDeclaration{Name: "wait", Description: "waits"},
		func(context.Context, *belay.Invocation) (belay.Result, error) {
			if parks {
				parks = false
				return belay.Result{}, belay.Park("mail")
			}
			return belay.Result{Text: "it came"}, nil
		}, nil)}})
	s := agent.Session("s")
	if turn, err := s.Turn(ctx, "call wait"); err != nil || turn.Reason != belay.EndParked {
		t.Fatalf("the turn ended with %+v, %v, want it parked", turn, err)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := store.Requeue(ctx, belay.DueTurn{Session: "nobody", Agent: "main"}); !errors.Is(err, belay.ErrNotFound) {
		t.Errorf("a session that does not exist is queued: %v", err)
	}
	if err := store.Requeue(ctx, belay.DueTurn{Session: "s", Agent: "main"}); err != nil {
		t.Fatal(err)
	}
	taken := make(chan engine.Taken, 1)
	worker, err := engine.New(store, engine.Of(agent), &engine.Options{Told: func(one engine.Taken) { taken <- one }})
	if err != nil {
		t.Fatal(err)
	}
	working, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- worker.Run(working) }()
	select {
	case one := <-taken:
		if one.Err != nil || one.Turn == nil || one.Turn.Text != "done: call wait" {
			t.Errorf("the worker took %+v, %v", one.Turn, one.Err)
		}
	case <-time.After(patience):
		t.Error("no worker resumed the turn")
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// slowly is a model that sends deltas one by one, each after a signal.
type slowly struct{ deltas chan string }

func (m slowly) Stream(ctx context.Context, _ *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		var all string
		for {
			select {
			case text, more := <-m.deltas:
				if !more {
					yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text(all)}, StopReason: belay.StopEnd}}, nil)
					return
				}
				all += text
				if !yield(belay.Chunk{Text: text}, nil) {
					return
				}
			case <-ctx.Done():
				yield(belay.Chunk{}, context.Cause(ctx))
				return
			}
		}
	}
}

// A watcher in another process gets the deltas of a turn while the turn runs, even if the
// watcher starts in the middle of the turn. It gets every stored event once.
//
// SPEC V-03
func TestDeltasOfOtherProcesses(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	here, there := openFile(t, path), openFile(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	running, watching := belay.NewEvents(), belay.NewEvents()
	var sharing sync.WaitGroup
	sharing.Go(func() { running.Share(ctx, here) })
	sharing.Go(func() { watching.Share(ctx, there) })
	m := slowly{make(chan string)}
	agent := newAgent(t, m, belay.Options{Store: here, Events: running})
	turn := make(chan error, 1)
	go func() {
		_, err := agent.Session("s").Turn(ctx, "talk")
		turn <- err
	}()
	m.deltas <- "before "
	seen := make(chan belay.Event, 1000)
	go func() {
		defer close(seen)
		for e, err := range watching.Watch(ctx, there, &belay.WatchOptions{Session: "s", After: "0"}) {
			if _, missed := errors.AsType[*belay.MissedError](err); err != nil && !missed {
				t.Errorf("watch: %v", err)
				return
			}
			seen <- e
			if e.Kind == belay.EventTurnEnd {
				return
			}
		}
	}()
	// The other process announces its watcher, which takes a moment. Until then deltas are
	// lost, so the model repeats one until it arrives.
	kinds := map[belay.EventKind]int{}
	until := func(delta string, repeated <-chan time.Time) {
		m.deltas <- delta
		for {
			select {
			case <-repeated:
				m.deltas <- delta
			case e := <-seen:
				if kinds[e.Kind]++; e.Kind == belay.EventTextDelta && e.Text == delta {
					return
				}
			case <-ctx.Done():
				t.Fatalf("the delta %q of the other process does not arrive", delta)
			}
		}
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	until("again ", again.C)
	until("last", nil)
	close(m.deltas)
	var end *belay.Turn
	for e := range seen {
		kinds[e.Kind]++
		end = e.End
	}
	if err := <-turn; err != nil {
		t.Fatal(err)
	}
	if kinds[belay.EventTurnStart] != 1 || kinds[belay.EventModelResponse] != 1 || kinds[belay.EventTurnEnd] != 1 || end.Reason != belay.EndTurn {
		t.Errorf("the watcher saw %v, and the end %+v, want each stored event once", kinds, end)
	}
	cancel()
	sharing.Wait()
}

// Nothing is sent about a turn that no other process watches.
//
// SPEC V-03
func TestTurnsThatNobodyWatchesSendNothing(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	here, there := openFile(t, path), openFile(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	received := make(chan []string, 1)
	messages := there.Broadcasts(ctx)
	go func() {
		var all []string
		for message := range messages {
			if all = append(all, message); message == "end" {
				break
			}
		}
		received <- all
	}()
	events := belay.NewEvents()
	sharing, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		events.Share(sharing, here)
		close(done)
	}()
	agent := newAgent(t, model{}, belay.Options{Store: here, Events: events})
	if _, err := agent.Session("s").Turn(ctx, "hello"); err != nil {
		t.Fatal(err)
	}
	stop()
	<-done
	if err := here.Broadcast(ctx, "end"); err != nil {
		t.Fatal(err)
	}
	if all := <-received; len(all) != 1 {
		t.Errorf("the other process got %q, want only the message that ends the test", all)
	}
}

// A request to abort reaches the worker that runs the turn, also from another process.
//
// SPEC V-02
func TestAbort(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]func(t *testing.T, w *engine.Worker, store belay.RequeueStore){
		"in the same process": func(t *testing.T, w *engine.Worker, _ belay.RequeueStore) {
			t.Helper()
			if w.Abort("nobody", "", errors.New("x")) || w.Abort("s", "another turn", errors.New("x")) || !w.Abort("s", "", errors.New("aborted by ann")) {
				t.Error("the worker does not know which turns it runs")
			}
		},
		"from another process": func(t *testing.T, _ *engine.Worker, store belay.RequeueStore) {
			t.Helper()
			if err := store.Requeue(t.Context(), belay.DueTurn{Session: "s", Agent: "main", Abort: "ann"}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newFile(t)
			here, there := openFile(t, path), openFile(t, path)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			asked := make(chan struct{}, 1)
			agent := newAgent(t, model{asked: func(ctx context.Context, _ string) {
				asked <- struct{}{}
				<-ctx.Done()
			}}, belay.Options{Store: here})
			if _, err := agent.Session("s").Submit(ctx, "a task"); err != nil {
				t.Fatal(err)
			}
			worker, taken := work(t, here, agent)
			<-asked
			request(t, worker, there)
			if one := <-taken; one.Turn == nil || one.Turn.Reason != belay.EndAborted {
				t.Errorf("the turn ended with %+v, %v, want it aborted", one.Turn, one.Err)
			}
			for info, err := range there.Sessions(ctx, belay.SessionFilter{}) {
				if err != nil || info.State.Turn != nil || info.State.Last != belay.EndAborted || info.State.Ending == nil || info.State.Ending.Why != "aborted by ann" {
					t.Errorf("the session is stored as %+v, %+v, %v", info.State, info.State.Ending, err)
				}
			}
		})
	}
}

// A request to abort a turn that no process runs is fulfilled by the worker that claims it.
//
// SPEC V-02
func TestAbortParked(t *testing.T) {
	t.Parallel()
	store := openFile(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	agent := newAgent(t, model{}, belay.Options{Store: store, Tools: []belay.Tool{tool("wait", func(context.Context, *belay.Invocation) error { return belay.Park("mail") }, nil)}})
	s := agent.Session("s")
	if turn, err := s.Turn(ctx, "call wait"); err != nil || turn.Reason != belay.EndParked {
		t.Fatalf("the turn ended with %+v, %v, want it parked", turn, err)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := store.Requeue(ctx, belay.DueTurn{Session: "s", Agent: "main", Abort: "ann"}); err != nil {
		t.Fatal(err)
	}
	_, taken := work(t, store, agent)
	if one := <-taken; one.Err != nil || one.Turn == nil || one.Turn.Reason != belay.EndAborted {
		t.Errorf("the turn ended with %+v, %v, want it aborted", one.Turn, one.Err)
	}
}

// A request to abort a turn that has ended in the meantime does not abort the next turn. It
// comes before the next turn is claimed, or while that turn runs.
//
// SPEC V-02
func TestAbortComesTooLate(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]bool{"before the next turn is claimed": false, "while the next turn runs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newFile(t)
			here, there := openFile(t, path), openFile(t, path)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			asked, gate := make(chan struct{}, 10), make(chan struct{})
			agent := newAgent(t, model{asked: func(ctx context.Context, task string) {
				if asked <- struct{}{}; task != "second" {
					return
				}
				select {
				case <-gate:
				case <-ctx.Done():
				}
			}}, belay.Options{Store: here})
			first, err := agent.Session("s").Turn(ctx, "first")
			if err != nil {
				t.Fatal(err)
			}
			if err := agent.Session("s").Close(ctx); err != nil {
				t.Fatal(err)
			}
			<-asked
			late := func() {
				if err := there.Requeue(ctx, belay.DueTurn{Session: "s", Agent: "main", Abort: "ann", AbortTurn: first.ID}); err != nil {
					t.Error(err)
				}
			}
			if _, err := agent.Session("s").Submit(ctx, "second"); err != nil {
				t.Fatal(err)
			}
			if !running {
				late()
			}
			worker, taken := work(t, here, agent)
			<-asked
			if running {
				late()
			}
			if worker.Abort("s", first.ID, errors.New("aborted by ann")) {
				t.Error("the worker aborts the turn that has ended")
			}
			engine.LookForAborts(ctx, worker)
			close(gate)
			if one := <-taken; one.Err != nil || one.Turn == nil || one.Turn.Reason != belay.EndTurn {
				t.Errorf("the next turn ended with %+v, %v, want it done", one.Turn, one.Err)
			}
		})
	}
}

// work runs a worker until the test ends. taken gets the turns that it has taken.
func work(t *testing.T, store *sqlite.Store, agent *belay.Agent) (worker *engine.Worker, taken <-chan engine.Taken) {
	t.Helper()
	told := make(chan engine.Taken, 10)
	worker, err := engine.New(store, engine.Of(agent), &engine.Options{Told: func(one engine.Taken) { told <- one }})
	if err != nil {
		t.Fatal(err)
	}
	working, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- worker.Run(working) }()
	t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	return worker, told
}
