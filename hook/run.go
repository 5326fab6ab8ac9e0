package hook

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay/hook/codes"
)

// State is the state of a run.
//
//	started ──▶ completed | failed | timed_out | skipped | interrupted
//	skipped        its handler was not called
//	backgrounded   its work waits in the queue; each attempt has a run of its own
//
// All but started are final.
type State uint8

// The states.
const (
	Started State = iota + 1
	Completed
	Skipped
	Failed
	TimedOut
	Backgrounded
	Interrupted
)

var stateNames = map[State]string{
	Started: "started", Completed: "completed", Skipped: "skipped", Failed: "failed",
	TimedOut: "timed_out", Backgrounded: "backgrounded", Interrupted: "interrupted",
}

// String returns the wire name.
func (s State) String() string { return enumName("state", stateNames, s) }

// MarshalText writes the wire name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the wire name.
func (s *State) UnmarshalText(text []byte) error { return enumParse("state", stateNames, s, text) }

// Final reports whether a run in this state is over.
func (s State) Final() bool { return s > Started && s <= Interrupted }

// Run is the record of one execution of a handler. It holds references, hashes, sizes and
// codes, and no text of the conversation, so that it can be shared and kept.
type Run struct {
	ID           string     `json:"id"`
	Subscription string     `json:"subscription,omitempty"`
	JobHandler   string     `json:"job_handler,omitempty"` // for the runs of contributed jobs
	Version      string     `json:"version,omitempty"`
	Phase        string     `json:"phase,omitempty"`
	Dispatch     string     `json:"dispatch,omitempty"` // the same for all runs of one dispatch
	Origin       Origin     `json:"origin"`
	Scope        Scope      `json:"scope"`
	Execution    Execution  `json:"execution"`
	State        State      `json:"state"`
	Shadow       bool       `json:"shadow,omitempty"`
	Visibility   Visibility `json:"visibility"`
	Job          string     `json:"job,omitempty"` // the job it was queued as
	// Attempt is counted from 1, for jobs and for hooks whose start is recorded: those that
	// leave the process or that nothing waits for. A hook that runs again because its turn
	// was resumed gets the next number.
	Attempt int `json:"attempt,omitempty"`
	// Key is the same for all attempts.
	Key         string       `json:"idempotency_key,omitempty"`
	Started     time.Time    `json:"started"`
	Ended       time.Time    `json:"ended,omitzero"`
	Latency     Latency      `json:"latency,omitempty"`
	Class       codes.Code   `json:"error_class,omitempty"`
	Severity    Severity     `json:"severity,omitempty"` // of its verdict, or of the answer for its failure
	Contributed []Digest     `json:"contributed,omitempty"`
	Audit       []Audit      `json:"audit,omitempty"`
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
}

// Latency is a duration that is readable in JSON: "1.5ms".
type Latency time.Duration

// MarshalText writes it as a Go duration.
func (l Latency) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads a Go duration.
func (l *Latency) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	*l = Latency(d)
	return nil
}

// String renders it as a Go duration.
func (l Latency) String() string { return time.Duration(l).String() }

// String returns one line of a timeline.
func (r Run) String() string {
	who := r.Subscription
	if who == "" {
		who = r.JobHandler
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s %-24s %-24s %9s", r.State, r.Phase, who, r.Latency)
	if r.Shadow {
		b.WriteString(" shadow")
	}
	for _, d := range r.Contributed {
		b.WriteString(" +" + d.Kind)
	}
	if r.Class != "" {
		b.WriteString(" " + string(r.Class))
	}
	return b.String()
}

// record is the compact form of a Run, written while a turn waits. The rest is added when
// it is read.
type record struct {
	e        *installed
	scope    *Scope
	dispatch uint64 // the same for all runs of one dispatch
	seq      uint64
	start    int64
	took     int64
	detail   *detail // nil for a run with an empty answer
	state    State
}

// set makes it the record of a run that completed with an empty answer.
func (r *record) set(e *installed, scope *Scope, dispatch, seq uint64, start, took int64) {
	r.e, r.scope, r.dispatch, r.seq, r.start, r.took, r.state = e, scope, dispatch, seq, start, took, Completed
}

// detail is what a run with an answer or a failure adds.
type detail struct {
	class    codes.Code
	severity Severity
	parts    []Digest
	audit    []Audit
	diags    []Diagnostic
	job      string
	key      string
	attempt  int
}

// note adds a diagnostic. The record already has the subscription.
func (d *detail) note(diag Diagnostic) {
	d.diags = append(d.diags, Diagnostic{Code: diag.Code, Level: diag.Level, Message: cut(diag.Message, safeLength)})
}

// run returns the full form of a record.
func (rt *Runtime) run(r *record) Run {
	s := r.e.sub
	run := Run{
		ID:           rt.prefix + strconv.FormatUint(r.seq, 36),
		Subscription: s.id,
		Version:      s.opts.Version,
		Phase:        s.phase.name,
		Dispatch:     rt.prefix + strconv.FormatUint(r.dispatch, 36),
		Origin:       s.opts.Origin,
		Scope:        *r.scope,
		Execution:    s.opts.Execution,
		State:        r.state,
		Shadow:       s.opts.Shadow,
		Visibility:   s.opts.Visibility,
		Started:      rt.wall(r.start),
	}
	if r.state.Final() {
		run.Ended = rt.wall(r.start + r.took)
		run.Latency = Latency(r.took)
	}
	if d := r.detail; d != nil {
		run.Class, run.Severity, run.Contributed, run.Audit, run.Diagnostics = d.class, d.severity, d.parts, d.audit, d.diags
		run.Job, run.Key, run.Attempt = d.job, d.key, d.attempt
	}
	return run
}
