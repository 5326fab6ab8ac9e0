package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// hookPromises are the promises about the hook runtime.
func hookPromises() []promise {
	return []promise{
		{"active-unused", 2, activeUnused},
		{"active-unused-allocs", 0, activeAllocs},
		{"inline-10", 1.5, pairRatio(inlinePair(10))},
		{"inline-100", 1.5, pairRatio(inlinePair(100))},
		{"inline-10-allocs", 0, func() (float64, error) { return inlineAllocs(10) }},
		{"inline-100-allocs", 0, func() (float64, error) { return inlineAllocs(100) }},
		{"inline-growth", 1.2, inlineGrowth},
		{"deadline", 0.7, pairRatio(deadlinePair)},
		{"deadline-allocs", 2, deadlineAllocs},
		{"long-session-time", 1.1, longSessionTime},
		{"long-session-memory", 1.1, longSessionMemory},
		{"install-10000", 15, installGrowth},
	}
}

func pass(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Pass, nil }

var ctx = context.Background()

// snapshotOf installs n handlers that have no opinion.
func snapshotOf(n int, opts *hook.Options) (*hook.Snapshot, error) {
	rt, err := hook.NewRuntime(belay.Phases(), nil)
	if err != nil {
		return nil, err
	}
	subs := make([]hook.Subscription, n)
	for i := range subs {
		subs[i] = belay.ToolPre.On(fmt.Sprintf("hook-%04d", i), pass, opts)
	}
	if _, err := rt.Install(subs...); err != nil {
		return nil, err
	}
	return rt.Snapshot(), nil
}

func toolCall() (belay.ToolCall, error) {
	return belay.ToolPre.DecodeInput(hook.Scope{Session: "bench", Turn: "1", Step: 1, Agent: "main"},
		[]byte(`{"id": "call-1", "tool": "write", "input": {"path": "a.txt"}}`))
}

// activeUnused returns the time to check whether a phase has subscriptions, divided by the
// time of the least check that any runtime needs whose hooks can change while turns run: it
// loads a table that others may replace, and looks at one entry. The phase has no
// subscriptions. Before, this was the difference to a check for nil, in nanoseconds. Such a
// figure depends on the machine: the same program had 1.5 ns on one and 4.3 on another.
func activeUnused() (float64, error) {
	snap, err := snapshotOf(0, nil)
	if err != nil {
		return 0, err
	}
	table := new(replaceable)
	table.current.Store(&[]*hook.Subscription{nil, nil})
	return ratio(activeLoop(snap), func(n int) {
		for range n {
			if table.has(1) {
				panic("bench: an empty table has an entry")
			}
		}
	}), nil
}

// replaceable is a table of hooks that others may replace.
type replaceable struct {
	current atomic.Pointer[[]*hook.Subscription]
}

//go:noinline
func (r *replaceable) has(phase int) bool { return (*r.current.Load())[phase] != nil }

// isActive must not be inlined, so that it can be compared with replaceable.has.
//
//go:noinline
func isActive(snap *hook.Snapshot) bool { return belay.ToolPre.Active(snap) }

func activeAllocs() (float64, error) {
	snap, err := snapshotOf(0, nil)
	return allocs(activeLoop(snap)), err
}

func activeLoop(snap *hook.Snapshot) func(n int) {
	return func(n int) {
		for range n {
			if isActive(snap) {
				panic("bench: an unused phase is active")
			}
		}
	}
}

func dispatchLoop(snap *hook.Snapshot, call belay.ToolCall) func(n int) {
	return func(n int) {
		for range n {
			outcome, err := belay.ToolPre.Dispatch(ctx, snap, call)
			if err != nil || outcome.By != "" {
				panic("bench: a handler with no opinion had one")
			}
		}
	}
}

// floorRecord has the same fields as the record of a hook run.
type floorRecord struct {
	subscription *hook.Subscription
	scope        *hook.Scope
	sequence     uint64
	start, took  int64
	detail       *hook.Run
	state        hook.State
}

// bareLoop returns a loop that calls handlers without the runtime: the floor for inline
// handlers. For each call it reads the clock and writes a record to a ring. The ring has as
// many records as the default journal.
func bareLoop(handlers int, call belay.ToolCall) func(n int) {
	hs := make([]hook.Handler[belay.ToolCall, belay.ToolVerdict], handlers)
	for i := range hs {
		hs[i] = pass
	}
	ring := make([]floorRecord, 4096)
	sub, scope := belay.ToolPre.On("bare", pass, nil), hook.Scope{}
	next := 0
	base := time.Now()
	return func(n int) {
		for range n {
			last := int64(time.Since(base))
			for _, h := range hs {
				verdict, err := h(ctx, call)
				if err != nil || verdict.Decision != belay.ToolPass {
					panic("bench: a handler with no opinion had one")
				}
				now := int64(time.Since(base))
				r := &ring[next&4095]
				next++
				*r = floorRecord{&sub, &scope, uint64(next), last, now - last, nil, hook.Completed}
				last = now
			}
		}
	}
}

