package console_test

import (
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/serve/console"
)

func TestChartScale(t *testing.T) {
	t.Parallel()
	for n, want := range map[float64]float64{0: 0, 0.003: 0.004, 0.9: 1, 1: 1, 1.1: 2, 4.9: 6, 7: 8, 9: 10, 123: 200, 399000: 400000} {
		if got := console.RoundUp(n); got < want*0.9999 || got > want*1.0001 {
			t.Errorf("the scale for %v ends at %v, want %v", n, got, want)
		}
	}
}

func TestChartOfDays(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	days := func(n int) (all []time.Time) {
		for i := range n {
			all = append(all, begin.AddDate(0, 0, i))
		}
		return all
	}
	heights, lines, names := console.DrawDays(days(4), []float64{0, 4, 2, 0.0001})
	if want := []string{"0.0", "150.0", "75.0", "1.5"}; !slices.Equal(heights, want) {
		t.Errorf("the heights are %q, want %q: a small number is visible, and zero is not", heights, want)
	}
	if want := []string{"$4.00", "$2.00"}; !slices.Equal(lines, want) {
		t.Errorf("the lines are %q, want %q", lines, want)
	}
	if want := []string{"1 Nov", "2 Nov", "3 Nov", "4 Nov"}; !slices.Equal(names, want) {
		t.Errorf("the names are %q, want %q", names, want)
	}
	for _, n := range []int{30, 90} {
		_, _, names := console.DrawDays(days(n), make([]float64, n))
		if last := begin.AddDate(0, 0, n-1).Format("2 Jan"); len(names) > 5 || names[len(names)-1] != last {
			t.Errorf("%d days have the names %q, want at most 5 that end with %s", n, names, last)
		}
	}
}

func TestUsageHasARowForEachDay(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 10, 30, 0, 0, 0, 0, time.UTC)
	rows := []api.UsageRow{{Key: "2026-10-29", Turns: 9}, {Key: "2026-11-01", Turns: 2, Usage: belay.Usage{In: 5}}}
	got := console.EveryDay(rows, since, 4)
	want := []api.UsageRow{{Key: "2026-10-30"}, {Key: "2026-10-31"}, rows[1], {Key: "2026-11-02"}}
	if !slices.Equal(got, want) {
		t.Errorf("the days are %v, want %v", got, want)
	}
}
