package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/belay-run/belay/hook/codes"
)

// Explanation describes one dispatch of a phase: which handlers were called, in which
// order, what each answered, and which answer won. It also says which handlers were not
// called, and why.
type Explanation struct {
	Phase string `json:"phase"`
	Kind  Kind   `json:"kind"`
	Scope Scope  `json:"scope,omitzero"`
	// Dispatch is the number of the recorded dispatch.
	Dispatch string `json:"dispatch,omitempty"`
	// Entries are the subscriptions in plan order.
	Entries []Explained `json:"entries"`
	// Won is the subscription whose verdict won. It is empty if no handler objected.
	Won string `json:"won,omitempty"`
	// Merged is the merged answer. It is empty for a recorded turn, because records do not
	// hold answers.
	Merged json.RawMessage `json:"merged,omitempty"`
	// Error says why the dispatch failed. It is empty if the dispatch did not fail.
	Error       string       `json:"error,omitempty"`
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
}

// Explained describes one subscription in an [Explanation].
type Explained struct {
	Position int    `json:"position"` // counted from 1; 0 if the subscription is not in the plan
	ID       string `json:"id"`
	Asked    bool   `json:"asked"`
	// Why says why the handler was not called, or how its run failed.
	Why   string     `json:"why,omitempty"`
	State State      `json:"state,omitzero"`
	Code  codes.Code `json:"code,omitempty"`
	// Contributed are the kinds of its contributions; none means "no opinion".
	Contributed []string `json:"contributed,omitempty"`
	// Said is the answer itself. It is empty for a recorded turn.
	Said    json.RawMessage `json:"said,omitempty"`
	Shadow  bool            `json:"shadow,omitempty"`
	Won     bool            `json:"won,omitempty"`
	Latency Latency         `json:"latency,omitempty"`
}

// Explain calls the handlers with an input and reports what each did. Handlers that a
// dispatch waits for really run, with all their effects. Explain records nothing, queues
// nothing, starts nothing in the background, and does not act on the outcome. If a dispatch
// of the input would fail, the explanation says why. Explain returns an error only if it
// cannot explain.
func (p Phase[In, Out]) Explain(ctx context.Context, s *Snapshot, in In) (Explanation, error) {
	if !p.Active(s) {
		return explainInactive(p.core(), s), nil
	}
	return p.d.core.explain(ctx, s, in)
}

// explainInactive is Explain for a phase without enabled subscriptions.
func explainInactive(c *phaseCore, s *Snapshot) Explanation {
	return Explanation{Phase: c.name, Kind: c.kind, Entries: append([]Explained{}, disabledEntries(c.plan(s))...)}
}

func (def *phaseCore) explain(ctx context.Context, s *Snapshot, in any) (Explanation, error) {
	x := Explanation{Phase: def.name, Kind: def.kind, Entries: []Explained{}}
	resolved := s.gen.Load().find(def)
	tr := &trace{said: make(map[string]Explained)}
	out := outcome{input: in}
	err := def.dispatch(ctx, s, resolved, tr, &out)
	if def.scope != nil {
		if scope := def.scope(in); scope != nil {
			x.Scope = *scope
		}
	}
	plan := def.plan(s)
	for _, e := range plan.Entries {
		said, ok := tr.said[e.ID]
		if !ok {
			said = Explained{Why: "the dispatch ended before it was called"}
		}
		said.Position, said.ID, said.Shadow, said.Won = e.Position, e.ID, e.Shadow, e.ID == out.by
		x.Entries = append(x.Entries, said)
	}
	x.Entries = append(x.Entries, disabledEntries(plan)...)
	x.Won, x.Diagnostics = out.by, out.diagnostics
	if err != nil {
		x.Error = err.Error()
	}
	if x.Merged, err = json.Marshal(def.orZero(out.output)); err != nil {
		return x, fmt.Errorf("explain %s: %w", def.name, err)
	}
	return x, nil
}

func disabledEntries(plan Plan) []Explained {
	entries := make([]Explained, len(plan.Disabled))
	for i, id := range plan.Disabled {
		entries[i] = Explained{ID: id, Why: "it is disabled"}
	}
	return entries
}

// ExplainRuns explains recorded runs. It returns one explanation for each dispatch of the
// plan's phase, in the order of the runs. Records do not hold answers, so the explanations
// have the kinds of contributions and not their texts.
func ExplainRuns(plan Plan, runs []Run) []Explanation {
	var dispatches []string
	grouped := make(map[string][]Run)
	for _, r := range runs {
		if r.Phase != plan.Phase || r.Subscription == "" || r.Job != "" && r.Attempt > 0 {
			continue
		}
		if _, known := grouped[r.Dispatch]; !known {
			dispatches = append(dispatches, r.Dispatch)
		}
		grouped[r.Dispatch] = append(grouped[r.Dispatch], r)
	}
	explanations := make([]Explanation, 0, len(dispatches))
	for _, id := range dispatches {
		explanations = append(explanations, explainDispatch(plan, id, grouped[id]))
	}
	return explanations
}

func explainDispatch(plan Plan, dispatch string, runs []Run) Explanation {
	x := Explanation{Phase: plan.Phase, Kind: plan.Kind, Dispatch: dispatch, Scope: runs[0].Scope, Entries: []Explained{}}
	byID := make(map[string]Run, len(runs))
	for _, r := range runs {
		byID[r.Subscription] = r
	}
	worst := SeverityPass
	for _, e := range plan.Entries {
		r, ok := byID[e.ID]
		if !ok {
			x.Entries = append(x.Entries, Explained{
				Position: e.Position, ID: e.ID, Why: "no record: it did not match, or was not installed at that time",
			})
			continue
		}
		addRun(&x, e.Position, r, &worst)
		delete(byID, e.ID)
	}
	for _, r := range runs { // subscriptions that are no longer in the plan
		if _, left := byID[r.Subscription]; left {
			addRun(&x, 0, r, &worst)
		}
	}
	for i := range x.Entries {
		x.Entries[i].Won = x.Won != "" && x.Entries[i].ID == x.Won
	}
	return x
}

