package record

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/table"
)

// FuzzFold checks that unfold returns what Fold encoded.
func FuzzFold(f *testing.F) {
	f.Add("run-9", "run-a", "run-az", int64(0), int64(5), int64(-7), int64(0))
	f.Add("a", "", "b", int64(math.MaxInt64), int64(math.MinInt64), int64(1), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, one, two, three string, started, ended, latency, more int64) {
		if !plainID(one) || !plainID(two) || !plainID(three) {
			t.Skip("such runs are not folded")
		}
		rows := []table.PutRunParams{
			{ID: one, Started: started, Ended: ended, Latency: latency},
			{ID: two, Started: started + more, Ended: latency, Latency: ended},
			{ID: three, Started: more, Ended: 0, Latency: started},
		}
		_, folded := Fold(rows)
		n := 0
		err := unfold(&table.Run{ID: one, Started: started, More: 2, Folded: folded}, func(i int, got foldedRun) {
			if want := rows[i+1]; i != n || string(got.id) != want.ID || got.started != want.Started || got.ended != want.Ended || got.latency != want.Latency {
				t.Errorf("%q: run %d is %+v, want %+v", folded, n, got, want)
			}
			n++
		})
		if err != nil || n != 2 {
			t.Fatalf("%q: %d runs, %v", folded, n, err)
		}
	})
}

// FuzzUnfold checks that unfold never panics, and accepts only the number of runs that the
// row has.
func FuzzUnfold(f *testing.F) {
	f.Add("run-1", int64(2), "4 2 0 5 0;4 3 1 6 0;")
	f.Add("run-1", int64(1), "9 2 0 5 0;")
	f.Add("", int64(-1), ";")
	f.Fuzz(func(t *testing.T, id string, more int64, folded string) {
		n := int64(0)
		err := unfold(&table.Run{ID: id, More: more, Folded: folded}, func(int, foldedRun) { n++ })
		if err == nil && n != more || n > max(more, 0) {
			t.Errorf("%q gives %d runs, %v, want %d", folded, n, err, more)
		}
	})
}

// Only runs that fit into one row are folded.
func TestFoldable(t *testing.T) {
	t.Parallel()
	of := func(n int, change func(i int, r *table.PutRunParams)) []table.PutRunParams {
		rows := make([]table.PutRunParams, n)
		for i := range rows {
			rows[i] = table.PutRunParams{ID: "run-" + strings.Repeat("i", i), Subscription: "gate", Dispatch: "d", State: hook.Completed.String(), Started: int64(i), Latency: int64(i)}
			change(i, &rows[i])
		}
		return rows
	}
	at := func(n int, change func(r *table.PutRunParams)) func(int, *table.PutRunParams) {
		return func(i int, r *table.PutRunParams) {
			if i == n {
				change(r)
			}
		}
	}
	for name, c := range map[string]struct {
		rows []table.PutRunParams
		want int
	}{
		"equal runs":                          {of(9, func(int, *table.PutRunParams) {}), 9},
		"one run":                             {of(1, func(int, *table.PutRunParams) {}), 0},
		"too few runs":                        {of(3, func(int, *table.PutRunParams) {}), 0},
		"more runs than a row holds":          {of(1000, func(int, *table.PutRunParams) {}), foldMost},
		"runs without a dispatch":             {of(9, func(_ int, r *table.PutRunParams) { r.Dispatch = "" }), 0},
		"runs with a record of their start":   {of(9, func(_ int, r *table.PutRunParams) { r.Attempt = 1 }), 0},
		"runs that have not ended":            {of(9, func(_ int, r *table.PutRunParams) { r.State = hook.Started.String() }), 0},
		"another dispatch begins":             {of(9, at(5, func(r *table.PutRunParams) { r.Dispatch = "e" })), 5},
		"a run failed":                        {of(9, at(6, func(r *table.PutRunParams) { r.State = hook.Failed.String() })), 6},
		"a run failed early":                  {of(9, at(2, func(r *table.PutRunParams) { r.State = hook.Failed.String() })), 0},
		"a run has a diagnostic":              {of(9, at(7, func(r *table.PutRunParams) { r.Diagnostics = "[]" })), 7},
		"a run started before the first":      {of(9, at(4, func(r *table.PutRunParams) { r.Started = -1 })), 4},
		"a run started just in time":          {of(9, at(4, func(r *table.PutRunParams) { r.Started = foldSpan })), 9},
		"a run started late":                  {of(9, at(4, func(r *table.PutRunParams) { r.Started = foldSpan + 1 })), 4},
		"a run started at the end of time":    {of(9, at(4, func(r *table.PutRunParams) { r.Started = math.MaxInt64 })), 4},
		"an id has a space":                   {of(9, at(4, func(r *table.PutRunParams) { r.ID = "a b" })), 4},
		"an id has a semicolon":               {of(9, at(4, func(r *table.PutRunParams) { r.ID = "a;b" })), 4},
		"an id has a letter outside of ASCII": {of(9, at(0, func(r *table.PutRunParams) { r.ID = "ä" })), 0},
		"an id has a NUL":                     {of(9, at(0, func(r *table.PutRunParams) { r.ID = "a\x00" })), 0},
	} {
		if got := Foldable(c.rows); got != c.want {
			t.Errorf("%s: %d are folded, want %d", name, got, c.want)
		}
	}
}

// Two lists of hooks have the same name only if they are equal.
func TestHookLists(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	lists := [][]table.PutRunParams{
		{{}, {Subscription: "a"}},
		{{}, {Version: "a"}},
		{{}, {OriginName: "a"}},
		{{}, {OriginFile: "a"}},
		{{}, {OriginLine: 1}},
		{{}, {}},
		{{}, {}, {}},
		{{}, {Subscription: "a"}, {Subscription: "b"}},
		{{}, {Subscription: "b"}, {Subscription: "a"}},
		{{}, {Subscription: "a", Version: "b"}},
		{{}, {Subscription: "ab"}},
	}
	for i, rows := range lists {
		name, _ := Fold(rows)
		if other, ok := seen[name]; ok {
			t.Errorf("the lists %d and %d have the same name %s", i, other, name)
		}
		seen[name] = i
		again := slices.Clone(rows)
		for j := range again {
			again[j].ID, again[j].Started = time.Now().String(), 5
		}
		if same, _ := Fold(again); same != name {
			t.Errorf("list %d has the names %s and %s", i, name, same)
		}
	}
}
