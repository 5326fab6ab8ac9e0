package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/belay-run/belay/serve/api"
)

// hooksView is what the page of hooks shows.
type hooksView struct {
	Filter hookFilter
	Phases []phaseView // those that the filter shows
	Names  []string    // of all phases that have hooks
	Agents []string    // that declare hooks of their own
	Rows   []*hookView // the table, sorted
	Chosen *hookView   // the hook of the address, or nil
	Trust  []api.Trust
	Stats  api.HookStatList
	Total  int
	// Slowest and Failing are the hooks to look at first, or nil.
	Slowest, Failing *hookView
}

// phaseView is one phase with its graph.
type phaseView struct {
	api.Plan
	drawing
}

// hookView is one hook at one phase, with everything that is known of it.
type hookView struct {
	api.HookLine

	Entry *api.PlanEntry // its place in the order; nil if it is not in the plan
	Node  *api.GraphNode // nil for a hook of an agent
	Stat  *api.HookStat  // nil if it has not run
}

// failingFrom is the failure rate from which on a hook counts as failing.
const failingFrom = 0.1

// states returns the states of a hook in words. The first is what it does, the others need
// attention.
func (h *hookView) states() []string {
	all := []string{h.State}
	if h.Node != nil && h.Node.State != "" {
		all[0] = h.Node.State
	}
	if h.Node != nil && h.Node.Untrusted {
		all = append(all, "untrusted")
	}
	if h.failureRate() >= failingFrom {
		all = append(all, "failing")
	}
	return all
}

// hookTone returns the colour of a state of a hook: good, run, wait, bad or empty.
func hookTone(state string) string {
	switch state {
	case "on":
		return "good"
	case "shadow":
		return "run"
	case "limited", "untrusted":
		return "wait"
	case "closed", "quarantined", "failing":
		return "bad"
	default:
		return ""
	}
}

// tone returns the colour that needs the most attention.
func (h *hookView) tone() string {
	worst := ""
	order := []string{"", "good", "run", "wait", "bad"}
	for _, s := range h.states() {
		if t := hookTone(s); slices.Index(order, t) > slices.Index(order, worst) {
			worst = t
		}
	}
	return worst
}

// reason says why the hook is in its state, or "".
func (h *hookView) reason() string {
	if h.Node != nil && h.Node.State != "on" && h.Node.Why != "" {
		return h.Node.Why
	}
	return h.Reason
}

func (h *hookView) failureRate() float64 {
	if h.Stat == nil || h.Stat.Runs == 0 {
		return 0
	}
	return float64(h.Stat.Failures) / float64(h.Stat.Runs)
}

// p50 returns the median duration, or 0 if the hook has not run.
func (h *hookView) p50() time.Duration {
	if h.Stat == nil {
		return 0
	}
	return time.Duration(h.Stat.P50) * time.Microsecond
}

// p99 returns the duration that 99 of 100 runs do not exceed, or 0 if the hook has not run.
func (h *hookView) p99() time.Duration {
	if h.Stat == nil {
		return 0
	}
	return time.Duration(h.Stat.P99) * time.Microsecond
}

// origin returns where the hook is declared.
func (h *hookView) origin() string {
	o := h.Origin
	if o.File == "" {
		return o.String()
	}
	file := o.File
	if o.Line > 0 {
		file += ":" + strconv.Itoa(o.Line)
	}
	return file
}

// percent returns a rate, such as 12 %.
func percent(rate float64) string {
	switch {
	case rate == 0:
		return "0 %"
	case rate < 0.01:
		return "<1 %"
	default:
		return strconv.Itoa(int(rate*100+0.5)) + " %"
	}
}

// hookFilter is what the address of the page of hooks says.
type hookFilter struct{ Phase, Agent, Hook, Sort string }

// The orders of the table. The default is the order in which hooks run.
const (
	sortP99      = "p99"
	sortFailures = "failures"
	sortRuns     = "runs"
	sortDenials  = "denials"
)

// path returns the address of the page with this filter.
func (f hookFilter) path() string {
	q := url.Values{}
	for name, value := range map[string]string{"phase": f.Phase, "agent": f.Agent, "hook": f.Hook, "sort": f.Sort} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(q) == 0 {
		return "/hooks"
	}
	return "/hooks?" + q.Encode()
}

// of returns the address of a phase, without a chosen hook.
func (f hookFilter) of(phase string) string {
	return hookFilter{Phase: phase, Agent: f.Agent, Sort: f.Sort}.path()
}

// by returns the address of the table in an order.
func (f hookFilter) by(order string) string {
	f.Sort = order
	return f.path() + "#all"
}

