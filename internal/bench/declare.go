package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/store/sqlite"
)

// declarePromises are the promises about hooks that files declare.
func declarePromises() []promise {
	return []promise{
		{"declare-command", 1.15, commandRatio},
		{"hook-command-sqlite", 1.3, evidenceRatio},
		{"declare-worker", 1.0 / 20, workerRatio},
		{"worker-rpc", 1.25, workerRPC},
		{"declare-when-us", 5, whenCost},
		{"space-reload-100-ms", 50, reloadCost},
	}
}

// declared is a snapshot with one declared hook. close removes its files.
type declared struct {
	*hook.Snapshot
	dir   string
	call  belay.ToolCall // the call that askOnce uses
	close func() error
}

// declareHook installs a hook at tool.pre. lines are lines of its declaration.
func declareHook(lines string, files map[string]string) (*declared, error) {
	return declareHookOn(nil, lines, files)
}

// declareHookOn is declareHook with options for the runtime.
func declareHookOn(opts *hook.RuntimeOptions, lines string, files map[string]string) (*declared, error) {
	dir, err := os.MkdirTemp("", "belay-bench-")
	if err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			return nil, fmt.Errorf("scratch directory: %w", err)
		}
	}
	file := filepath.Join(dir, "hooks.yaml")
	if err := os.WriteFile(file, []byte("hooks:\n  - id: bench\n    phase: tool.pre\n    "+lines+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	list, err := declare.Load(dir, file)
	if err != nil {
		return nil, err
	}
	set, err := declare.New(list, hook.Origin{Kind: hook.OriginOperator}, nil)
	if err != nil {
		return nil, err
	}
	rt, err := hook.NewRuntime(belay.Phases(), opts)
	if err != nil {
		return nil, err
	}
	if _, err := rt.Install(set.Subscriptions()...); err != nil {
		return nil, err
	}
	return &declared{Snapshot: rt.Snapshot(), dir: dir, close: func() error { return errors.Join(set.Close(), os.RemoveAll(dir)) }}, nil
}

// ask asks the hook about a call. It returns an error unless the hook passes.
func (d *declared) ask(call belay.ToolCall) error {
	outcome, err := belay.ToolPre.Dispatch(ctx, d.Snapshot, call)
	if err == nil && (outcome.Output.Decision != belay.ToolPass || len(outcome.Diagnostics) > 0) {
		err = fmt.Errorf("the hook answered %q: %s", outcome.Output.Decision, outcome.Output.Reason)
	}
	return err
}

// askOnce asks the hook once and removes its record from the snapshot, because here no
// commit stores the record.
func (d *declared) askOnce() error {
	err := d.ask(d.call)
	d.Take()
	return err
}

// medians measures two functions alternately and returns their median times. In each
// round it runs floor once and ours row times.
func medians(times, row int, ours, floor func() error) (a, b float64, err error) {
	var one, other []float64
	clock := func(f func() error) float64 {
		start := time.Now()
		err = errors.Join(err, f())
		return float64(time.Since(start).Nanoseconds())
	}
	for range times {
		other = append(other, clock(floor))
		for range row {
			one = append(one, clock(ours))
		}
	}
	return median(one), median(other), err
}

// commandRatio returns the median time of a command hook divided by that of a bare os/exec.
// Both run the same program with the same standard input.
func commandRatio() (figure float64, err error) {
	d, spawn, err := commandHook(nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	return bestRatio(d.askOnce, spawn)
}

// evidenceRatio returns the time of a command hook with a SQLite journal, divided by the
// time to start the same program and to commit the same row without Belay. The row
// records that the hook has started, and must be durable before the hook runs.
func evidenceRatio() (figure float64, err error) {
	dir, err := os.MkdirTemp("", "belay-bench-")
	if err != nil {
		return 0, fmt.Errorf("scratch directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "belay.db"), nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	d, spawn, err := commandHook(&hook.RuntimeOptions{Journal: store.Journal()})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.askOnce(); err != nil { // writes the row that openReplay reads
		return 0, err
	}
	floor, err := openReplay(store.Path(), filepath.Join(dir, "bare.db"), "runs")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, floor.Close()) }()
	return bestRatio(d.askOnce, func() error { return errors.Join(floor.run(), spawn()) })
}

// run writes a copy of the first hook run, in its own transaction.
func (r *replay) run() error {
	r.turn++
	run := append([]any(nil), r.rows["runs"][0]...)
	run[0], run[1] = int64(r.turn), fmt.Sprint("run-", r.turn)
	tx, err := r.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	r.exec(tx, r.insert["runs"], run)
	return tx.Commit()
}

// commandHook declares a command hook. spawn starts the same program directly, with the
// same standard input.
func commandHook(opts *hook.RuntimeOptions) (d *declared, spawn func() error, err error) {
	program, err := exec.LookPath("tail")
	if err != nil {
		return nil, nil, fmt.Errorf("floor: %w", err)
	}
	if d, err = declareHookOn(opts, fmt.Sprintf("command: ['%s', -c, '0']", program), nil); err != nil {
		return nil, nil, err
	}
	if d.call, err = toolCall(); err != nil {
		return nil, nil, err
	}
	input, err := json.Marshal(d.call)
	if err != nil {
		return nil, nil, fmt.Errorf("envelope: %w", err)
	}
	stdin, err := json.Marshal(worker.Envelope{V: worker.Version, Phase: "tool.pre", Session: "bench", Turn: "1", Step: 1, Agent: "main", Cwd: d.dir, Input: input})
	if err != nil {
		return nil, nil, fmt.Errorf("envelope: %w", err)
	}
	return d, func() error {
		bare := exec.CommandContext(ctx, program, "-c", "0")
		var stdout, stderr bytes.Buffer
		bare.Dir, bare.Stdin, bare.Stdout, bare.Stderr = d.dir, bytes.NewReader(stdin), &stdout, &stderr
		return bare.Run()
	}, nil
}

// bestRatio returns the best of three ratios of medians.
func bestRatio(ours, floor func() error) (float64, error) {
	best := math.Inf(1)
	for range 3 {
		a, b, err := medians(200, 1, ours, floor)
		if err != nil {
			return 0, err
		}
		best = min(best, a/b)
	}
	return best, nil
}

// workerRatio returns the median time of a hook that is a Go worker divided by that of the
// same hook as a shell script.
func workerRatio() (figure float64, err error) {
	program, remove, err := buildWorker()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	ours, err := declareHook(fmt.Sprintf("worker: ['%s']", program), nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	script, err := declareHook("command: [./check.sh]", map[string]string{
		"check.sh": "#!/bin/sh\ncase $(cat) in\n*'\"path\":\"/srv/prod/'* | *'..'*) exit 2 ;;\nesac\n",
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, script.close()) }()
	call, err := toolCall()
	if err != nil {
		return 0, err
	}
	if err := ours.ask(call); err != nil { // starts the worker
		return 0, err
	}
	worked, floor, err := medians(100, 20, func() error { return ours.ask(call) }, func() error { return script.ask(call) })
	return worked / floor, err
}

// whenCost returns the time of a hook whose condition is false, in microseconds.
func whenCost() (figure float64, err error) {
	d, err := declareHook(`match: { tools: [write, edit], when: 'args.path.startsWith("/srv/prod")' }`+"\n    action: deny", nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	call, err := toolCall()
	if err != nil {
		return 0, err
	}
	best := math.Inf(1)
	for range rounds {
		best = min(best, perOp(func(n int) {
			for range n {
				err = errors.Join(err, d.ask(call))
			}
		}))
	}
	return best / 1000, err
}

// reloadCost returns the time to load a changed space of 100 hooks in place of the old
// one, in milliseconds. It is the best of several rounds. It includes reading and
// checking the files.
func reloadCost() (figure float64, err error) {
	dir, err := os.MkdirTemp("", "belay-bench-")
	if err != nil {
		return 0, fmt.Errorf("scratch directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Mkdir(filepath.Join(dir, "hooks"), 0o700); err != nil {
		return 0, fmt.Errorf("scratch directory: %w", err)
	}
	put := func(name, text string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700) }
	if err := errors.Join(put("manifest.json", `{"id": "bench"}`), put("hooks/check.sh", "#!/bin/sh\n")); err != nil {
		return 0, fmt.Errorf("scratch directory: %w", err)
	}
	write := func(round int) error {
		for f := range 10 {
			var text bytes.Buffer
			fmt.Fprintf(&text, "# %d\nhooks:\n", round)
			for h := range 10 {
				fmt.Fprintf(&text, "  - {id: h%d-%d, phase: tool.pre, match: {tools: [write], when: 'args.path.startsWith(\"/srv\")'}, run: ./check.sh}\n", f, h)
			}
			if err := put(fmt.Sprintf("hooks/%d.yaml", f), text.String()); err != nil {
				return err
			}
		}
		return nil
	}
	if err := write(0); err != nil {
		return 0, fmt.Errorf("scratch directory: %w", err)
	}
	host := space.NewHost(nil)
	rt, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Grants: host.Grants})
	if err != nil {
		return 0, err
	}
	loaded, err := space.Load(dir, hook.OriginSpace)
	if err != nil {
		return 0, err
	}
	lease, err := host.Install(ctx, loaded, &space.Target{Hooks: rt})
	if err != nil {
		return 0, err
	}
	best := math.Inf(1)
	for round := range 20 {
		if err := write(round + 1); err != nil {
			return 0, fmt.Errorf("scratch directory: %w", err)
		}
		began := time.Now()
		if err := lease.Reload(ctx); err != nil {
			return 0, err
		}
		best = min(best, float64(time.Since(began))/float64(time.Millisecond))
	}
	if err := lease.Unload(ctx); err != nil {
		return 0, err
	}
	return best, nil
}

// workerRPC returns the time of a hook that is a Go worker divided by the time of bare
// JSON-RPC with the same worker: encode the envelope, write a line, read a line, decode the
// result.
func workerRPC() (figure float64, err error) {
	pair, err := newWorkerPair()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, pair.close()) }()
	return ratio(repeat(pair.hook.askOnce), repeat(func() error { return pair.bare.ask(pair.hook.call) })), nil
}