// addRun adds a record to the explanation. worst is the most severe verdict so far.
func addRun(x *Explanation, position int, r Run, worst *Severity) {
	entry := Explained{
		Position: position, ID: r.Subscription, Asked: r.State != Skipped, State: r.State, Code: r.Class,
		Shadow: r.Shadow, Latency: r.Latency,
	}
	if r.Class != "" {
		entry.Why = meaning(r.Class)
	}
	for _, d := range r.Contributed {
		entry.Contributed = append(entry.Contributed, d.Kind)
	}
	if x.Kind == Gate && !r.Shadow && r.Severity > *worst {
		*worst, x.Won = r.Severity, r.Subscription
	}
	x.Diagnostics = append(x.Diagnostics, r.Diagnostics...)
	x.Entries = append(x.Entries, entry)
}

func meaning(code codes.Code) string {
	for _, info := range codes.All() {
		if info.Code == code {
			return info.Meaning
		}
	}
	return string(code)
}

// String returns the explanation as a table.
func (x Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", x.Phase)
	switch {
	case x.Error != "":
		fmt.Fprintf(&b, "failed: %s\n", x.Error)
	case x.Won != "":
		fmt.Fprintf(&b, "%s won\n", x.Won)
	case x.Kind == Gate:
		b.WriteString("nobody objected\n")
	default:
		asked := 0
		for _, e := range x.Entries {
			if e.Asked {
				asked++
			}
		}
		fmt.Fprintf(&b, "%d asked\n", asked)
	}
	w := tabwriter.NewWriter(&b, 2, 0, 2, ' ', 0)
	for _, e := range x.Entries {
		verb, what := "not asked", e.Why
		if e.Asked {
			verb = e.State.String()
			what = "no opinion"
			if len(e.Contributed) > 0 {
				what = strings.Join(e.Contributed, ", ")
			}
			if e.Why != "" {
				what = e.Why
				if len(e.Contributed) > 0 {
					what += "; used instead: " + strings.Join(e.Contributed, ", ")
				}
			}
		}
		if e.Code != "" {
			what += " (" + string(e.Code) + ")"
		}
		if e.Shadow {
			what += " [shadow]"
		}
		place := "-"
		if e.Position > 0 {
			place = fmt.Sprintf("%d.", e.Position)
		}
		if e.Won {
			what += "  <- won"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", place, e.ID, verb, what)
	}
	_ = w.Flush() // a strings.Builder does not fail
	return trimLines(b.String())
}

// trace collects what each subscription did. A dispatch has a trace only if Explain runs
// it.
type trace struct{ said map[string]Explained }

func (d *dispatch) traceUnmatched(e *entry, set patternSet, value string) {
	if d.trace != nil {
		d.trace.said[e.sub.id] = Explained{Why: fmt.Sprintf("it matches only %s, but this input has %q", set, value)}
	}
}

func (d *dispatch) traceWhen(e *entry) {
	if d.trace != nil {
		d.trace.said[e.sub.id] = Explained{Why: "its condition is false: " + e.match.when.String()}
	}
}

func (d *dispatch) traceSkipped(e *entry) {
	if d.trace == nil {
		return
	}
	why, code := "an earlier subscription had stopped the phase", codes.Skipped
	if d.stop < 0 {
		why, code = "the turn was cancelled", codes.Canceled
	} else if at := slices.IndexFunc(d.answers, func(a answered) bool { return a.pos == d.stop }); at >= 0 {
		why = d.answers[at].from + " had stopped the phase"
	}
	d.trace.said[e.sub.id] = Explained{Why: why, State: Skipped, Code: code}
}

// traceStarted notes that a dispatch would start or queue the handler without waiting.
func (d *dispatch) traceStarted(e *entry) {
	why := "it would start, and the turn would not wait for it"
	if e.sub.opts.Execution == Background {
		why = "it would be queued"
	}
	d.trace.said[e.sub.id] = Explained{Why: why}
}

func (d *dispatch) traceAnswer(e *entry, out Output, ans *Answer, took int64) {
	if d.trace == nil {
		return
	}
	x := Explained{Asked: true, State: Completed, Latency: Latency(took)}
	for _, part := range ans.Parts {
		x.Contributed = append(x.Contributed, part.Kind)
	}
	if said, err := json.Marshal(out); err == nil && !ans.empty() {
		x.Said = said
	}
	d.trace.said[e.sub.id] = x
}

func (d *dispatch) traceFailure(e *entry, p Problem, took int64) {
	if d.trace == nil {
		return
	}
	state := Failed
	if p.Code == codes.Timeout {
		state = TimedOut
	}
	d.trace.said[e.sub.id] = Explained{
		Asked: p.Code != codes.Quarantined && p.Code != codes.Overloaded,
		State: state, Code: p.Code, Why: p.Err.Error(), Latency: Latency(took),
	}
}

// traceStandIn adds the answer that is used in place of a failed one.
func (d *dispatch) traceStandIn(e *entry, ans *Answer) {
	if d.trace == nil {
		return
	}
	x := d.trace.said[e.sub.id]
	for _, part := range ans.Parts {
		x.Contributed = append(x.Contributed, part.Kind)
	}
	d.trace.said[e.sub.id] = x
}
