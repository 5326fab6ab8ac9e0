// Command bench measures the speed promises and prints one line for each:
//
//	bench NAME MEASURED BOUND ok|short
//
// Most are ratios to a floor that is measured in the same run, so that they
// can be compared between machines. It fails only when it cannot measure.
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
	// measure returns the figure that must not exceed bound.
	measure func() (float64, error)
}

func main() {
	if serveMCP() || serveWorker() {
		return
	}
	promises := slices.Concat(hookPromises(), loopPromises(), durablePromises(), postgresPromises(), workerPromises(), permitPromises(), providerPromises(), skillPromises(), subagentPromises(), declarePromises(), extensionPromises(), mcpPromises(), memoryPromises(), typedPromises())
	if names := os.Args[1:]; len(names) > 0 { // only promises with this prefix
		promises = slices.DeleteFunc(promises, func(p promise) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(p.name, name) })
		})
	}
	if !report(os.Stdout, os.Stderr, promises) {
		os.Exit(1)
	}
}

// report measures the promises and then prints the table. It reports whether
// all of them could be measured; promises that are not kept are marked in the
// table.
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

// line returns the promise's line in the table.
func (p promise) line(measured float64) string {
	verdict := "ok"
	if !(measured <= p.bound) { // NaN counts as short, too
		verdict = "short"
	}
	return fmt.Sprintf("bench %-28s %8.2f %8.2f %s", p.name, measured, p.bound, verdict)
}

const rounds = 15

// ratio returns the cost of f divided by that of floor, each the best of
// several rounds: slower rounds include other work of the machine. The two run
// alternately, so that both run under the same load.
func ratio(f, floor func(n int)) float64 {
	ours, below := math.Inf(1), math.Inf(1)
	for range rounds {
		below = min(below, perOp(floor))
		ours = min(ours, perOp(f))
	}
	return ours / below
}

// perOp returns the time of an operation in nanoseconds, from a loop of at
// least 20 ms.
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

// allocs returns the average number of allocations of an operation.
func allocs(f func(n int)) float64 {
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		f(b.N)
	})
	return float64(result.AllocsPerOp())
}
