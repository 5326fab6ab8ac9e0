package fleet_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/store/postgres"
)

func TestMain(m *testing.M) {
	child()
	os.Exit(withServer(m))
}

// server is the server of the tests. It has a template database with an empty store.
var server *pgtest.Server

const template = "belay_template"

func withServer(m *testing.M) (code int) {
	var err error
	if server, err = pgtest.Start(nil); err != nil {
		return failed(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			code = failed(err)
		}
	}()
	dsn, err := server.Create(context.Background(), template, "template1")
	if err != nil {
		return failed(err)
	}
	s, err := postgres.Open(context.Background(), dsn, nil)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return failed(err)
	}
	return m.Run()
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

const (
	// patience is the timeout of a test.
	patience = time.Minute
	// takeover is the takeover time of the stores in these tests.
	takeover = 1500 * time.Millisecond
)

// model is a model whose answer depends only on the transcript, so that every process gets
// the same answer. The last user message names the tools to call, one per step: "call a,
// b".
type model struct{}

func (model) Info() belay.ModelInfo { return belay.ModelInfo{Name: "fleet"} }

// Stream implements belay.Model.
func (model) Stream(_ context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
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
		answer := belay.Response{Parts: []belay.Part{belay.Text("done: " + task)}, StopReason: belay.StopEnd, Usage: belay.Usage{In: 1, Out: 1}}
		_, list, _ := strings.Cut(task, "call ")
		if tools := strings.Split(list, ", "); list != "" && steps < len(tools) {
			answer.StopReason = belay.StopToolUse
			answer.Parts = []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{
				ID: fmt.Sprint(tools[steps], "-", steps), Tool: tools[steps], Input: []byte(fmt.Sprintf(`{"step":%d}`, steps)),
			}}}
		}
		yield(belay.Chunk{Response: &answer}, nil)
	}
}

type process struct {
	*exec.Cmd
	t     testing.TB
	lines chan line
	errs  *strings.Builder
	once  sync.Once

	mu      sync.Mutex
	samples []sample
}

// begin starts a worker process. If the process is still running at the end of the test,
// it is killed.
func begin(t testing.TB, p part) *process {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	w := &process{Cmd: exec.CommandContext(context.Background(), os.Args[0], "-test.run=^$"), t: t, lines: make(chan line, 10_000), errs: &strings.Builder{}}
	w.Env = append(os.Environ(), childPart+"="+string(text))
	w.Stderr = w.errs
	in, errIn := w.StdinPipe()
	out, errOut := w.StdoutPipe()
	if err := errors.Join(errIn, errOut, w.Start()); err != nil {
		t.Fatal(err)
	}
	go func() { // ends when the process ends
		defer close(w.lines)
		scan := bufio.NewScanner(out)
		for scan.Scan() {
			var l line
			if json.Unmarshal(scan.Bytes(), &l) != nil {
				continue
			}
			if l.Sample == nil {
				w.lines <- l
				continue
			}
			w.mu.Lock()
			w.samples = append(w.samples, *l.Sample)
			w.mu.Unlock()
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	t.Cleanup(func() {
		w.kill()
		_ = in.Close()
	})
	return w
}

// kill kills the worker's process, which can do nothing about it.
func (w *process) kill() {
	w.once.Do(func() {
		_ = w.Process.Kill()
		_ = w.Wait()
	})
}

// end waits until the worker process has ended by itself.
func (w *process) end() {
	w.t.Helper()
	for range w.lines {
	}
	w.once.Do(func() {
		if err := w.Wait(); err != nil {
			w.t.Errorf("the worker ended with %v:\n%s", err, w.errs)
		}
	})
}

// until returns the next line that matches is.
func (w *process) until(what string, is func(line) bool) line {
	w.t.Helper()
	over := time.After(patience)
	for {
		select {
		case l, ok := <-w.lines:
			if !ok {
				w.kill()
				w.t.Fatalf("the worker ended before %s:\n%s", what, w.errs)
			}
			if is(l) {
				return l
			}
		case <-over:
			w.t.Fatalf("the worker does not say: %s", what)
		}
	}
}

// open opens a store. It is closed when the test ends.
func open(t testing.TB, dsn string, opts *postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), dsn, opts)
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

// submit submits a turn and fails the test on an error.
func submit(t testing.TB, s belay.TurnStore, session, text string) {
	t.Helper()
	turn, err := belay.NewQueuedTurn(session, "main", text)
	if err == nil {
		err = s.Submit(context.Background(), turn)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// atRest waits until no turn is due, claimed or parked, and no job is left.
func atRest(ctx context.Context, t testing.TB, s *postgres.Store) {
	t.Helper()
	often := time.NewTicker(20 * time.Millisecond)
	defer often.Stop()
	for {
		load, err := s.Load(ctx)
		if err != nil {
			t.Fatal(err)
		}
		stats, err := s.Check(ctx)
		if err != nil {
			t.Fatal(err)
		}
		left := load.Waiting + load.Parked + stats.Jobs.Waiting + stats.Jobs.Running
		for _, h := range load.Holders {
			left += len(h.Turns)
		}
		if left == 0 {
			return
		}
		select {
		case <-often.C:
		case <-ctx.Done():
			t.Fatalf("this is left: %+v, jobs %+v", load, stats.Jobs)
		}
	}
}

// read returns the messages of a session in the form "kind: text".
func read(t testing.TB, s belay.Store, session string) (all []string) {
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
				all = append(all, "result: "+p.Result.Text)
			default:
				all = append(all, string(m.Kind)+": "+p.Text)
			}
		}
	}
	return all
}

// interruption is the beginning of the result of an interrupted call.
const interruption = "result: The process ended during this call"

// check asserts that the only turn of a session, with these tools, has ended. Each call has
// a result or an interruption. A tool that is not idempotent ran at most once.
func check(t testing.TB, s belay.Store, done map[string]int, session string, tools ...string) {
	t.Helper()
	task := "call " + strings.Join(tools, ", ")
	want := []string{"user: " + task}
	for _, tool := range tools {
		want = append(want, "call: "+tool, "result: "+tool+" is done")
	}
	want = append(want, "assistant: done: "+task)
	got := read(t, s, session)
	if len(got) != len(want) {
		t.Errorf("session %s says\n  %s\nwant\n  %s", session, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		return
	}
	for i, tool := range tools {
		n := done[fmt.Sprint(session, " ", tool, "-", i)]
		lost := strings.HasPrefix(got[2*i+2], interruption)
		switch {
		case tool == "look" && (lost || n == 0):
			t.Errorf("session %s: look is idempotent, ran %d times, and the result for the model is %q", session, n, got[2*i+2])
		case tool != "look" && n > 1:
			t.Errorf("session %s: %s is not idempotent and ran %d times", session, tool, n)
		case n == 0 && !lost:
			t.Errorf("session %s: %s never ran, and the result for the model is %q", session, tool, got[2*i+2])
		}
		if lost {
			want[2*i+2] = got[2*i+2]
		}
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("session %s says %q, want %q", session, got[i], want[i])
		}
	}
}
