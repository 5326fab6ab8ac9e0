package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/postgres"
	"github.com/belay-run/belay/store/sqlite"
)

// childPart is the environment variable that starts the test binary again as a worker. It
// contains a part as JSON.
const childPart = "BELAY_FLEET_TEST"

// part is the task of a child process.
type part struct {
	DSN string `json:"dsn"`
	// Dir is the directory of the file in which tools record their effects.
	Dir string `json:"dir"`
	// Kill is the point at which the process kills itself.
	Kill string `json:"kill"`
	// Once makes the worker end after one turn and one job.
	Once     bool          `json:"once"`
	Takeover time.Duration `json:"takeover"`
	Turns    int           `json:"turns"`
	// Failing is how many of a hundred hook runs fail. Hanging is how many hang.
	Failing int `json:"failing"`
	Hanging int `json:"hanging"`
	// Pause is how long a tool takes.
	Pause time.Duration `json:"pause"`
	// Sample is the time between two reports of the process's size. 0 means no reports.
	Sample time.Duration `json:"sample"`

	done chan struct{} // receives a value for each ended turn and each job
}

// line is a line of a child's output.
type line struct {
	Ready   bool            `json:"ready,omitempty"`
	Point   string          `json:"point,omitempty"`
	Began   string          `json:"began,omitempty"` // session of a call of the tool stand, which waits
	Session string          `json:"session,omitempty"`
	End     belay.EndReason `json:"end,omitempty"`
	Err     string          `json:"err,omitempty"`
	Fenced  bool            `json:"fenced,omitempty"`
	// Goroutines is the number of goroutines after the worker has ended.
	Goroutines int `json:"goroutines,omitempty"`
	// Sample is the size of the worker.
	Sample *sample `json:"sample,omitempty"`
}

var saying sync.Mutex

func say(l line) {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	saying.Lock()
	_, err = os.Stdout.Write(append(text, '\n'))
	saying.Unlock()
	if err != nil {
		os.Exit(3) // the parent process has ended
	}
}

// child runs the task of a child process and never returns. It does nothing in the parent.
func child() {
	text := os.Getenv(childPart)
	if text == "" {
		return
	}
	var p part
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		err = p.play()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (p *part) play() error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() { // stdin ends when the test ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	opened, err := p.open(ctx)
	if err != nil {
		return err
	}
	p.done = make(chan struct{}, 2)
	wire := &tripwire{kill: p.Kill, seen: make(map[string]int)}
	s := &store{opened, wire}
	agent, err := p.agent(s, wire)
	if err != nil {
		return err
	}
	w, err := engine.New(s, engine.Of(agent), &engine.Options{Turns: p.Turns, Grace: 5 * time.Second, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Told: func(taken engine.Taken) {
		l := line{Session: taken.Session}
		if taken.Turn != nil {
			l.End = taken.Turn.Reason
		}
		if taken.Err != nil {
			l.Err, l.Fenced = taken.Err.Error(), errors.Is(taken.Err, belay.ErrFenced)
		}
		say(l)
		if l.End == belay.EndTurn {
			p.note()
		}
	}})
	if err != nil {
		return err
	}
	say(line{Ready: true})
	if p.Once {
		go func() { // runs until a turn and a job are done
			<-p.done
			<-p.done
			cancel()
		}()
	}
	sampled := p.sampling(ctx)
	err = w.Run(ctx)
	cancel()
	<-sampled
	err = errors.Join(err, agent.Close(context.Background()), opened.Close())
	say(line{Goroutines: runtime.NumGoroutine()})
	return err
}

// shared is a store that several workers use.
type shared interface {
	engine.Store
	Close() error
}

// open opens the store in a database or in a file.
func (p *part) open(ctx context.Context) (shared, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	if filepath.IsAbs(p.DSN) {
		return sqlite.Open(ctx, p.DSN, &sqlite.Options{JobPoll: 20 * time.Millisecond, Logger: log})
	}
	return postgres.Open(ctx, p.DSN, &postgres.Options{Takeover: p.Takeover, JobPoll: 20 * time.Millisecond, TurnPoll: 500 * time.Millisecond, MaxConns: 6, Logger: log})
}

// note reports that a turn or a job is done, if part.Once is set.
func (p *part) note() {
	select {
	case p.done <- struct{}{}:
	default:
	}
}

// effect appends a line to the file of effects. It uses one write, so that lines of
// several processes do not mix.
func (p *part) effect(what string) error {
	f, err := os.OpenFile(filepath.Join(p.Dir, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(what + "\n")
	return errors.Join(err, f.Close())
}

// agent returns the agent of a worker. A message "call a, b" makes it call these tools, one
// per step.
func (p *part) agent(s belay.Store, wire *tripwire) (*belay.Agent, error) {
	tool := func(name string, traits belay.ToolTraits) belay.Tool {
		return belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: "does something in the world"}, func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
			wire.pass("before " + name)
			if err := p.effect(call.Session + " " + call.ID); err != nil {
				return belay.Result{}, err
			}
			if name == "stand" { // waits until the test lets it continue
				say(line{Began: call.Session})
				if err := p.stand(ctx); err != nil {
					return belay.Result{}, err
				}
			}
			if p.Pause > 0 {
				timer := time.NewTimer(p.Pause)
				defer timer.Stop()
				select {
				case <-timer.C:
				case <-ctx.Done():
					return belay.Result{}, context.Cause(ctx)
				}
			}
			wire.pass("after " + name)
			return belay.Result{Text: name + " is done"}, nil
		}, &traits)
	}
	return belay.New(model{}, &belay.Options{
		Store: s, OnAsk: belay.AskPark,
		Tools: []belay.Tool{
			tool("send", belay.ToolTraits{}), tool("look", belay.ToolTraits{Idempotent: true}), tool("deploy", belay.ToolTraits{}), tool("stand", belay.ToolTraits{}),
		},
		Hooks: []hook.Subscription{
			belay.ToolPre.On("ask", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
				return belay.Ask("it goes out into the world"), nil
			}, &hook.Options{Match: hook.Match{Tools: []string{"deploy"}}}),
			belay.ToolPost.On("flaky", func(ctx context.Context, _ belay.ToolResult) (belay.ToolReaction, error) {
				return belay.ToolReaction{}, p.misbehave(ctx)
			}, &hook.Options{Execution: hook.Deadline, Timeout: 100 * time.Millisecond}),
			belay.TurnPostTurn.On("learn", func(_ context.Context, in belay.TurnEnded) (belay.Note, error) {
				wire.pass("in a job")
				defer p.note()
				return belay.Note{}, p.effect("learn " + in.Turn())
			}, &hook.Options{Execution: hook.Background, Idempotent: true, Retry: hook.Retry{Attempts: 5, Delay: 10 * time.Millisecond}}),
		},
	})
}

