package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/store/postgres"
)

// workerPromises are the promises about workers that share a PostgreSQL store.
func workerPromises() []promise {
	return []promise{
		{"postgres-four-workers", 1 / 3.3, fourWorkers},
		{"postgres-submit-to-model", 5, submitToModel},
		{"postgres-parked-goroutines", 0, parkedGoroutines},
		{"postgres-parked-idle-rows", 10, parkedRows},
	}
}

// workerDSN is a variable with the DSN of a database. If it is set, this process is a
// worker.
const workerDSN = "BELAY_BENCH_TEST_WORKER"

// waitsFor is how long the tool of a turn waits. together is how many turns a worker runs
// at the same time.
const (
	waitsFor = 50 * time.Millisecond
	together = 1
)

// serveWorker runs this process as a worker, if workerDSN is set. It returns false if the
// variable is not set.
func serveWorker() bool {
	dsn := os.Getenv(workerDSN)
	if dsn == "" {
		return false
	}
	ending, cancel := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer cancel()
	go func() { // the worker ends when the benchmark ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	store, err := postgres.Open(ctx, dsn, &postgres.Options{MaxConns: 4})
	must(err)
	wait := belay.NewRawTool(belay.ToolDeclaration{Name: "wait", Description: "waits"}, func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
		select {
		case <-time.After(waitsFor):
		case <-ctx.Done():
		}
		return belay.Result{Text: "done"}, nil
	}, nil)
	agent, err := belay.New(callsOnce{}, &belay.Options{Store: store, Tools: []belay.Tool{wait}})
	must(err)
	w, err := engine.New(store, engine.Of(agent), &engine.Options{Turns: together})
	must(err)
	_, err = os.Stdout.WriteString("ready\n")
	must(err)
	must(w.Run(ending))
	must(errors.Join(agent.Close(ctx), store.Close()))
	return true
}

// callsOnce is a model that calls a tool once and then ends the turn.
type callsOnce struct{}

// Stream implements belay.Model.
func (callsOnce) Stream(_ context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		answer := belay.Response{Parts: []belay.Part{belay.Text("done")}, StopReason: belay.StopEnd}
		if req.Messages[len(req.Messages)-1].Kind == belay.KindUser {
			answer.StopReason = belay.StopToolUse
			answer.Parts = []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{ID: "c", Tool: "wait", Input: json.RawMessage(`{}`)}}}
		}
		yield(belay.Chunk{Response: &answer}, nil)
	}
}

// sharedServer starts a server that waits until data is on its disk, and creates a
// database.
func sharedServer() (server *pgtest.Server, dsn string, err error) {
	if server, err = pgtest.Start(&pgtest.Options{Durable: true}); err != nil {
		return nil, "", err
	}
	if dsn, err = server.Create(ctx, "belay", "template1"); err != nil {
		return nil, "", errors.Join(err, server.Stop())
	}
	return server, dsn, nil
}

// fourWorkers returns the time per turn with four worker processes divided by the time with
// one. The tool of each turn waits.
func fourWorkers() (figure float64, err error) {
	server, dsn, err := sharedServer()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	store, err := postgres.Open(ctx, dsn, &postgres.Options{MaxConns: 4})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var ones, fours []float64
	for round := range 3 { // alternately, so that both have the same load on the machine
		one, err := turnsWith(store, dsn, fmt.Sprint("one-", round), 1)
		if err != nil {
			return 0, err
		}
		four, err := turnsWith(store, dsn, fmt.Sprint("four-", round), 4)
		if err != nil {
			return 0, err
		}
		ones, fours = append(ones, one), append(fours, four)
	}
	return median(fours) / median(ones), nil
}

// turnsWith returns the seconds per turn with n workers. It starts the workers before it
// submits the first turn.
func turnsWith(store *postgres.Store, dsn, name string, workers int) (seconds float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	var stops []func() error
	defer func() {
		for _, stop := range stops {
			err = errors.Join(err, stop())
		}
	}()
	for range workers {
		stop, err := startWorker(self, dsn)
		if err != nil {
			return 0, err
		}
		stops = append(stops, stop)
	}
	turns := 24 * workers
	start := time.Now()
	for i := range turns {
		turn, err := belay.NewQueuedTurn(fmt.Sprint(name, "-", i), "main", "go")
		if err == nil {
			err = store.Submit(ctx, turn)
		}
		if err != nil {
			return 0, err
		}
	}
	for {
		load, err := store.Load(ctx)
		if err != nil {
			return 0, err
		}
		left := load.Waiting
		for _, h := range load.Holders {
			left += len(h.Turns)
		}
		if left == 0 {
			return time.Since(start).Seconds() / float64(turns), nil
		}
		time.Sleep(25 * time.Millisecond)
	}
}