// detail returns the address of a hook.
func (f hookFilter) detail(h *hookView) string {
	return hookFilter{Phase: h.Phase, Agent: cmp.Or(h.Agent, f.Agent), Hook: h.ID, Sort: f.Sort}.path() + "#hook"
}

// hooksPage shows the order of the hooks, and how they run.
func hooksPage(ctx context.Context, v *visit) (templ.Component, error) {
	if v.isLimited() {
		return limitedPage(v, "Hooks", "/hooks", "Hooks work for all tenants"), nil
	}
	b := hooksView{Filter: hookFilter{Phase: v.query("phase"), Agent: v.query("agent"), Hook: v.query("hook"), Sort: v.query("sort")}}
	list, err := v.ListHooks(ctx)
	if err != nil {
		return nil, err
	}
	in := api.PlanHooks{Phase: b.Filter.Phase, Agent: b.Filter.Agent}
	plans, err := v.PlanHooks(ctx, in)
	if err != nil {
		return nil, err
	}
	graph, err := v.HookGraph(ctx, in)
	if err != nil {
		return nil, err
	}
	if b.Stats, err = v.HookStats(ctx, api.HookStats{Limit: statRecords}); err != nil {
		return nil, err
	}
	trust, err := v.HookTrust(ctx)
	if err != nil {
		return nil, err
	}
	b.Trust = trust.Directories
	b.join(list.Hooks, plans.Plans, graph.Nodes)
	return hookPage(v, &b), nil
}

// statRecords is how many records the statistics of the page read.
const statRecords = 20000

// hookKey identifies a hook: one id may be at several phases.
type hookKey struct{ phase, id string }

// known is what the operations say of each hook.
type known struct {
	stats   map[hookKey]*api.HookStat
	entries map[hookKey]*api.PlanEntry
	nodes   map[hookKey]*api.GraphNode
}

func know(stats []api.HookStat, plans []api.Plan, nodes []api.GraphNode) known {
	k := known{make(map[hookKey]*api.HookStat), make(map[hookKey]*api.PlanEntry), make(map[hookKey]*api.GraphNode)}
	for i := range stats {
		k.stats[hookKey{stats[i].Phase, stats[i].Hook}] = &stats[i]
	}
	for _, p := range plans {
		for i := range p.Entries {
			k.entries[hookKey{p.Phase, p.Entries[i].ID}] = &p.Entries[i]
		}
	}
	for i := range nodes {
		k.nodes[hookKey{nodes[i].Phase, nodes[i].Hook}] = &nodes[i]
	}
	return k
}

// join puts together what the operations say of each hook.
func (b *hooksView) join(lines []api.HookLine, plans []api.Plan, nodes []api.GraphNode) {
	all := know(b.Stats.Hooks, plans, nodes)
	drawn := make(map[string]map[string]*hookView) // by phase and id: the hooks of the graphs
	for i := range lines {
		h := b.add(&lines[i], &all)
		if h == nil {
			continue
		}
		if drawn[h.Phase] == nil {
			drawn[h.Phase] = make(map[string]*hookView)
		}
		if other := drawn[h.Phase][h.ID]; other == nil || other.Entry == nil {
			drawn[h.Phase][h.ID] = h
		}
	}
	for _, p := range plans {
		if len(p.Entries)+len(p.Disabled)+len(p.OfAgents) > 0 {
			b.Phases = append(b.Phases, phaseView{p, layOut(&p, drawn[p.Phase])})
		}
	}
	b.sortPhases(plans)
	sortHooks(b.Rows, b.Filter.Sort, b.Names)
}

// add adds a hook to the page. It returns nil if the filter leaves the hook out.
func (b *hooksView) add(line *api.HookLine, all *known) *hookView {
	if !slices.Contains(b.Names, line.Phase) {
		b.Names = append(b.Names, line.Phase)
	}
	if line.Agent != "" && !slices.Contains(b.Agents, line.Agent) {
		b.Agents = append(b.Agents, line.Agent)
	}
	isOther := line.Agent != "" && line.Agent != b.Filter.Agent // of an agent whose turns the page does not show
	if isOther && b.Filter.Agent != "" {
		return nil
	}
	k := hookKey{line.Phase, line.ID}
	h := &hookView{HookLine: *line, Stat: all.stats[k]}
	if !isOther {
		h.Entry, h.Node = all.entries[k], all.nodes[k]
	}
	b.Total++
	b.notice(h)
	if b.Filter.Phase == "" || b.Filter.Phase == h.Phase {
		b.Rows = append(b.Rows, h)
	}
	if h.Phase == b.Filter.Phase && h.ID == b.Filter.Hook && (b.Chosen == nil || h.Agent == b.Filter.Agent) {
		b.Chosen = h
	}
	return h
}

