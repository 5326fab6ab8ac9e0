package auditreport

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/label"
	"github.com/belay-run/belay/internal/recorded"
	"github.com/belay-run/belay/internal/redact"
)

// tally counts by key, in the order of first appearance.
type tally[K comparable, V any] struct {
	by   map[K]*V
	keys []K
}

func (t *tally[K, V]) of(key K) *V {
	if t.by == nil {
		t.by = make(map[K]*V)
	}
	v := t.by[key]
	if v == nil {
		v = new(V)
		t.by[key], t.keys = v, append(t.keys, key)
	}
	return v
}

// sorted returns the keys, with the largest size first.
func (t *tally[K, V]) sorted(size func(*V) float64) []K {
	slices.SortStableFunc(t.keys, func(a, b K) int { return cmp.Compare(size(t.by[b]), size(t.by[a])) })
	return t.keys
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func denials(ctx context.Context, in *input) (*Report, error) {
	type key struct{ by, phase, tool, why string }
	type denied struct {
		count    int
		last     time.Time
		sessions map[string]bool
	}
	var all tally[key, denied]
	add := func(k key, session string, at time.Time) {
		d := all.of(k)
		if d.sessions == nil {
			d.sessions = map[string]bool{}
		}
		d.count, d.last, d.sessions[session] = d.count+1, later(d.last, at), true
	}
	err := in.calls(ctx, func(c *recorded.Call) {
		if by, why, ok := c.Denied(); ok {
			add(key{by, belay.ToolPre.Name(), c.Tool, redact.Text(why)}, c.Session, c.Time) // two reasons that differ in a secret are one
		}
	})
	if err != nil {
		return nil, err
	}
	reasons, err := in.blocked(ctx)
	if err != nil {
		return nil, err
	}
	err = in.runs(ctx, func(r *hook.Run) {
		// What hooks denied at these phases is a denied call in the transcript.
		if r.Phase == belay.ToolPre.Name() || r.Phase == belay.ApprovalRequest.Name() {
			return
		}
		if !r.Shadow && r.Severity >= hook.SeverityDeny {
			add(key{r.Subscription, r.Phase, "", reasons[r.ID]}, r.Scope.Session, r.Started)
		}
	})
	report := &Report{Columns: []Column{{"denied_by", Text}, {"phase", Text}, {"tool", Text}, {"reason", Text}, {"count", Count}, {"sessions", Count}, {"last", Time}}, Empty: "nothing was denied"}
	for _, k := range all.sorted(func(d *denied) float64 { return float64(d.count) }) {
		d := all.by[k]
		report.add(k.by, k.phase, k.tool, k.why, d.count, len(d.sessions), d.last)
	}
	return report, err
}

// hookKey names a hook in reports.
type hookKey struct{ id, phase, class string }

func slowHooks(ctx context.Context, in *input) (*Report, error) {
	var all tally[hookKey, []time.Duration]
	err := in.runs(ctx, func(r *hook.Run) {
		if r.State.Final() && r.State != hook.Skipped {
			took := all.of(hookKey{r.Subscription, r.Phase, ""})
			*took = append(*took, time.Duration(r.Latency))
		}
	})
	sum := func(all *[]time.Duration) (total time.Duration) {
		for _, d := range *all {
			total += d
		}
		return total
	}
	report := &Report{Columns: []Column{{"hook", Text}, {"phase", Text}, {"runs", Count}, {"median", Seconds}, {"p95", Seconds}, {"max", Seconds}, {"total", Seconds}}, Empty: "no hook has run"}
	for _, k := range all.sorted(func(d *[]time.Duration) float64 { return float64(sum(d)) }) {
		d := *all.by[k]
		slices.Sort(d)
		report.add(k.id, k.phase, len(d), rank(d, 50), rank(d, 95), d[len(d)-1], sum(&d))
	}
	return report, err
}

// rank returns the smallest of sorted durations that so many percent of them do not exceed.
func rank(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1]
}

func failingHooks(ctx context.Context, in *input) (*Report, error) {
	type failed struct {
		count int
		last  time.Time
		text  string
	}
	var all tally[hookKey, failed]
	err := in.runs(ctx, func(r *hook.Run) {
		f := all.of(hookKey{r.Subscription, r.Phase, cmp.Or(string(r.Class), r.State.String())})
		if f.count++; !r.Started.Before(f.last) {
			f.last, f.text = r.Started, ""
			for _, d := range r.Diagnostics {
				f.text = d.Message
			}
		}
	}, hook.Failed, hook.TimedOut, hook.Interrupted)
	report := &Report{Columns: []Column{{"hook", Text}, {"phase", Text}, {"error", Text}, {"count", Count}, {"last", Time}, {"message", Text}}, Empty: "no hook has failed"}
	for _, k := range all.sorted(func(f *failed) float64 { return float64(f.count) }) {
		f := all.by[k]
		report.add(k.id, k.phase, k.class, f.count, f.last, f.text)
	}
	return report, err
}