// workerPair is a hook that is a worker, and bare JSON-RPC with another process of the same
// program. Both processes run.
type workerPair struct {
	hook  *declared
	bare  *bareRPC
	close func() error
}

func newWorkerPair() (*workerPair, error) {
	program, remove, err := buildWorker()
	if err != nil {
		return nil, err
	}
	p := &workerPair{close: remove}
	fail := func(err error) (*workerPair, error) { return nil, errors.Join(err, p.close()) }
	if p.hook, err = declareHook(fmt.Sprintf("worker: ['%s']", program), nil); err != nil {
		return fail(err)
	}
	p.close = func() error { return errors.Join(p.hook.close(), remove()) }
	if p.hook.call, err = toolCall(); err != nil {
		return fail(err)
	}
	if p.bare, err = startBareRPC(program, p.hook.dir); err != nil {
		return fail(err)
	}
	p.close = func() error { return errors.Join(p.bare.close(), p.hook.close(), remove()) }
	if err := errors.Join(p.hook.askOnce(), p.bare.ask(p.hook.call)); err != nil {
		return fail(err)
	}
	return p, nil
}

// repeat returns a loop over f.
func repeat(f func() error) func(n int) {
	return func(n int) {
		for range n {
			must(f())
		}
	}
}

// buildWorker builds the example of a worker in Go.
func buildWorker() (program string, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "belay-bench-")
	if err != nil {
		return "", nil, fmt.Errorf("scratch directory: %w", err)
	}
	program = filepath.Join(dir, "worker")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/belay-run/belay/examples/workers/go").CombinedOutput(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("build the worker: %w: %s", err, out), os.RemoveAll(dir))
	}
	return program, func() error { return os.RemoveAll(dir) }, nil
}