// startWorker starts a worker process and waits until it is ready.
func startWorker(self, dsn string) (stop func() error, err error) {
	w := exec.CommandContext(ctx, self)
	w.Env = append(os.Environ(), workerDSN+"="+dsn)
	w.Stderr = os.Stderr
	in, errIn := w.StdinPipe()
	out, errOut := w.StdoutPipe()
	if err := errors.Join(errIn, errOut, w.Start()); err != nil {
		return nil, err
	}
	stop = func() error {
		err := errors.Join(w.Process.Signal(syscall.SIGTERM), w.Wait())
		_ = in.Close() // ignore errors: Wait may have closed it
		return err
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		return nil, errors.Join(fmt.Errorf("a worker does not start: %w", err), stop())
	}
	return stop, nil
}

// asked is a model that signals each request.
type asked chan struct{}

// Stream implements belay.Model.
func (a asked) Stream(context.Context, *belay.Request) iter.Seq2[belay.Chunk, error] {
	a <- struct{}{}
	return func(yield func(belay.Chunk, error) bool) {
		yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text("done")}, StopReason: belay.StopEnd}}, nil)
	}
}

// roundTrips is how many turns submitToModel measures.
const roundTrips = 40

// submitToModel returns the time from submitting a message to the first request to the
// model, with an idle worker. It is divided by the time from inserting a River job to
// running it, on the same server.
func submitToModel() (figure float64, err error) {
	server, dsn, err := sharedServer()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	store, err := postgres.Open(ctx, dsn, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	submitter, err := postgres.Open(ctx, dsn, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, submitter.Close()) }()
	model := make(asked)
	idle := make(chan struct{}, 1)
	stop, err := idleWorker(store, model, func() { idle <- struct{}{} })
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	bare, err := newBareRiver(dsn)
	if err != nil {
		return 0, err
	}
	defer bare.stop()
	var ours, floor []float64
	for i := range roundTrips {
		turn, err := belay.NewQueuedTurn(fmt.Sprint("s", i), "main", "go")
		if err != nil {
			return 0, err
		}
		start := time.Now()
		if err := submitter.Submit(ctx, turn); err != nil {
			return 0, err
		}
		<-model
		ours = append(ours, time.Since(start).Seconds())
		<-idle
		took, err := bare.roundTrip()
		if err != nil {
			return 0, err
		}
		floor = append(floor, took)
	}
	return median(ours) / median(floor), nil
}

// idleWorker runs a worker until stop is called.
func idleWorker(store *postgres.Store, model belay.Model, told func()) (stop func() error, err error) {
	agent, err := belay.New(model, &belay.Options{Store: store})
	if err != nil {
		return nil, err
	}
	w, err := engine.New(store, engine.Of(agent), &engine.Options{Told: func(engine.Taken) { told() }})
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	return func() error {
		cancel()
		return errors.Join(<-ended, agent.Close(ctx))
	}, nil
}

// bareRiver inserts a River job and runs it, without Belay.
type bareRiver struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	worked chan struct{}
	cancel func()
}

type bareJob struct{}

func (bareJob) Kind() string { return "bare" }

type bareWorker struct {
	river.WorkerDefaults[bareJob]
	worked chan struct{}
}

func (w *bareWorker) Work(context.Context, *river.Job[bareJob]) error {
	w.worked <- struct{}{}
	return nil
}

