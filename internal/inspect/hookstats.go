package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/serve/api"
)

// HookStats counts the newest runs since a time, at most limit, and says how long they took.
// Runs that have not ended, and runs that were skipped, count in no number.
func HookStats(ctx context.Context, journal hook.ListJournal, since time.Time, limit int) (api.HookStatList, error) {
	out := api.HookStatList{Hooks: []api.HookStat{}, Since: since}
	type key struct{ hook, phase string }
	stats := make(map[key]*api.HookStat)
	took := make(map[key][]time.Duration)
	oldest := since
	for r, err := range journal.List(ctx, hook.Filter{Since: since, Newest: true, Limit: limit + 1}) {
		if err != nil {
			return out, err
		}
		if out.Records == limit {
			out.Truncated, out.Since = true, oldest
			break
		}
		out.Records++
		oldest = r.Started
		if r.Subscription == "" || !r.State.Final() || r.State == hook.Skipped {
			continue
		}
		k := key{r.Subscription, r.Phase}
		one := stats[k]
		if one == nil { // the newest run comes first
			one = &api.HookStat{Hook: k.hook, Phase: k.phase, Last: r.Started, LastRun: r.ID, Session: r.Scope.Session}
			stats[k] = one
		}
		one.Runs++
		if IsFailure(r.State) {
			one.Failures++
		}
		if r.State == hook.TimedOut {
			one.Timeouts++
		}
		if r.Severity >= hook.SeverityDeny {
			one.Denials++
		}
		took[k] = append(took[k], time.Duration(r.Latency))
	}
	for k, one := range stats {
		all := took[k]
		slices.Sort(all)
		one.P50, one.P99 = rank(all, 50).Microseconds(), rank(all, 99).Microseconds()
		out.Hooks = append(out.Hooks, *one)
	}
	slices.SortFunc(out.Hooks, func(a, b api.HookStat) int {
		return cmp.Or(cmp.Compare(a.Hook, b.Hook), cmp.Compare(a.Phase, b.Phase))
	})
	return out, nil
}

// rank returns the smallest value that percent of the sorted values do not exceed.
func rank(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1]
}