// misbehave sometimes fails or hangs, see Failing and Hanging.
func (p *part) misbehave(ctx context.Context) error {
	switch n := rand.IntN(100); {
	case n < p.Failing:
		return errors.New("this hook fails now and then")
	case n < p.Failing+p.Hanging:
		<-ctx.Done()
		return context.Cause(ctx)
	default:
		return nil
	}
}

// stand waits until the file "go" exists.
func (p *part) stand(ctx context.Context) error {
	often := time.NewTicker(5 * time.Millisecond)
	defer often.Stop()
	for {
		if _, err := os.Stat(filepath.Join(p.Dir, "go")); err == nil {
			return nil
		}
		select {
		case <-often.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tripwire counts the points that a process passes. It kills the process at the point
// kill.
type tripwire struct {
	kill string

	mu   sync.Mutex
	seen map[string]int
}

func (w *tripwire) pass(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[name]++
	point := fmt.Sprintf("%s #%d", name, w.seen[name])
	if w.kill == "" {
		return
	}
	say(line{Point: point})
	if point != w.kill {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // wait until the process is killed
}

// store is a store in which every write is a point of the tripwire.
type store struct {
	shared
	wire *tripwire
}

func (s *store) Claim(ctx context.Context, filter belay.TurnFilter) (belay.DueTurn, error) {
	due, err := s.shared.Claim(ctx, filter)
	if err == nil {
		s.wire.pass("after a claim")
	}
	return due, err
}

func (s *store) Settle(ctx context.Context, due belay.DueTurn, again time.Time) error {
	s.wire.pass("before a settle")
	err := s.shared.Settle(ctx, due, again)
	s.wire.pass("after a settle")
	return err
}

func (s *store) Open(ctx context.Context, id string) (*belay.Stored, error) {
	stored, err := s.shared.Open(ctx, id)
	s.wire.pass("after a hold")
	return stored, err
}

func (s *store) Commit(ctx context.Context, c *belay.Commit) error {
	s.wire.pass("before a commit")
	err := s.shared.Commit(ctx, c)
	s.wire.pass("after a commit")
	return err
}

func (s *store) Release(ctx context.Context, id string, epoch int64) error {
	s.wire.pass("before a release")
	err := s.shared.Release(ctx, id, epoch)
	s.wire.pass("after a release")
	return err
}

// effects returns how often each effect was recorded.
func effects(dir string) (map[string]int, error) {
	text, err := os.ReadFile(filepath.Join(dir, "effects"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	done := make(map[string]int)
	for what := range strings.Lines(string(text)) {
		done[strings.TrimSpace(what)]++
	}
	return done, err
}
