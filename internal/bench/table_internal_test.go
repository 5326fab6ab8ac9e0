package main

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tableLine matches a line of the table, as a program that reads the table would.
var tableLine = regexp.MustCompile(`^bench ([a-z0-9-]+) +(\S+) +(\S+) (ok|short)( \(.*\))?$`)

func TestTableCanBeRead(t *testing.T) {
	t.Parallel()
	fixed := func(figure float64) func() (float64, error) { return func() (float64, error) { return figure, nil } }
	var table, progress strings.Builder
	measured := report(&table, &progress, []promise{
		{"kept", 2, fixed(1.234)},
		{"just-kept", 0, fixed(0)},
		{"not-kept", 1.5, fixed(1.51)},
		{"without-figure", 1, fixed(math.NaN())},
		{"a-name-that-is-longer-than-its-column", 15, fixed(123456789)},
		{"broken", 1, func() (float64, error) { return 0, errors.New("no clock") }},
		{"best-is-kept", 2, func() (float64, error) {
			compared = notes{median: 2.5, cpu: 1.5}
			return 1.9, nil
		}},
		{"after-a-comparison", 2, fixed(1)},
	})
	if measured {
		t.Error("report says it measured everything, and it could not")
	}
	var got []string
	for line := range strings.Lines(table.String()) {
		match := tableLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if match == nil {
			t.Errorf("the line %q cannot be read", line)
			continue
		}
		for _, figure := range match[2:4] {
			if _, err := strconv.ParseFloat(figure, 64); err != nil {
				t.Errorf("the line %q has no figure: %v", line, err)
			}
		}
		got = append(got, match[1]+" "+match[4]+match[5])
	}
	want := []string{"kept ok", "just-kept ok", "not-kept short", "without-figure short", "a-name-that-is-longer-than-its-column short", "best-is-kept ok (median 2.50, cpu 1.50, within noise)", "after-a-comparison ok"}
	if !slices.Equal(got, want) {
		t.Errorf("the table says %q, want %q", got, want)
	}
	if !strings.Contains(progress.String(), "bench: broken: no clock\n") {
		t.Errorf("what could not be measured is not told: %q", progress.String())
	}
}

// If a promise is not kept, report still succeeds. Only the table shows it.
func TestAShortFigureIsNoFailure(t *testing.T) {
	t.Parallel()
	var table, progress strings.Builder
	if !report(&table, &progress, []promise{{"slow", 1, func() (float64, error) { return 9, nil }}}) {
		t.Error("report says it could not measure")
	}
}

func TestPromisesHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range hookPromises() {
		if line := p.line(p.bound); tableLine.FindString(line) == "" || !strings.HasSuffix(line, " ok") {
			t.Errorf("%s at its bound is written as %q", p.name, line)
		}
		if seen[p.name] || p.measure == nil {
			t.Errorf("%s is there twice, or cannot be measured", p.name)
		}
		seen[p.name] = true
	}
	if len(seen) == 0 {
		t.Error("there is nothing to measure")
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{7}, 7},
		{[]float64{9, 1, 5}, 5},
		{[]float64{100, 1, 2, 3, 1000}, 3},
		{[]float64{4, 1, 3, 2}, 3}, // with an even number of values, median returns the larger of the two middle values, so that a promise is not kept by rounding
	} {
		if got := median(test.values); got != test.want {
			t.Errorf("median(%v) = %v, want %v", test.values, got, test.want)
		}
	}
}

// ratio compares the work of two loops. Four times the work must give about four, on any
// machine. The test looks at the CPU time, which other programs do not change much, so it
// cannot run in parallel with other tests.
func TestRatio(t *testing.T) { //nolint:paralleltest // measures the CPU time of the process
	work := func(units int) func(n int) {
		return func(n int) {
			x := uint64(1)
			for range n * units {
				x = x*6364136223846793005 + 1442695040888963407
			}
			if x == 0 {
				panic("the compiler must keep the loop")
			}
		}
	}
	wall := ratio(work(4_000), work(1_000))
	if got := compared.cpu; got != 0 && (got < 2 || got > 8) || wall <= 0 || compared.median <= 0 {
		t.Errorf("four times the work has the ratio %.2f, and %.2f of CPU time", wall, got)
	}
	var kept [][]byte
	if got := allocs(func(n int) {
		kept = kept[:0]
		for range n {
			kept = append(kept[:0], make([]byte, 100_000))
		}
	}); got < 1 {
		t.Errorf("a loop with an allocation has %v", got)
	}
}
