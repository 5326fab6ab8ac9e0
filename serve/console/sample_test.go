package console_test

import (
	"fmt"
	"math"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/serve/api"
)

// sample returns an API with hooks in every state, runs, jobs and usage.
func sample() *fakeAPI {
	now := time.Now()
	f := &fakeAPI{usage: make(map[string]api.Usage)}
	plan := func(phase, kind string) *api.Plan {
		f.plans = append(f.plans, api.Plan{Phase: phase, Kind: kind, Entries: []api.PlanEntry{}})
		return &f.plans[len(f.plans)-1]
	}
	add := func(p *api.Plan, id string, stage int, runs, state string, after ...string) *api.HookLine {
		origin := hook.Origin{Kind: hook.OriginProject, File: ".belay/hooks/" + id + ".yaml", Line: 1}
		f.hooks = append(f.hooks, api.HookLine{ID: id, Phase: p.Phase, Kind: "command", Origin: origin, State: state, Fails: "closed", Match: "tools shell, write"})
		f.nodes = append(f.nodes, api.GraphNode{ID: p.Phase + " " + id, Phase: p.Phase, Hook: id, Stage: stage, State: state, Origin: origin})
		if stage > 0 {
			p.Entries = append(p.Entries, api.PlanEntry{
				Position: len(p.Entries) + 1, ID: id, After: after, Stage: stage, Runs: runs, Execution: "deadline", Timeout: "5s", Failure: "closed",
				Capabilities: []string{"observe", "deny"}, Shadow: state == "shadow", Origin: origin, Why: "priority 0, then id",
			})
		} else {
			p.Disabled = append(p.Disabled, id)
		}
		return &f.hooks[len(f.hooks)-1]
	}
	stat := func(phase, id string, runs, failures, denials int, p50, p99 time.Duration) {
		f.stats = append(f.stats, api.HookStat{
			Hook: id, Phase: phase, Runs: runs, Failures: failures, Denials: denials, P50: p50.Microseconds(), P99: p99.Microseconds(),
			Last: now.Add(-4 * time.Minute), LastRun: "r-" + id, Session: "s1",
		})
	}

	p := plan("prompt.pre", "collect")
	add(p, "house-rules", 1, "inline", "on")
	stat("prompt.pre", "house-rules", 220, 0, 0, 40*time.Microsecond, 90*time.Microsecond)

	p = plan("tool.pre", "gate")
	add(p, "redact", 1, "inline", "on")
	add(p, "paths", 1, "inline", "on", "redact")
	add(p, "no-prod", 2, "overlapping", "on", "paths")
	add(p, "secrets-scan", 2, "overlapping", "shadow", "paths")
	add(p, "licence-check-for-new-files", 2, "overlapping", "limited").Reason = "it lacks the grant rewrite, so its rewrites are dropped"
	add(p, "review", 3, "overlapping", "quarantined", "no-prod")
	add(p, "lint-all", 3, "overlapping", "on", "redact")
	add(p, "payments-gate", 3, "overlapping", "closed").Reason = "its directory has changed since it was trusted: it denies everything"
	add(p, "old-check", 0, "", "off").Reason = "its file says enabled: false"
	f.nodes[6].Why = "8 of its runs do not stop"
	f.nodes[8].Untrusted = true
	stat("tool.pre", "redact", 4100, 0, 0, 12*time.Microsecond, 70*time.Microsecond)
	stat("tool.pre", "paths", 4100, 2, 31, 15*time.Microsecond, 120*time.Microsecond)
	stat("tool.pre", "no-prod", 4080, 0, 12, 3*time.Millisecond, 22*time.Millisecond)
	stat("tool.pre", "secrets-scan", 4080, 25, 0, 9*time.Millisecond, 81*time.Millisecond)
	stat("tool.pre", "lint-all", 390, 74, 3, 640*time.Millisecond, 4800*time.Millisecond)

	p = plan("turn.end", "observe")
	add(p, "notify", 1, "detached", "on")
	add(p, "index", 2, "queued", "on").Warnings = []string{`no tool matches "serch" (did you mean "search"?)`}
	stat("turn.end", "index", 84, 4, 0, 2*time.Second, 3100*time.Millisecond)

	f.trust = []api.Trust{
		{Dir: "/srv/shop/.belay", Origin: "project", State: "changed", By: "ann", At: now.AddDate(0, 0, -9), Changes: []api.TrustChange{
			{File: "hooks/payments-gate.yaml", Change: "changed", Diff: "@@ -1,3 +1,3 @@\n id: payments-gate\n-timeout: 5s\n+timeout: 50s\n phase: tool.pre\n"},
			{File: "hooks/bin/scan", Change: "added"},
		}},
		{Dir: "/opt/belay/spaces/house", Origin: "space", Space: "house", State: "unchanged", By: "ops", At: now.AddDate(0, -2, 0), Grants: []string{"rewrite"}},
	}

	names := []string{"redact", "paths", "no-prod", "secrets-scan", "lint-all"}
	for i := range 60 {
		name := names[i%5]
		started := now.Add(-time.Duration(i*i) * 900 * time.Millisecond)
		r := hook.Run{
			ID: fmt.Sprintf("r%d", i), Subscription: name, Phase: "tool.pre", State: hook.Completed, Scope: hook.Scope{Session: "main/sub", Turn: "t1", Step: 2, Agent: "main"},
			Started: started, Ended: started.Add(4 * time.Millisecond), Latency: hook.Latency(4 * time.Millisecond), Shadow: name == "secrets-scan", Severity: hook.SeverityPass, Execution: hook.Deadline,
			Origin: hook.Origin{Kind: hook.OriginProject, File: ".belay/hooks/" + name + ".yaml", Line: 1},
		}
		switch {
		case name == "no-prod" && i%2 == 0:
			r.Severity, r.Contributed = hook.SeverityDeny, []hook.Digest{{Kind: "deny", Hash: "sha256:5d41402abc4b2a76b9719d911017c592", Size: 41}}
			r.Audit = []hook.Audit{{Code: "prod.friday", Message: "production is closed on Fridays"}}
		case name == "lint-all" && i%3 == 0:
			r.State, r.Class = hook.TimedOut, codes.Timeout
			r.Diagnostics = []hook.Diagnostic{{Code: codes.Timeout, Message: "lint-all did not answer within 5s"}}
		}
		f.runs = append(f.runs, r)
	}

	f.load = api.Workload{
		Turns: belay.Load{Waiting: 3, OldestAge: 4 * time.Minute, Parked: 1, Holders: []belay.HolderLoad{
			{PID: 4211, Host: "web-1", Since: now.Add(-3 * time.Hour), Self: true, Worker: true, Sessions: 2, Turns: []belay.DueTurn{{Session: "s1", Agent: "main", Since: now.Add(-40 * time.Second)}, {Session: "main/sub", Agent: "reviewer", Since: now.Add(-3 * time.Second), Abort: "ann"}}},
			{PID: 97, Host: "web-2", Since: now.Add(-26 * time.Hour), Worker: true},
			{PID: 3000, Host: "web-3", Since: now.Add(-9 * time.Hour), Gone: true, Worker: true, Sessions: 1},
		}, PutOff: []belay.DueTurn{{Session: "s9", Agent: "main", Again: now.Add(30 * time.Second), Why: "the provider does not answer"}}},
		Jobs: hook.QueueStats{Waiting: 2, Running: 1, Capacity: 8, OldestAge: 3 * time.Second},
	}
	for i, state := range []string{"waiting", "running", "waiting", "failed", "completed", "cancelled", "completed"} {
		j := api.Job{ID: fmt.Sprint(70 - i), Kind: "index", State: state, Hook: "index", Phase: "turn.end", Session: "s1", Attempt: 1 + i%3, Attempts: 5, Created: now.Add(-time.Hour), Due: now.Add(time.Minute)}
		if state != "waiting" {
			j.Started = now.Add(-time.Duration(i) * time.Minute)
		}
		if state == "failed" || state == "completed" || state == "cancelled" {
			j.Ended = j.Started.Add(2 * time.Second)
		}
		f.jobs = append(f.jobs, j)
	}

	day := now.UTC().Truncate(24 * time.Hour)
	total := api.Usage{Sessions: 214, Turns: 1290}
	for i := range 90 {
		n := 0
		if wd := day.AddDate(0, 0, -i).Weekday(); wd != time.Sunday {
			n = int(40000 * (1.4 + math.Sin(float64(i)/3)))
		}
		u := belay.Usage{In: n, Out: n / 6, CacheRead: 3 * n, Cost: float64(n) / 20000}
		if n == 0 {
			continue
		}
		total.Rows = append(total.Rows, api.UsageRow{Key: day.AddDate(0, 0, -i).Format(time.DateOnly), Usage: u, Turns: n / 4000, Sessions: n / 20000})
		if i < 30 {
			total.Usage.In, total.Usage.Out, total.Usage.CacheRead, total.Usage.Cost = total.Usage.In+u.In, total.Usage.Out+u.Out, total.Usage.CacheRead+u.CacheRead, total.Usage.Cost+u.Cost
		}
	}
	f.usage["day"] = total
	f.usage["agent"] = api.Usage{Rows: []api.UsageRow{{Key: "main", Usage: belay.Usage{In: 700000, Out: 90000, Cost: 31.2}, Turns: 900}, {Key: "reviewer", Usage: belay.Usage{In: 300000, Out: 20000, Cost: 12.9}, Turns: 300}}}
	f.usage["model"] = api.Usage{Rows: []api.UsageRow{{Key: "anthropic/claude-haiku", Usage: belay.Usage{In: 200000, Cost: 2.1}, Turns: 500}, {Key: "anthropic/claude-sonnet", Usage: belay.Usage{In: 800000, Out: 100000, Cost: 42}, Turns: 700}}}
	f.usage["label:team"] = api.Usage{Rows: []api.UsageRow{{Key: "", Usage: belay.Usage{In: 1000, Cost: 0.002}, Turns: 2}, {Key: "search", Usage: belay.Usage{In: 900000, Cost: 40}, Turns: 1100}}}
	return f
}
