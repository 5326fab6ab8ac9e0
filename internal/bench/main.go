// Command bench measures the promises about speed. It prints one line for each:
//
//	bench NAME MEASURED BOUND ok|short
//
// Most figures are ratios to a floor: the least that any program would need, measured in
// the same run. So the figures of different machines can be compared. The program fails
// only if it cannot measure.
package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// promise is one line of the table.
type promise struct {
	name  string
	bound float64
	// measure returns the figure. It must not exceed bound.
	measure func() (float64, error)
}

func main() {
	if serveMCP() || serveWorker() {
		return
	}
	promises := slices.Concat(hookPromises(), loopPromises(), durablePromises(), postgresPromises(), workerPromises(), permitPromises(), providerPromises(), skillPromises(), subagentPromises(), declarePromises(), extensionPromises(), mcpPromises(), memoryPromises(), typedPromises(), startPromises())
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
	measured = true
	var lines []string
	for _, p := range promises {
		figure, err := p.measure()
		if err != nil {
			fmt.Fprintf(progress, "bench: %s: %v\n", p.name, err)
			measured = false
			continue
		}
		lines = append(lines, p.line(figure))
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

// ratio returns the cost of f divided by the cost of floor. Each is the best of several
// rounds, because slower rounds include other work of the machine. The two run alternately,
// so that both have the same load.
func ratio(f, floor func(n int)) float64 {
	ours, below := math.Inf(1), math.Inf(1)
	for range rounds {
		below = min(below, perOp(floor))
		ours = min(ours, perOp(f))
	}
	return ours / below
}

// perOp returns the nanoseconds per operation. It measures a loop of at least 20 ms.
func perOp(f func(n int)) float64 {
	for n := 64; ; n *= 2 {
		start := time.Now()
		f(n)
		if took := time.Since(start); took > 20*time.Millisecond {
			return float64(took.Nanoseconds()) / float64(n)
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
