//go:build unix

package killtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
)

// patience is the timeout of a test.
const patience = 2 * time.Minute

// seed returns the seed of all random choices, and prints it.
func seed(t testing.TB) uint64 {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("BELAY_KILL_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("BELAY_KILL_SEED: %v", err)
		}
	}
	t.Logf("BELAY_KILL_SEED=%d repeats these instants", n)
	return n
}

// lane is one store, the processes that use it, and the log of their actions.
type lane struct {
	part
	t     *testing.T
	rand  *rand.Rand
	lives atomic.Int32
	kills int
	sent  map[string]int // number of submitted messages by session
}

// newLane makes a lane. Its random choices depend on the seed and the name of the test.
func newLane(t *testing.T, seed uint64, role, dsn string) *lane {
	t.Helper()
	l := &lane{t: t, part: part{Role: role, Dir: t.TempDir(), DSN: dsn}, sent: make(map[string]int)}
	l.rand = rand.New(rand.NewPCG(seed, chance(t.Name()).Uint64()))
	server := httptest.NewServer(http.HandlerFunc(l.webhook))
	t.Cleanup(server.Close)
	l.Webhooks = server.URL
	if err := l.declare(); err != nil {
		t.Fatal(err)
	}
	return l
}

// webhook handles the webhooks. It runs in the test process, which is not killed.
func (l *lane) webhook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller was killed before it had sent everything
	}
	var e worker.Envelope
	if err := json.Unmarshal(body, &e); err != nil {
		l.t.Errorf("a webhook was given %q: %v", body, err)
		return
	}
	for _, h := range hooks {
		if "/"+h.id == r.URL.Path {
			if err := l.answer(h, &e); err != nil {
				l.t.Error(err)
			}
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	l.t.Errorf("a webhook was called at %s", r.URL.Path)
}

// life is one process of a lane.
type life struct {
	*exec.Cmd
	number int
	ticks  chan struct{} // gets a value for each tick; after the first tick the process runs turns
	ended  chan error
	errs   bytes.Buffer
}

// Write counts the ticks of the process. The process writes only ticks to standard output.
func (c *life) Write(text []byte) (int, error) {
	for range text {
		select {
		case c.ticks <- struct{}{}:
		default: // the channel is full: the test does not wait for so many ticks
		}
	}
	return len(text), nil
}

// start starts a process.
func (l *lane) start() *life {
	l.t.Helper()
	p := l.part
	p.Life = int(l.lives.Add(1))
	text, err := json.Marshal(p)
	if err != nil {
		l.t.Fatal(err)
	}
	c := &life{Cmd: exec.CommandContext(context.Background(), os.Args[0], "-test.run=^$"), number: p.Life, ticks: make(chan struct{}, longest), ended: make(chan error, 1)}
	c.Env = append(os.Environ(), childPart+"="+string(text))
	c.Stdout, c.Stderr = c, &c.errs
	// Hooks that outlive the killed process still have its standard error open. WaitDelay
	// keeps Wait from waiting for them.
	c.WaitDelay = 10 * time.Millisecond
	in, err := c.StdinPipe()
	if err := errors.Join(err, c.Start()); err != nil {
		l.t.Fatal(err)
	}
	go func() { c.ended <- c.Wait() }() // ends when the process ends
	l.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = in.Close()
	})
	return c
}

// longest is the maximum number of ticks before a kill. A turn takes about as many ticks.
const longest = 75

// live waits for a random time before the process is killed: usually some ticks,
// sometimes so little time that the process is still starting.
func (l *lane) live(c *life) {
	l.t.Helper()
	if l.rand.IntN(6) == 0 {
		l.soon(5 * tickTime)
		return
	}
	over := time.After(patience)
	for range 1 + l.rand.IntN(longest) {
		select {
		case <-c.ticks:
		case err := <-c.ended:
			l.t.Fatalf("life %d ended before anybody killed it: %v\n%s", c.number, err, &c.errs)
		case <-over:
			l.t.Fatalf("life %d does not go on", c.number)
		}
	}
	l.soon(tickTime)
}

