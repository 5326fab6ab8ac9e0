// Command bench measures the promises about speed. It prints one line for each promise:
//
//	bench NAME MEASURED BOUND ok|short [(NOTES)]
//
// Most figures are ratios to a floor: the least that any program would need, measured in
// the same run. So the figures of different machines can be compared. MEASURED is the
// ratio of the best rounds. NOTES has the median of the ratios of all rounds, and the
// ratio of the CPU times. It says "within noise" if the median and MEASURED are on
// different sides of the bound. The program fails only if it cannot measure.
package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// promise is one line of the table.
type promise struct {
	name  string
	bound float64
	// measure returns the figure. The promise is kept if the figure is at most bound.
	measure func() (float64, error)
}

func main() {
	if serveMCP() || serveWorker() {
		return
	}
	promises := slices.Concat(hookPromises(), loopPromises(), durablePromises(), postgresPromises(), workerPromises(), permitPromises(), providerPromises(), skillPromises(), subagentPromises(), declarePromises(), extensionPromises(), mcpPromises(), memoryPromises(), typedPromises(), servePromises(), consolePromises(), backtestPromises(), telemetryPromises(), warmHookPromises(), startPromises(), chatPromises())
	if names := os.Args[1:]; len(names) > 0 { // only promises with this prefix
		promises = slices.DeleteFunc(promises, func(p promise) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(p.name, name) })
		})
	}
	if !report(os.Stdout, os.Stderr, promises) {
		os.Exit(1)
	}
}

// report measures the promises and then prints the table. It returns false if a promise
// could not be measured. A promise that is not kept is only marked in the table.
func report(table, progress io.Writer, promises []promise) (measured bool) {
	measuring.Lock()
	defer measuring.Unlock()
	measured = true
	var lines []string
	for _, p := range promises {
		compared = notes{}
		figure, err := p.measure()
		if err != nil {
			fmt.Fprintf(progress, "bench: %s: %v\n", p.name, err)
			measured = false
			continue
		}
		lines = append(lines, p.line(figure)+compared.String(figure, p.bound))
		fmt.Fprintf(progress, "measured %s\n", p.name)
	}
	for _, line := range lines {
		fmt.Fprintln(table, line)
	}
	return measured
}

// line returns the line of a promise in the table.
func (p promise) line(measured float64) string {
	verdict := "ok"
	if !(measured <= p.bound) { // NaN also counts as short
		verdict = "short"
	}
	return fmt.Sprintf("bench %-28s %8.2f %8.2f %s", p.name, measured, p.bound, verdict)
}

const rounds = 15

// notes has further results of the comparison in ratio. All fields are 0 if the promise
// does not use ratio.
type notes struct {
	median float64 // of the ratios of the rounds
	cpu    float64 // the ratio of the CPU times of this process
}

// compared has the notes of the promise that is being measured. The program measures one
// promise at a time.
var compared notes

// measuring is held while promises are measured, because the results share compared.
var measuring sync.Mutex

func (n notes) String(figure, bound float64) string {
	if n.median == 0 {
		return ""
	}
	text := fmt.Sprintf(" (median %.2f", n.median)
	if n.cpu > 0 {
		text += fmt.Sprintf(", cpu %.2f", n.cpu)
	}
	if (figure <= bound) != (n.median <= bound) {
		text += ", within noise"
	}
	return text + ")"
}

// ratio returns the cost of f divided by the cost of floor. Each is the best of several
// rounds, because slower rounds include other work of the machine. The two run alternately,
// so that both have the same load.
func ratio(f, floor func(n int)) float64 { return ratioOf(f, floor, 64) }

// ratioOf is ratio for operations that take longer: a round has at least n of them.
func ratioOf(f, floor func(n int), n int) float64 {
	least := func(best, one cost) cost { return cost{min(best.wall, one.wall), min(best.cpu, one.cpu)} }
	most := cost{math.Inf(1), math.Inf(1)}
	ours, below := most, most
	ratios := make([]float64, rounds)
	for i := range ratios {
		under, over := costFrom(floor, n), costFrom(f, n)
		below, ours = least(below, under), least(ours, over)
		ratios[i] = over.wall / under.wall
	}
	compared = notes{median(ratios), ours.cpu / below.cpu}
	return ours.wall / below.wall
}

// pair is an operation and its floor, for a promise and for an ordinary Go benchmark.
type pair struct {
	ours, floor func(n int)
	close       func() error
}

// pairRatio returns a function that measures a pair.
func pairRatio(open func() (*pair, error)) func() (float64, error) {
	return func() (figure float64, err error) {
		p, err := open()
		if err != nil {
			return 0, err
		}
		figure = ratio(p.ours, p.floor)
		return figure, p.close()
	}
}

// cost is the time of an operation and its CPU time, in nanoseconds.
type cost struct{ wall, cpu float64 }

// perOp returns the nanoseconds per operation.
func perOp(f func(n int)) float64 { return costOf(f).wall }

// costOf returns the cost of one operation. It measures a loop of at least 20 ms.
func costOf(f func(n int)) cost { return costFrom(f, 64) }

// costFrom is costOf with a loop of at least n operations.
func costFrom(f func(n int), n int) cost {
	for ; ; n *= 2 {
		start, used := time.Now(), cpuTime()
		f(n)
		if took := time.Since(start); took > 20*time.Millisecond {
			return cost{float64(took.Nanoseconds()) / float64(n), float64((cpuTime() - used).Nanoseconds()) / float64(n)}
		}
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// allocs returns the average number of allocations per operation.
func allocs(f func(n int)) float64 {
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		f(b.N)
	})
	return float64(result.AllocsPerOp())
}
