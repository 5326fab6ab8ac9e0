package serve_test

import (
	"context"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
)

// workElsewhere runs a worker with its own host on the store of the world, as another process
// does.
func (w *world) workElsewhere(user string) {
	w.t.Helper()
	h, err := host.Open(w.t.Context(), &host.Options{Dir: w.dir, UserDir: user, Environ: []string{}, Model: w.model, NoJobs: true})
	if err != nil {
		w.t.Fatal(err)
	}
	worker, err := engine.New(h.Store().(engine.Store), h.Agent, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { h.Share(ctx) })
	working.Go(func() {
		if err := worker.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() {
		stop()
		working.Wait()
		if err := h.Close(); err != nil {
			w.t.Error(err)
		}
	})
}

// A server that runs no turns streams the deltas of a worker in another process, and aborts
// its turn.
//
// SPEC V-02, V-03
func TestWorkerElsewhere(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	w := newWorld(t, nil, func(h *host.Options, s *serve.Options) { h.UserDir, s.Workers = user, 0 })
	w.workElsewhere(user)
	id := w.newSession()
	w.call("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "chatter"}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	kinds := map[string]int{}
	err := w.follow(ctx, "admin", "/v1/sessions/"+id+"/events", "", func(e event) error {
		if kinds[e.kind]++; e.kind == "text_delta" {
			return errStop
		}
		return nil
	})
	if err != nil || kinds["turn_start"] != 1 {
		t.Fatalf("the stream of the running turn has %v and ends with %v, want a delta", kinds, err)
	}
	w.call("admin", "POST", "/v1/sessions/"+id+"/abort", nil, nil)
	var s struct {
		State string `json:"state"`
	}
	eventually(t, "the turn is aborted", func() bool {
		w.call("admin", "GET", "/v1/sessions/"+id, nil, &s)
		return s.State == string(belay.EndAborted)
	})
}

// A server without workers leaves its turns to the workers of other processes: a turn waits in
// the queue until a worker comes, and the worker's model answers.
//
// SPEC V-01
func TestTurnsAreLeftToWorkers(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	own := &model{asked: make(chan string, 1), gate: make(chan struct{})}
	close(own.gate)
	w := newWorld(t, nil, func(h *host.Options, s *serve.Options) { h.UserDir, h.Model, s.Workers = user, own, 0 })
	w.model.asked = make(chan string, 1)
	close(w.model.gate)
	id := w.newSession()
	w.call("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "block"}, nil)
	if ids := w.queueOf(id); len(ids) != 1 {
		t.Fatalf("without a worker the queue has %q, want the turn", ids)
	}
	w.workElsewhere(user)
	eventually(t, "the turn ends", func() bool {
		var s session
		w.call("admin", "GET", "/v1/sessions/"+id, nil, &s)
		return s.State == "done"
	})
	if len(own.asked) > 0 || len(w.model.asked) != 1 {
		t.Errorf("the server's model was asked %d times and the worker's %d times, want only the worker's", len(own.asked), len(w.model.asked))
	}
}