// kill kills a process.
func (l *lane) kill(c *life) {
	l.t.Helper()
	if err := c.Process.Kill(); err != nil {
		l.t.Fatalf("life %d ended before anybody killed it: %v, %v\n%s", c.number, err, <-c.ended, &c.errs)
	}
	err := <-c.ended
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Exited() {
		l.t.Fatalf("life %d ended by itself: %v\n%s", c.number, err, &c.errs)
	}
	if err := note(l.log(), &entry{Kind: logKilled, Life: c.number}); err != nil {
		l.t.Fatal(err)
	}
	l.kills++
}

// soon sleeps for a random time up to most.
func (l *lane) soon(most time.Duration) {
	time.Sleep(time.Duration(l.rand.Int64N(int64(most))))
}

// end waits until a process ends by itself.
func (l *lane) end(c *life) {
	l.t.Helper()
	select {
	case err := <-c.ended:
		if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			l.t.Fatalf("the last life ended with %v\n%s", err, &c.errs)
		}
	case <-time.After(patience):
		_ = c.Process.Signal(syscall.SIGQUIT) // SIGQUIT prints the stacks of the process
		err := <-c.ended
		l.t.Fatalf("the turns do not end: %v\n%s", err, &c.errs)
	}
}

// run starts a process that runs the turns of one session, and kills it, the given number
// of times. The last process may finish.
func (l *lane) run(kills int) {
	l.t.Helper()
	for range kills {
		c := l.start()
		l.live(c)
		l.kill(c)
	}
	if err := os.WriteFile(l.stop(), nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
	l.end(l.start())
}

// serve kills a random worker, the given number of times. Before each kill it submits
// messages.
func (l *lane) serve(workers, sessions, kills int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 10*patience)
	defer cancel()
	s, err := l.open(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			l.t.Error(err)
		}
	}()
	all := make([]*life, workers)
	for range kills {
		for n := l.left(ctx, s); n < 2*workers+1; n++ { // the workers cannot run more turns at once
			l.submit(ctx, s, "s"+strconv.Itoa(l.rand.IntN(sessions)))
		}
		i := l.rand.IntN(workers)
		if all[i] == nil {
			all[i] = l.start()
		}
		l.live(all[i])
		l.kill(all[i])
		all[i] = l.start()
	}
	l.atRest(ctx, s)
	for _, c := range all {
		if c == nil {
			continue
		}
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			l.t.Fatal(err)
		}
		l.end(c)
	}
}

// submit submits the next message of a session.
func (l *lane) submit(ctx context.Context, s store, session string) {
	l.t.Helper()
	l.sent[session]++
	task := taskOf(session, l.sent[session])
	turn, err := belay.NewQueuedTurn(session, "main", task)
	if err == nil {
		err = s.Submit(ctx, turn)
	}
	if err == nil {
		err = note(l.log(), &entry{Kind: logSubmitted, Session: session, Task: task})
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// left returns the number of turns that are due or claimed, plus the background work.
func (l *lane) left(ctx context.Context, s store) int {
	l.t.Helper()
	load, err := s.Load(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	stats, err := s.Queue().(hook.StatQueue).Stats(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	left := load.Waiting + load.Parked + stats.Waiting + stats.Running
	for _, h := range load.Holders {
		left += len(h.Turns)
	}
	return left
}

// atRest waits until no work is left.
func (l *lane) atRest(ctx context.Context, s store) {
	l.t.Helper()
	often := time.NewTicker(20 * time.Millisecond)
	defer often.Stop()
	for l.left(ctx, s) > 0 {
		select {
		case <-often.C:
		case <-ctx.Done():
			l.t.Fatalf("the turns do not end: %d are left", l.left(context.WithoutCancel(ctx), s))
		}
	}
}
