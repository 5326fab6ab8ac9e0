package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/store/postgres"
)

// A process with workerDSN is a worker. The other variables say how long its model takes, and how many turns it runs at once.
const (
	workerDSN   = "BELAY_LOAD_TEST_WORKER"
	workerTakes = "BELAY_LOAD_TEST_TAKES"
	workerTurns = "BELAY_LOAD_TEST_TURNS"
)

// serveWorker runs this process as a worker, if workerDSN is set. It begins after the first line of standard input, ends with
// standard input, and prints how many turns it has run.
func serveWorker(ctx context.Context) (isWorker bool, err error) {
	dsn := os.Getenv(workerDSN)
	if dsn == "" {
		return false, nil
	}
	takes, err := time.ParseDuration(os.Getenv(workerTakes))
	if err != nil {
		return true, err
	}
	var turns int
	if _, err := fmt.Sscan(os.Getenv(workerTurns), &turns); err != nil {
		return true, err
	}
	store, err := postgres.Open(ctx, dsn, &postgres.Options{MaxConns: 8})
	if err != nil {
		return true, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	agent, err := newAgent(store, takes)
	if err != nil {
		return true, err
	}
	defer func() { err = errors.Join(err, agent.Close(ctx)) }()
	var done atomic.Int64
	worker, err := engine.New(store, engine.Of(agent), &engine.Options{Turns: turns, Told: func(t engine.Taken) {
		if t.Err == nil && t.Turn != nil && t.Turn.Text == sentences {
			done.Add(1)
		}
	}})
	if err != nil {
		return true, err
	}
	fmt.Fprintln(os.Stdout, "ready")
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return true, err
	}
	ending, stop := context.WithCancel(ctx)
	go func() { // ends with standard input
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	err = worker.Run(ending)
	fmt.Fprintln(os.Stdout, done.Load())
	return true, err
}

// turnsOnPostgres measures queued turns with more and more worker processes. The server waits for its disk, and is on this
// machine as well.
func turnsOnPostgres(ctx context.Context, out io.Writer, s *size) (err error) {
	server, err := pgtest.Start(&pgtest.Options{Durable: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	points := 0
	for _, takes := range []time.Duration{0, s.answers} {
		fmt.Fprintf(out, "\nThe model takes %s for each of the two answers of a turn:\n", takes)
		heading(out, "workers", "turns at once", "turns", "turns a second", "CPU per turn, workers", "growth per turn")
		for _, workers := range s.workers {
			together, turns := 16, s.turns
			if takes > 0 {
				together, turns = s.together, 4*s.together*workers
			}
			dsn, err := server.Create(ctx, fmt.Sprintf("load_%d", points), "template1")
			if err != nil {
				return err
			}
			points++
			if err := fleet(ctx, out, dsn, workers, together, turns, takes); err != nil {
				return err
			}
		}
	}
	return nil
}

// fleet submits turns, starts workers, and measures how long these take until all turns have ended.
func fleet(ctx context.Context, out io.Writer, dsn string, workers, together, turns int, takes time.Duration) (err error) {
	store, err := postgres.Open(ctx, dsn, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	empty, err := databaseSize(ctx, dsn)
	if err != nil {
		return err
	}
	if err := rounds(ctx, turns, 8, func(ctx context.Context, i int) error {
		turn, err := belay.NewQueuedTurn(fmt.Sprintf("s-%d", i), "main", "Please write a note about the tests.")
		if err != nil {
			return err
		}
		return store.Submit(ctx, turn)
	}); err != nil {
		return err
	}
	processes := make([]*process, 0, workers)
	defer func() {
		for _, p := range processes {
			err = errors.Join(err, p.end())
		}
	}()
	for range workers {
		p, err := begin(ctx, dsn, together, takes)
		if err != nil {
			return err
		}
		processes = append(processes, p)
	}
	for _, p := range processes {
		if _, err := p.out.ReadString('\n'); err != nil {
			return fmt.Errorf("a worker does not start: %w", err)
		}
	}
	start := time.Now()
	for _, p := range processes {
		if _, err := io.WriteString(p.in, "go\n"); err != nil {
			return err
		}
	}
	if err := drained(ctx, store); err != nil {
		return err
	}
	lasted := time.Since(start)
	full, err := databaseSize(ctx, dsn)
	if err != nil {
		return err
	}
	done, used := 0, time.Duration(0)
	for _, p := range processes {
		if err := p.end(); err != nil {
			return err
		}
		done += p.turns
		used += p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	}
	if done != turns {
		return fmt.Errorf("the workers ran %d turns, want %d", done, turns)
	}
	row(out, workers, workers*together, turns, float64(turns)/lasted.Seconds(), used/time.Duration(turns), fmt.Sprintf("%.1f KB", float64(full-empty)/float64(turns)/1024))
	return nil
}

// databaseSize returns the bytes that a database takes on the server's disk.
func databaseSize(ctx context.Context, dsn string) (size int64, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&size)
	return size, err
}

// drained waits until no turn is waiting or running.
func drained(ctx context.Context, store *postgres.Store) error {
	for {
		load, err := store.Load(ctx)
		if err != nil {
			return err
		}
		left := load.Waiting
		for _, h := range load.Holders {
			left += len(h.Turns)
		}
		if left == 0 {
			return nil
		}
		select {
		case <-time.After(25 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// process is a running worker.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	turns int // that it has run, after end
	ended bool
}

// begin starts a worker process.
func begin(ctx context.Context, dsn string, together int, takes time.Duration) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self)}
	p.cmd.Env = append(os.Environ(), workerDSN+"="+dsn, workerTakes+"="+takes.String(), fmt.Sprintf("%s=%d", workerTurns, together), fmt.Sprintf("GOMAXPROCS=%d", runtime.GOMAXPROCS(0)))
	p.cmd.Stderr = os.Stderr
	in, errIn := p.cmd.StdinPipe()
	out, errOut := p.cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p, p.cmd.Start()
}

// end ends the worker, and reads how many turns it has run.
func (p *process) end() error {
	if p.ended {
		return nil
	}
	p.ended = true
	err := p.in.Close()
	said, readErr := io.ReadAll(p.out)
	if err := errors.Join(err, readErr, p.cmd.Wait()); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	_, err = fmt.Sscan(strings.TrimSpace(string(said)), &p.turns)
	return err
}