// bareRPC talks to a worker without any of the runtime's checks.
type bareRPC struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	dir string
	id  int
}

func startBareRPC(program, dir string) (*bareRPC, error) {
	b := &bareRPC{cmd: exec.CommandContext(ctx, program), dir: dir}
	in, err := b.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	b.in, b.out = in, bufio.NewReader(out)
	if err := b.cmd.Start(); err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	if _, err := b.rpc("hello", map[string]int{"v": worker.Version}); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// rpc makes one call and returns its result.
func (b *bareRPC) rpc(method string, params any) (json.RawMessage, error) {
	b.id++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": b.id, "method": method, "params": params})
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	if _, err := b.in.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	if line, err = b.out.ReadBytes('\n'); err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	var said struct {
		ID     int             `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(line, &said); err != nil || said.ID != b.id || said.Error != nil {
		return nil, fmt.Errorf("floor: the worker answered %s", line)
	}
	return said.Result, nil
}

// ask asks the worker about a call.
func (b *bareRPC) ask(call belay.ToolCall) error {
	input, err := json.Marshal(call)
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	result, err := b.rpc("run", &worker.Envelope{V: worker.Version, Phase: "tool.pre", Session: "bench", Turn: "1", Step: 1, Agent: "main", Cwd: b.dir, Input: input})
	if err != nil {
		return err
	}
	var verdict belay.ToolVerdict
	return json.Unmarshal(result, &verdict)
}

func (b *bareRPC) close() error {
	return errors.Join(b.in.Close(), b.cmd.Wait())
}
