package hook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Plan is the resolved order of one phase, with the reason for each position.
type Plan struct {
	Phase string `json:"phase"`
	Kind  Kind   `json:"kind"`
	// Entries are the enabled subscriptions in plan order.
	Entries []PlanEntry `json:"entries"`
	// Disabled are the ids of disabled subscriptions.
	Disabled []string `json:"disabled,omitempty"`
}

// PlanEntry describes one subscription in a plan.
type PlanEntry struct {
	Position     int           `json:"position"` // counted from 1
	ID           string        `json:"id"`
	Name         string        `json:"name,omitempty"`
	Priority     int           `json:"priority"`
	After        []string      `json:"after,omitempty"` // the ids that are ordered directly before it
	Level        int           `json:"level"`           // the longest chain of dependencies before it
	Stage        int           `json:"stage"`           // counted from 1; the handlers of a stage run together
	Runs         string        `json:"runs"`            // inline, overlapping, detached or queued
	Execution    Execution     `json:"execution"`
	Timeout      time.Duration `json:"timeout,omitempty"`
	Failure      Failure       `json:"failure"`
	Match        string        `json:"match,omitempty"`
	Capabilities Capability    `json:"capabilities"`
	Rewrites     bool          `json:"rewrites,omitempty"`
	Shadow       bool          `json:"shadow,omitempty"`
	Origin       Origin        `json:"origin"`
	// Why gives the reason for the position.
	Why string `json:"why"`
}

// MarshalJSON writes the timeout as a Go duration.
func (e PlanEntry) MarshalJSON() ([]byte, error) {
	type plain PlanEntry
	return json.Marshal(struct {
		plain
		Timeout Latency `json:"timeout,omitempty"`
	}{plain(e), Latency(e.Timeout)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *PlanEntry) UnmarshalJSON(data []byte) error {
	type plain PlanEntry
	read := struct {
		*plain
		Timeout Latency `json:"timeout"`
	}{plain: (*plain)(e)}
	if err := json.Unmarshal(data, &read); err != nil {
		return fmt.Errorf("plan entry: %w", err)
	}
	e.Timeout = time.Duration(read.Timeout)
	return nil
}

// Plan returns the current plan of the phase with the given name.
func (rt *Runtime) Plan(phase string) (Plan, error) {
	c, err := rt.phase(phase)
	if err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	rt.changing.Lock() // members and plans must not change while both are read
	defer rt.changing.Unlock()
	disabled := disabledIDs(rt.members[c])
	rt.holding.Lock()
	p := rt.current.find(c)
	rt.holding.Unlock()
	return describePlan(c, p, disabled), nil
}

// Plan returns the phase's plan in the snapshot.
func (p Phase[In, Out]) Plan(s *Snapshot) Plan { return p.core().plan(s) }

func (def *phaseCore) plan(s *Snapshot) Plan {
	if s == nil {
		return describePlan(def, nil, nil)
	}
	plan := s.gen.Load().find(def)
	if plan == nil {
		plan = s.gen.Load().idle[def]
	}
	var disabled []string
	if plan != nil {
		disabled = disabledIDs(plan.all)
	}
	return describePlan(def, plan, disabled)
}

func disabledIDs(all *members) []string {
	var ids []string
	for _, e := range all.list {
		if e.disabled {
			ids = append(ids, e.sub.id)
		}
	}
	slices.Sort(ids)
	return ids
}

func describePlan(c *phaseCore, p *phasePlan, disabled []string) Plan {
	plan := Plan{Phase: c.name, Kind: c.kind, Entries: []PlanEntry{}, Disabled: disabled}
	if p == nil {
		return plan
	}
	stageOf := make([]int, len(p.order))
	for i, st := range p.stages {
		for _, pos := range p.sequence[st.from:st.to] {
			stageOf[pos] = i + 1
		}
	}
	for pos, e := range p.order {
		o := &e.sub.opts
		entry := PlanEntry{
			Position: pos + 1, ID: e.sub.id, Name: o.Name, Priority: o.Priority,
			Level: int(p.level[pos]), Stage: stageOf[pos], Runs: "inline", Execution: o.Execution,
			Timeout: o.Timeout, Failure: o.Failure, Match: o.Match.String(),
			Capabilities: e.caps, Rewrites: e.rewrites, Shadow: o.Shadow, Origin: o.Origin,
		}
		if p.stages[stageOf[pos]-1].overlap {
			entry.Runs = "overlapping"
		}
		switch o.Execution {
		case FireAndRecord:
			entry.Runs = "detached"
		case Background:
			entry.Runs = "queued"
		default:
		}
		for _, before := range p.preds.of(pos) {
			entry.After = append(entry.After, p.order[before].sub.id)
		}
		entry.Why = whyThere(entry)
		plan.Entries = append(plan.Entries, entry)
	}
	return plan
}

func whyThere(e PlanEntry) string {
	var reasons []string
	if e.Rewrites {
		reasons = append(reasons, "rewriters come first")
	}
	if len(e.After) > 0 {
		reasons = append(reasons, "after "+strings.Join(e.After, ", "))
	}
	reasons = append(reasons, fmt.Sprintf("priority %d, then id", e.Priority))
	return strings.Join(reasons, "; ")
}

// String returns the plan as a table.
func (p Plan) String() string {
	var b strings.Builder
	stages := 0
	for _, e := range p.Entries {
		stages = max(stages, e.Stage)
	}
	fmt.Fprintf(&b, "%s (%s): %s in %s\n", p.Phase, p.Kind,
		count(len(p.Entries), "subscription"), count(stages, "stage"))
	w := tabwriter.NewWriter(&b, 2, 0, 2, ' ', 0)
	for _, e := range p.Entries {
		runs := e.Runs
		if e.Timeout > 0 {
			runs += " " + e.Timeout.String()
		}
		if e.Shadow {
			runs += " shadow"
		}
		match := e.Match
		if match == "" {
			match = "everything"
		}
		fmt.Fprintf(w, "  %d.\t%s\tstage %d\t%s\t%s\t%s\t%s\n", e.Position, e.ID, e.Stage, runs, e.Failure, match, e.Why)
	}
	_ = w.Flush() // a strings.Builder does not fail
	if len(p.Disabled) > 0 {
		fmt.Fprintf(&b, "  disabled: %s\n", strings.Join(p.Disabled, ", "))
	}
	return trimLines(b.String())
}

// trimLines removes the padding at the ends of a table's lines.
func trimLines(table string) string {
	lines := strings.Split(table, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Subscriptions returns all installed subscriptions, including disabled ones. They are
// ordered by phase, as in the runtime, and then by id.
func (rt *Runtime) Subscriptions() []Subscription {
	rt.changing.Lock()
	defer rt.changing.Unlock()
	var subs []Subscription
	for _, p := range rt.phases {
		from := len(subs)
		for _, e := range rt.members[p.core()].list {
			subs = append(subs, Subscription{e.sub})
		}
		slices.SortFunc(subs[from:], func(a, b Subscription) int { return compareBytes(a.s.id, b.s.id) })
	}
	return subs
}