func newBareRiver(dsn string) (*bareRiver, error) {
	b := &bareRiver{worked: make(chan struct{}, 1)}
	var err error
	if b.pool, err = pgxpool.New(ctx, dsn); err != nil {
		return nil, fmt.Errorf("bare River: %w", err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &bareWorker{worked: b.worked})
	b.client, err = river.NewClient(riverpgxv5.New(b.pool), &river.Config{
		Queues: map[string]river.QueueConfig{"bare": {MaxWorkers: 4}}, Workers: workers, FetchCooldown: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, fmt.Errorf("bare River: %w", err)
	}
	running, cancel := context.WithCancel(ctx)
	b.cancel = cancel
	if err := b.client.Start(running); err != nil {
		return nil, fmt.Errorf("bare River: %w", err)
	}
	return b, nil
}

func (b *bareRiver) roundTrip() (seconds float64, err error) {
	start := time.Now()
	if _, err := b.client.Insert(ctx, bareJob{}, &river.InsertOpts{Queue: "bare"}); err != nil {
		return 0, fmt.Errorf("bare River: %w", err)
	}
	<-b.worked
	return time.Since(start).Seconds(), nil
}

func (b *bareRiver) stop() {
	b.cancel()
	<-b.client.Stopped()
	b.pool.Close()
}

// parkedTurns is how many turns parkMany stores.
const parkedTurns = 10_000

// parkMany stores parked turns, each with a pending approval.
func parkMany(dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	const from = " FROM generate_series(1, %[1]d) i"
	for _, statement := range []string{
		`INSERT INTO sessions (id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state)
			SELECT 'p' || i, 0, '', 1, 1, 0, 0, 0, 0, 'parked', '{"turn":{"id":"t","parked":true}}'` + from,
		`INSERT INTO approvals (id, session, response, turn, call_id, tool, hash, asked_by, floor, asked, expires, decision)
			SELECT 'ap-' || i, 'p' || i, 0, 't', 'c', 'wait', 'h', 'floor', TRUE, 1, 0, ''` + from,
		"INSERT INTO approval_words (id, reason, answer, pattern) SELECT 'ap-' || i, '', '', ''" + from,
		"INSERT INTO due_turns (session, agent, model, parked, due, holder, claimed, mark) SELECT 'p' || i, 'main', '', TRUE, 7000000000000000000, '', 0, 1" + from,
		"VACUUM (ANALYZE)",
	} {
		if _, err := conn.Exec(ctx, strings.ReplaceAll(statement, "%[1]d", fmt.Sprint(parkedTurns))); err != nil {
			return err
		}
	}
	return nil
}

// warmUp is how long a worker needs until it is idle. For example, River must elect a
// leader first.
const warmUp = 7 * time.Second

// withParked measures an idle worker first without parked turns, then with 10,000.
func withParked(measure func(dsn string) (float64, error)) (before, after float64, err error) {
	server, dsn, err := sharedServer()
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	store, err := postgres.Open(ctx, dsn, nil)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	stop, err := idleWorker(store, make(asked), func() {})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	time.Sleep(warmUp)
	if before, err = measure(dsn); err != nil {
		return 0, 0, err
	}
	if err := parkMany(dsn); err != nil {
		return 0, 0, err
	}
	after, err = measure(dsn)
	return before, after, err
}

// parkedGoroutines returns the number of goroutines with 10,000 parked turns, minus the
// number without parked turns.
func parkedGoroutines() (float64, error) {
	before, after, err := withParked(func(string) (float64, error) {
		least := runtime.NumGoroutine()
		for range 100 { // take the least, because the number varies a little
			time.Sleep(10 * time.Millisecond)
			least = min(least, runtime.NumGoroutine())
		}
		return float64(least), nil
	})
	return after - before, err
}

// idleFor is how long parkedRows measures an idle worker.
const idleFor = 5 * time.Second

// parkedRows returns how many rows per second the server reads for an idle worker with
// 10,000 parked turns, minus the number without parked turns.
func parkedRows() (float64, error) {
	before, after, err := withParked(func(dsn string) (float64, error) {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return 0, err
		}
		defer func() { _ = conn.Close(ctx) }()
		read := func() (rows float64, err error) {
			time.Sleep(1500 * time.Millisecond) // the server publishes its counters once per second
			err = conn.QueryRow(ctx, `SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables
				WHERE relname IN ('sessions', 'approvals', 'approval_words', 'due_turns', 'queued_turns', 'holders', 'runs')`).Scan(&rows)
			return rows, err
		}
		from, err := read()
		if err != nil {
			return 0, err
		}
		time.Sleep(idleFor)
		to, err := read()
		return to - from, err
	})
	return (after - before) / idleFor.Seconds(), err
}
