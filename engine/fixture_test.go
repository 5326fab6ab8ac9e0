package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/store/sqlite"
)

// patience is the timeout of a test.
const patience = time.Minute

// model is a model whose answer depends only on the transcript, so that every process gets
// the same answer. The last user message names the tools to call, one per step: "call a,
// b".
type model struct {
	name string
	// asked is called for each request, and may block. It may be nil.
	asked func(ctx context.Context, session string)
}

func (m model) Info() belay.ModelInfo { return belay.ModelInfo{Name: m.name} }

// Stream implements belay.Model.
func (m model) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		task, steps := "", 0
		for _, said := range req.Messages {
			switch {
			case said.Kind == belay.KindUser:
				task, steps = said.Text(), 0
			case said.Role == belay.RoleAssistant:
				steps++
			}
		}
		if m.asked != nil {
			m.asked(ctx, task)
		}
		if ctx.Err() != nil {
			yield(belay.Chunk{}, context.Cause(ctx))
			return
		}
		answer := belay.Response{Parts: []belay.Part{belay.Text("done: " + task)}, StopReason: belay.StopEnd, Usage: belay.Usage{In: 1, Out: 1}}
		if tools := calls(task); steps < len(tools) {
			answer.StopReason = belay.StopToolUse
			answer.Parts = []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{
				ID: fmt.Sprint(tools[steps], "-", steps), Tool: tools[steps], Input: []byte(fmt.Sprintf(`{"task":%q}`, task)),
			}}}
		}
		yield(belay.Chunk{Response: &answer}, nil)
	}
}

// calls returns the names of the tools in a task.
func calls(task string) []string {
	_, list, ok := strings.Cut(task, "call ")
	if !ok {
		return nil
	}
	return strings.Split(list, ", ")
}

// tool returns a tool that calls do.
func tool(name string, do func(ctx context.Context, call *belay.Invocation) error, traits *belay.ToolTraits) belay.Tool {
	return belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: "does something"}, func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
		if err := do(ctx, call); err != nil {
			return belay.Result{}, err
		}
		return belay.Result{Text: name + " is done"}, nil
	}, traits)
}

// newAgent returns an agent. It is closed when the test ends.
func newAgent(t testing.TB, m belay.Model, opts belay.Options) *belay.Agent {
	t.Helper()
	agent, err := belay.New(m, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := agent.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return agent
}

// newFile makes a file with an empty store.
var newFile = filetest.Copies("belay.db", func(path string) error {
	s, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	return s.Close()
})

// openFile opens the store in the file at path, or in a new file if path is "".
func openFile(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	if path == "" {
		path = newFile(t)
	}
	s, err := sqlite.Open(context.Background(), path, &sqlite.Options{JobPoll: 5 * time.Millisecond, Poll: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// crew is a running worker.
type crew struct {
	stop  func() // stops the worker and waits for its end
	taken chan engine.Taken
}

// start runs a worker until it is stopped or the test ends.
func start(t testing.TB, s engine.Store, agents engine.Agents, opts engine.Options) *crew {
	t.Helper()
	c := &crew{taken: make(chan engine.Taken, 1000)}
	opts.Told = func(taken engine.Taken) { c.taken <- taken }
	w, err := engine.New(s, agents, &opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	c.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			t.Error("the worker does not end")
		}
	})
	t.Cleanup(c.stop)
	return c
}

// next returns the next turn that a worker has run. It skips attempts that found no turn.
func (c *crew) next(t testing.TB) engine.Taken {
	t.Helper()
	for {
		select {
		case taken := <-c.taken:
			if !errors.Is(taken.Err, belay.ErrNoTurn) {
				return taken
			}
		case <-time.After(patience):
			t.Fatal("no turn was taken")
		}
	}
}

// submit submits a turn and fails the test on an error.
func submit(t testing.TB, s belay.TurnStore, agent, session, text string) {
	t.Helper()
	turn, err := belay.NewQueuedTurn(session, agent, text)
	if err == nil {
		err = s.Submit(t.Context(), turn)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// texts returns the messages of a session in the form "kind: text".
func texts(t testing.TB, s belay.Store, session string) (all []string) {
	t.Helper()
	for m, err := range s.Read(context.Background(), session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range m.Parts {
			switch {
			case p.Call != nil:
				all = append(all, "call: "+p.Call.Tool)
			case p.Result != nil:
				all = append(all, strings.TrimSpace("result: "+p.Result.Text))
			default:
				all = append(all, string(m.Kind)+": "+p.Text)
			}
		}
	}
	return all
}

func want(t testing.TB, s belay.Store, session string, all ...string) {
	t.Helper()
	if got := texts(t, s, session); !slices.Equal(got, all) {
		t.Errorf("session %s says\n  %s\nwant\n  %s", session, strings.Join(got, "\n  "), strings.Join(all, "\n  "))
	}
}

// idle asserts that no turn waits or is claimed.
func idle(t testing.TB, s belay.TurnStore) {
	t.Helper()
	load, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	claimed := 0
	for _, h := range load.Holders {
		claimed += len(h.Turns)
	}
	if load.Waiting != 0 || load.Parked != 0 || claimed != 0 {
		t.Errorf("the list of due turns is %+v, want it empty", load)
	}
}
