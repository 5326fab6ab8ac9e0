package backtest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay/hook"
)

// HookTotal is what one hook did in a backtest.
type HookTotal struct {
	ID    string `json:"id"`
	Phase string `json:"phase"`
	// Shadow says that the answers of the hook change no outcome.
	Shadow bool `json:"shadow,omitempty"`
	// Asked is how often the hook was called: 0 if it matched nothing, or if other answers came
	// before. The other counts are parts of it.
	Asked int `json:"asked"`
	// Asks, Denied and Rewrote count answers. At approval.request, Asks counts approvals.
	Asks    int `json:"asks,omitempty"`
	Denied  int `json:"denied,omitempty"`
	Rewrote int `json:"rewrote,omitempty"`
	// Failed counts errors, panics and invalid answers. TimedOut counts timeouts.
	Failed   int `json:"failed,omitempty"`
	TimedOut int `json:"timed_out,omitempty"`
	// Time is the sum of all calls. Slowest is the longest call.
	Time    hook.Latency `json:"time"`
	Slowest hook.Latency `json:"slowest"`
}

// tally is a journal that counts the runs of each hook and keeps no records.
type tally struct {
	mu    sync.Mutex
	total map[hookKey]*HookTotal
	last  *HookTotal // of the last run
	// after has the total of the run that came after one of a hook. Runs come in the order of
	// the plan, so it usually answers of without a hash of the names.
	after map[*HookTotal]*HookTotal
}

var _ hook.Journal = (*tally)(nil)

func newTally() *tally {
	return &tally{total: make(map[hookKey]*HookTotal), after: make(map[*HookTotal]*HookTotal)}
}

// of returns the total of a hook. The caller holds t.mu.
func (t *tally) of(phase, id string) *HookTotal {
	if next := t.after[t.last]; next != nil && next.ID == id && next.Phase == phase {
		t.last = next
		return next
	}
	k := hookKey{phase, id}
	if t.total[k] == nil {
		t.total[k] = &HookTotal{ID: id, Phase: phase}
	}
	t.after[t.last] = t.total[k]
	t.last = t.total[k]
	return t.last
}

// know makes hooks appear in the totals, also if they are never called.
func (t *tally) know(phase, id string, shadow bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := (hookKey{phase, id}); t.total[k] == nil {
		t.total[k] = &HookTotal{ID: id, Phase: phase, Shadow: shadow}
	}
}

// Append counts runs that have ended.
func (t *tally) Append(_ context.Context, runs []hook.Run) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range runs {
		r := &runs[i]
		if !r.State.Final() || r.State == hook.Skipped || r.Subscription == "" {
			continue
		}
		h := t.of(r.Phase, r.Subscription)
		h.Shadow = r.Shadow
		h.count(r.Severity, time.Duration(r.Latency))
		switch r.State {
		case hook.TimedOut:
			h.TimedOut++
		case hook.Failed, hook.Interrupted:
			h.Failed++
		default:
		}
		if slices.ContainsFunc(r.Contributed, func(d hook.Digest) bool { return d.Kind == "input" || d.Kind == "prompt" || d.Kind == "result" }) {
			h.Rewrote++
		}
	}
	return nil
}

// count adds one call and its verdict.
func (h *HookTotal) count(verdict hook.Severity, took time.Duration) {
	h.Asked++
	switch {
	case verdict >= hook.SeverityDeny:
		h.Denied++
	case verdict == hook.SeverityAsk:
		h.Asks++
	}
	h.Time += hook.Latency(took)
	h.Slowest = max(h.Slowest, hook.Latency(took))
}

// floorID is the id of the floor in the totals.
const floorID = "floor"

// floor counts one check of the floor.
func (t *tally) floor(verdict hook.Severity, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of("", floorID).count(verdict, took)
}

// sorted returns the totals by phase and id, the floor last. Hooks that were not asked are
// left out.
func (t *tally) sorted(silent []NotAsked) []HookTotal {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range silent {
		delete(t.total, hookKey{n.Phase, n.ID})
	}
	var all []HookTotal
	for _, h := range t.total {
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b HookTotal) int {
		return cmp.Or(cmp.Compare(place(a.Phase), place(b.Phase)), strings.Compare(a.ID, b.ID))
	})
	return all
}

// place orders the phases as a turn does.
func place(phase string) int {
	switch phase {
	case "user.prompt.submit":
		return 0
	case "tool.pre":
		return 1
	case "approval.request":
		return 2
	case "tool.post":
		return 3
	default:
		return 4
	}
}