func inlinePair(handlers int) func() (*pair, error) {
	return func() (*pair, error) {
		snap, err := snapshotOf(handlers, nil)
		if err != nil {
			return nil, err
		}
		call, err := toolCall()
		return &pair{dispatchLoop(snap, call), bareLoop(handlers, call), noClose}, err
	}
}

func noClose() error { return nil }

func inlineAllocs(handlers int) (float64, error) {
	p, err := inlinePair(handlers)()
	if err != nil {
		return 0, err
	}
	return allocs(p.ours), nil
}

// inlineGrowth returns the cost of one handler among 100 divided by the cost of one handler
// among 10.
func inlineGrowth() (float64, error) {
	ten, err := inlinePair(10)()
	if err != nil {
		return 0, err
	}
	hundred, err := inlinePair(100)()
	if err != nil {
		return 0, err
	}
	figure := ratio(hundred.ours, ten.ours) / 10
	compared = notes{compared.median / 10, compared.cpu / 10}
	return figure, nil
}

// goroutineLoop returns a loop that calls a handler in a goroutine and waits at most a
// second: the floor for handlers that can be abandoned.
func goroutineLoop(call belay.ToolCall) func(n int) {
	return func(n int) {
		for range n {
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			done := make(chan belay.ToolVerdict, 1)
			go func() {
				verdict, _ := pass(bounded, call)
				done <- verdict
			}()
			select {
			case <-done:
			case <-bounded.Done():
			}
			cancel()
		}
	}
}

func deadlinePair() (*pair, error) {
	snap, err := snapshotOf(1, &hook.Options{Execution: hook.Deadline, Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	call, err := toolCall()
	return &pair{dispatchLoop(snap, call), goroutineLoop(call), noClose}, err
}

func deadlineAllocs() (float64, error) {
	p, err := deadlinePair()
	if err != nil {
		return 0, err
	}
	return allocs(p.ours), nil
}

// longSessionTime returns the cost of the last hundred dispatches of a long session
// divided by the cost of a hundred early ones.
func longSessionTime() (float64, error) {
	call, err := toolCall()
	if err != nil {
		return 0, err
	}
	ratios := make([]float64, 25)
	for i := range ratios {
		snap, err := snapshotOf(10, nil)
		if err != nil {
			return 0, err
		}
		dispatch := dispatchLoop(snap, call)
		dispatch(100)
		early := timed(dispatch)
		dispatch(9_700)
		ratios[i] = timed(dispatch) / early
	}
	return median(ratios), nil
}

func timed(dispatch func(n int)) float64 {
	start := time.Now()
	dispatch(100)
	return float64(time.Since(start))
}

// longSessionMemory returns the memory of a session after 10,000 dispatches to ten
// handlers, divided by the memory after 1,000. The journal, which has a fixed size, is
// already full after 1,000.
func longSessionMemory() (float64, error) {
	call, err := toolCall()
	if err != nil {
		return 0, err
	}
	before := heap()
	snap, err := snapshotOf(10, nil)
	if err != nil {
		return 0, err
	}
	dispatch := dispatchLoop(snap, call)
	dispatch(1_000)
	early := heap() - before
	dispatch(9_000)
	late := heap() - before
	runtime.KeepAlive(snap)
	return late / early, nil
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// installGrowth returns the cost of installing 10,000 subscriptions divided by the cost of
// installing 1,000. Each is the best of several rounds.
func installGrowth() (float64, error) {
	small, large := math.Inf(1), math.Inf(1)
	for range rounds {
		few, err := installTime(1_000)
		if err != nil {
			return 0, err
		}
		many, err := installTime(10_000)
		if err != nil {
			return 0, err
		}
		small, large = min(small, few), min(large, many)
	}
	return large / small, nil
}

// installTime installs n subscriptions, most of which depend on others. It switches the
// garbage collector off. Otherwise a collection would run during the large install but
// not during the small one.
func installTime(n int) (float64, error) {
	rt, err := hook.NewRuntime(belay.Phases(), nil)
	if err != nil {
		return 0, err
	}
	subs := make([]hook.Subscription, n)
	for i := range subs {
		opts := &hook.Options{Priority: i % 7}
		if i%3 == 0 { // a mix of overlapping and inline handlers
			opts.Execution, opts.Timeout = hook.Deadline, time.Second
		}
		if i%10 != 0 {
			opts.After = []string{fmt.Sprintf("hook-%05d", i-1), fmt.Sprintf("hook-%05d", i/2)}
			if i/2 == i-1 {
				opts.After = opts.After[:1]
			}
		}
		subs[i] = belay.ToolPre.On(fmt.Sprintf("hook-%05d", i), pass, opts)
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	start := time.Now()
	_, err = rt.Install(subs...)
	return float64(time.Since(start)), err
}
