package fleet_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// sample is the size of a worker: its heap after a garbage collection, in bytes, and its
// number of goroutines.
type sample struct {
	Heap       uint64 `json:"heap"`
	Goroutines int    `json:"goroutines"`
}

// sampling reports the size of this process at intervals of p.Sample until ctx ends. Then
// it closes the channel.
func (p *part) sampling(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	if p.Sample == 0 {
		close(ended)
		return ended
	}
	go func() { // ends with ctx
		defer close(ended)
		often := time.NewTicker(p.Sample)
		defer often.Stop()
		for {
			select {
			case <-often.C:
			case <-ctx.Done():
				return
			}
			runtime.GC()
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			say(line{Sample: &sample{Heap: memory.HeapAlloc, Goroutines: runtime.NumGoroutine()}})
		}
	}()
	return ended
}

// These constants limit how much a worker may grow. The limits allow for changing work,
// but a leak exceeds them.
const (
	growth       = 2
	someHeap     = 4 << 20
	someRoutines = 40
	fewestKnown  = 9
)

// flat returns an error if the heap or the goroutines grow. It compares the medians of the
// first and the last third of the samples.
func flat(samples []sample) error {
	if len(samples) < fewestKnown {
		return fmt.Errorf("there are %d samples, want at least %d", len(samples), fewestKnown)
	}
	third := len(samples) / 3
	median := func(of []sample, value func(sample) uint64) uint64 {
		var all []uint64
		for _, s := range of {
			all = append(all, value(s))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	for what, of := range map[string]struct {
		value func(sample) uint64
		some  uint64
	}{
		"the heap, in bytes,": {func(s sample) uint64 { return s.Heap }, someHeap},
		"the goroutines":      {func(s sample) uint64 { return uint64(s.Goroutines) }, someRoutines},
	} {
		first, last := median(samples[:third], of.value), median(samples[len(samples)-third:], of.value)
		if last > growth*first+of.some {
			return fmt.Errorf("%s grew from %d to %d", what, first, last)
		}
	}
	return nil
}

// flat returns an error if memory or goroutines grow.
func TestFlat(t *testing.T) {
	t.Parallel()
	grows := func(heap uint64, goroutines int) (all []sample) {
		for i := range 30 {
			all = append(all, sample{10<<20 + heap*uint64(i), 30 + goroutines*i})
		}
		return all
	}
	if err := flat(grows(0, 0)); err != nil {
		t.Errorf("what stays as it is: %v", err)
	}
	for what, samples := range map[string][]sample{"a heap that grows": grows(2<<20, 0), "goroutines that grow": grows(0, 10), "too few": grows(0, 0)[:5]} {
		if flat(samples) == nil {
			t.Errorf("%s is not found", what)
		}
	}
}