func approvalsByPerson(ctx context.Context, in *input) (*Report, error) {
	wanted, err := in.wanted(ctx)
	if err != nil {
		return nil, err
	}
	type decided struct {
		allowed, denied int
		delays          []time.Duration
		last            time.Time
	}
	var all tally[string, decided]
	for one, err := range in.source.Approvals(ctx, belay.ApprovalFilter{}) {
		if err != nil {
			return nil, err
		}
		if !wanted(one.Session) || one.Asked.Before(in.Since) || one.Decided != nil && recorded.IsGranted(one.Decided) {
			continue
		}
		if one.Decided == nil {
			d := all.of("(undecided)")
			d.last, d.delays = later(d.last, one.Asked), append(d.delays, time.Since(one.Asked))
			continue
		}
		d := all.of(one.Decided.By)
		if one.Decided.Allow {
			d.allowed++
		} else {
			d.denied++
		}
		d.last, d.delays = later(d.last, one.Decided.Time), append(d.delays, max(one.Decided.Time.Sub(one.Asked), 0))
	}
	report := &Report{Columns: []Column{{"by", Text}, {"approvals", Count}, {"allowed", Count}, {"denied", Count}, {"median_delay", Seconds}, {"max_delay", Seconds}, {"last", Time}}, Empty: "there were no approvals"}
	for _, by := range all.sorted(func(d *decided) float64 { return float64(len(d.delays)) }) {
		d := all.by[by]
		slices.Sort(d.delays)
		report.add(by, len(d.delays), d.allowed, d.denied, rank(d.delays, 50), d.delays[len(d.delays)-1], d.last)
	}
	return report, nil
}

func grantsInForce(ctx context.Context, in *input) (*Report, error) {
	always := *in
	always.Since = time.Time{} // old grants are in force too
	sessions, err := always.sessions(ctx)
	report := &Report{Columns: []Column{{"grant", Text}, {"session", Text}, {"allows", Text}, {"asker", Text}, {"by", Text}, {"given", Time}}, Empty: "there are no grants"}
	for _, s := range sessions {
		for _, g := range s.State.Grants {
			report.add(g.Approval, s.ID, cmp.Or(g.Pattern, "all of "+g.Tool), g.Asker, g.By, g.Time)
		}
	}
	return report, err
}

func costs(ctx context.Context, in *input) (*Report, error) {
	by := cmp.Or(in.By, string(belay.ByAgent))
	used, err := in.source.Usage(ctx, in.Labels, in.Since, by)
	report := &Report{Columns: []Column{{by, Text}, {"sessions", Count}, {"turns", Count}, {"tokens_in", Count}, {"tokens_out", Count}, {"cost", Dollars}}, Empty: "nothing was spent"}
	for _, u := range used {
		report.add(cmp.Or(u.Key, "(none)"), u.Sessions, u.Turns, u.Usage.In, u.Usage.Out, u.Usage.Cost)
	}
	return report, err
}

func toolsUsed(ctx context.Context, in *input) (*Report, error) {
	type used struct {
		calls, failed, denied int
		sessions              map[string]bool
		last                  time.Time
	}
	var all tally[string, used]
	err := in.calls(ctx, func(c *recorded.Call) {
		u := all.of(c.Tool)
		if u.sessions == nil {
			u.sessions = map[string]bool{}
		}
		u.sessions[c.Session], u.last = true, later(u.last, c.Time)
		u.calls++
		switch {
		case c.Result != nil && c.Result.Class == belay.ClassDenied:
			u.denied++
		case c.Result != nil && c.Result.IsError:
			u.failed++
		}
	})
	report := &Report{Columns: []Column{{"tool", Text}, {"calls", Count}, {"failed", Count}, {"denied", Count}, {"sessions", Count}, {"last", Time}}, Empty: "no tool was called"}
	for _, tool := range all.sorted(func(u *used) float64 { return float64(u.calls) }) {
		u := all.by[tool]
		report.add(tool, u.calls, u.failed, u.denied, len(u.sessions), u.last)
	}
	return report, err
}

func touched(ctx context.Context, in *input) (*Report, error) {
	type key struct{ kind, what, tool string }
	type touch struct {
		calls int
		in    map[string]bool
		last  time.Time
	}
	var all tally[key, touch]
	err := in.calls(ctx, func(c *recorded.Call) {
		if !c.Ran() {
			return
		}
		kind, what := subject(c.Final)
		if kind == "" {
			return
		}
		t := all.of(key{kind, redact.Text(what), c.Tool}) // two commands that differ in a secret are one
		if t.in == nil {
			t.in = map[string]bool{}
		}
		t.in[c.Session] = true
		t.calls, t.last = t.calls+1, later(t.last, c.Time)
	})
	report := &Report{Columns: []Column{{"kind", Text}, {"what", Text}, {"tool", Text}, {"calls", Count}, {"sessions", Count}, {"last", Time}}, Empty: "no call has named a file, a host or a command"}
	keys := all.sorted(func(t *touch) float64 { return float64(t.calls) })
	slices.SortStableFunc(keys, func(a, b key) int { return cmp.Compare(a.kind, b.kind) })
	for _, k := range keys {
		t := all.by[k]
		report.add(k.kind, k.what, k.tool, t.calls, len(t.in), t.last)
	}
	return report, err
}

// subject returns the file, the host or the command that the input of a call names.
func subject(input json.RawMessage) (kind, what string) {
	fields, ok := label.Fields(input)
	if !ok {
		return "", ""
	}
	for _, known := range []struct{ kind, key string }{{"command", "command"}, {"host", "url"}, {"file", "path"}, {"file", "file_path"}} {
		for _, f := range fields {
			if f.Key != known.key || !f.Text || f.Value == "" {
				continue
			}
			if known.kind == "host" {
				return known.kind, hostOf(f.Value)
			}
			return known.kind, f.Value
		}
	}
	return "", ""
}

// hostOf returns the host of a URL, which may lack its scheme or be invalid. It leaves out what is
// before the last @, because that may be a password.
func hostOf(text string) string {
	full := text
	if !strings.Contains(text, "://") {
		full = "//" + strings.TrimPrefix(text, "//")
	}
	if at, err := url.Parse(full); err == nil && at.Host != "" {
		return at.Host
	}
	host := full[strings.Index(full, "//")+2:]
	host = host[strings.LastIndexByte(host, '@')+1:]
	if end := strings.IndexAny(host, "/?#"); end > 0 {
		host = host[:end]
	}
	return host
}