// notice remembers the slowest hook and the one that fails most.
func (b *hooksView) notice(h *hookView) {
	if h.p99() > 0 && (b.Slowest == nil || h.p99() > b.Slowest.p99()) {
		b.Slowest = h
	}
	if h.failureRate() >= failingFrom && (b.Failing == nil || h.failureRate() > b.Failing.failureRate()) {
		b.Failing = h
	}
}

// sortPhases sorts the names of the phases as the plans do, which is the order of a turn. A
// plan of one phase says nothing about the others: then they are sorted by name.
func (b *hooksView) sortPhases(plans []api.Plan) {
	slices.Sort(b.Names)
	if b.Filter.Phase != "" {
		return
	}
	at := func(name string) int {
		return slices.IndexFunc(plans, func(p api.Plan) bool { return p.Phase == name })
	}
	slices.SortStableFunc(b.Names, func(x, y string) int { return cmp.Compare(at(x), at(y)) })
}

// sortHooks sorts the table. Hooks that are equal stay in the order in which they run.
func sortHooks(rows []*hookView, by string, phases []string) {
	slices.SortStableFunc(rows, func(x, y *hookView) int {
		position := func(h *hookView) int {
			if h.Entry == nil {
				return 1 << 30 // not in the plan: at the end
			}
			return h.Entry.Position
		}
		return cmp.Or(
			-compareBy(by, x, y),
			cmp.Compare(slices.Index(phases, x.Phase), slices.Index(phases, y.Phase)),
			cmp.Compare(position(x), position(y)),
			cmp.Compare(x.ID, y.ID),
		)
	})
}

// compareBy compares two hooks by a column of the table.
func compareBy(column string, x, y *hookView) int {
	number := func(h *hookView, of func(*api.HookStat) int) int {
		if h.Stat == nil {
			return -1
		}
		return of(h.Stat)
	}
	switch column {
	case sortP99:
		return cmp.Compare(x.p99(), y.p99())
	case sortFailures:
		return cmp.Or(cmp.Compare(x.failureRate(), y.failureRate()), cmp.Compare(number(x, failures), number(y, failures)))
	case sortRuns:
		return cmp.Compare(number(x, runs), number(y, runs))
	case sortDenials:
		return cmp.Compare(number(x, denials), number(y, denials))
	default:
		return 0
	}
}

func failures(s *api.HookStat) int { return s.Failures }
func runs(s *api.HookStat) int     { return s.Runs }
func denials(s *api.HookStat) int  { return s.Denials }

// trustCommand returns the command that trusts a directory.
func trustCommand(t *api.Trust) string {
	word := t.Dir
	if strings.ContainsAny(word, " '\"$`\\&;()<>|*?[]#~!") {
		word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return "belay trust " + word
}

// trustTone returns the colour of the state of a directory.
func trustTone(state string) string {
	switch state {
	case "unchanged":
		return "good"
	case "changed":
		return "wait"
	default:
		return "bad"
	}
}

// isLimited reports whether the token is for the sessions of some labels only. The API hides
// from such a token what belongs to all tenants.
func (v *visit) isLimited() bool { return len(v.self.Labels) > 0 }

// runsOf returns the address of the runs of a hook.
func runsOf(h *hookView) string {
	return runFilter{Hook: h.ID, Phase: h.Phase, All: true}.path()
}

// runsHow says how the hook runs, and how long it may take.
func runsHow(e *api.PlanEntry) string {
	how := e.Runs
	switch e.Runs {
	case "inline":
		how = "alone, in the turn"
	case "overlapping":
		how = "at the same time as its stage"
	case "detached":
		how = "beside the turn, which does not wait"
	case "queued":
		how = "in the background, as a job"
	}
	if e.Timeout != "" {
		how += ", at most " + e.Timeout
	}
	return how
}

// untrusted returns how many directories are not as they were trusted.
func (b *hooksView) untrusted() int {
	n := 0
	for i := range b.Trust {
		if b.Trust[i].State != "unchanged" {
			n++
		}
	}
	return n
}

// failsHow says what happens if the hook fails.
func failsHow(mode string) string {
	switch mode {
	case "closed":
		return "closed: a gate denies; at other phases the turn ends"
	case "open":
		return "open: the turn continues without its answer"
	case "fallback":
		return "fallback: a fixed answer replaces it"
	default:
		return mode
	}
}
