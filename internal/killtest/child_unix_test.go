//go:build unix

package killtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/postgres"
	"github.com/belay-run/belay/store/sqlite"
)

// childPart is an environment variable. The tests start their own binary again as a
// child. The variable has the child's part as JSON.
const childPart = "BELAY_KILL_TEST"

// These are the roles of a child.
const (
	roleRun    = "run"    // runs the turns of one session, as `belay run` and `belay resume` do
	roleServe  = "serve"  // runs the submitted turns, as `belay worker` does
	roleAnswer = "answer" // is a worker process for hooks
)

// part is the task of a child.
type part struct {
	Role string `json:"role"`
	// Dir is a directory with the log of effects and the hooks. It also contains the store
	// if DSN is empty.
	Dir  string `json:"dir"`
	DSN  string `json:"dsn,omitempty"`
	Life int    `json:"life,omitempty"`
	// Webhooks is the address of the server for webhooks.
	Webhooks string `json:"webhooks,omitempty"`
}

func (p *part) log() string  { return filepath.Join(p.Dir, "effects.log") }
func (p *part) stop() string { return filepath.Join(p.Dir, "stop") }

// note writes to the log of effects. It ends the child if the log cannot be written.
func (p *part) note(e entry) {
	e.Life = p.Life
	if err := note(p.log(), &e); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childPart); text != "" {
		if err := play(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// play runs a child's task.
func play(text string) error {
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	if p.Role == roleAnswer {
		return p.answerHooks()
	}
	go func() { // ends the child when the test ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	store, err := p.open(ctx)
	if err != nil {
		return err
	}
	agent, set, err := p.agent(store)
	if err != nil {
		return err
	}
	ticking, stopTicking := context.WithCancel(ctx)
	go p.tick(ticking) // runs until the turns are over
	if p.Role == roleServe {
		err = p.serve(ctx, store, agent)
	} else {
		err = p.run(ctx, store, agent)
	}
	stopTicking()
	// Close waits for the detached hooks.
	return errors.Join(err, agent.Close(context.Background()), set.Close(), store.Close())
}

// store is the interface of a store that the tests need.
type store interface {
	engine.Store
	Close() error
}

// open opens the store: PostgreSQL if DSN is set, otherwise a SQLite file.
func (p *part) open(ctx context.Context) (store, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	if p.DSN == "" {
		return sqlite.Open(ctx, filepath.Join(p.Dir, "belay.db"), &sqlite.Options{JobPoll: 20 * time.Millisecond, Logger: log})
	}
	return postgres.Open(ctx, p.DSN, &postgres.Options{Takeover: takeover, JobPoll: 20 * time.Millisecond, TurnPoll: 200 * time.Millisecond, MaxConns: 6, Logger: log})
}

// tickTime is the minimum time of a tick.
const tickTime = 10 * time.Millisecond

// takeover is the time after which workers on PostgreSQL take over turns of a dead process.
const takeover = 1500 * time.Millisecond

// tick repeatedly writes a line to the log on disk and a byte to standard output. The
// tests count ticks instead of time, because a busy machine or a slow disk delays ticks
// as much as everything else.
func (p *part) tick(ctx context.Context) {
	often := time.NewTicker(tickTime)
	defer often.Stop()
	for {
		if _, err := os.Stdout.WriteString("."); err != nil {
			os.Exit(3) //nolint:gocritic // the test is gone, and so is the ticker
		}
		select {
		case <-often.C:
			p.note(entry{Kind: logTick})
		case <-ctx.Done():
			return
		}
	}
}

// theSession is the session of a child with the role run.
const theSession = "s0"

// run first resumes a turn that an earlier process left open. Then it runs one turn after
// the other until the file "stop" exists.
func (p *part) run(ctx context.Context, store store, agent *belay.Agent) error {
	jobs, stopJobs := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- agent.Hooks().Work(jobs) }() // runs until the turns are over
	s := agent.Session(theSession)
	err := p.follow(s.Resume(ctx))
	if errors.Is(err, belay.ErrNoTurn) {
		err = nil
	}
	for err == nil {
		if _, stopped := os.Stat(p.stop()); stopped == nil {
			break
		}
		number := 1
		for m, failed := range s.Messages(ctx) {
			if err = failed; err == nil && m.Kind == belay.KindUser {
				number++
			}
		}
		if err == nil {
			err = p.follow(s.Run(ctx, taskOf(theSession, number)))
		}
	}
	if err == nil {
		err = awaitJobs(ctx, store)
	}
	stopJobs()
	return errors.Join(err, <-worked)
}

// follow reads the stream of a turn and notes the responses and the end.
func (p *part) follow(stream func(func(belay.Event, error) bool)) error {
	for e, err := range stream {
		switch {
		case err != nil:
			return err
		case e.Kind == belay.EventModelResponse:
			p.note(entry{Kind: logResponse, Session: e.Session, Seq: e.Message.Seq})
		case e.Kind == belay.EventTurnEnd && e.End.Reason != belay.EndTurn:
			return fmt.Errorf("turn %s ended %s: %s", e.Turn, e.End.Reason, e.End.Why)
		case e.Kind == belay.EventTurnEnd:
			p.note(entry{Kind: logEnded, Session: e.Session, Task: strings.TrimPrefix(e.End.Text, "done ")})
		}
	}
	return nil
}

// awaitJobs waits until no background work is left.
func awaitJobs(ctx context.Context, s store) error {
	often := time.NewTicker(10 * time.Millisecond)
	defer often.Stop()
	for {
		stats, err := s.Queue().(hook.StatQueue).Stats(ctx)
		if err != nil || stats.Waiting+stats.Running == 0 {
			return err
		}
		select {
		case <-often.C:
		case <-ctx.Done():
			return fmt.Errorf("%d jobs are left: %w", stats.Waiting+stats.Running, context.Cause(ctx))
		}
	}
}

// serve runs turns until SIGTERM.
func (p *part) serve(ctx context.Context, store store, agent *belay.Agent) error {
	w, err := engine.New(store, engine.Of(agent), &engine.Options{Turns: 3, Told: func(taken engine.Taken) {
		switch {
		case taken.Turn != nil && taken.Turn.Reason == belay.EndTurn:
			p.note(entry{Kind: logEnded, Session: taken.Session, Task: strings.TrimPrefix(taken.Turn.Text, "done ")})
		case taken.Turn != nil:
			fmt.Fprintf(os.Stderr, "a turn of %s ended %s: %s\n", taken.Session, taken.Turn.Reason, taken.Turn.Why)
		}
	}})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
