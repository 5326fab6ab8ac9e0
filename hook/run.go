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
// All states except started are final.
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
// codes. It holds no text of the conversation, so that it can be shared and kept.
type Run struct {
	ID           string     `json:"id"`
	Subscription string     `json:"subscription,omitempty"`
	JobHandler   string     `json:"job_handler,omitempty"` // for the runs of contributed jobs
	Version      string     `json:"version,omitempty"`
	Phase        string     `json:"phase,omitempty"`
	Dispatch     string     `json:"dispatch,omitempty"` // all runs of one dispatch have the same value
	Origin       Origin     `json:"origin"`
	Scope        Scope      `json:"scope"`
	Execution    Execution  `json:"execution"`
	State        State      `json:"state"`
	Shadow       bool       `json:"shadow,omitempty"`
	Visibility   Visibility `json:"visibility"`
	Job          string     `json:"job,omitempty"` // the id of the queued job
	// Attempt is counted from 1. Jobs have it, and hooks whose start is recorded: hooks
	// that leave the process, and FireAndRecord hooks. A hook that runs again because its
	// turn was resumed gets the next number.
	Attempt int `json:"attempt,omitempty"`
	// Key is the idempotency key. All attempts have the same key.
	Key         string       `json:"idempotency_key,omitempty"`
	Started     time.Time    `json:"started"`
	Ended       time.Time    `json:"ended,omitzero"`
	Latency     Latency      `json:"latency,omitempty"`
	Class       codes.Code   `json:"error_class,omitempty"`
	Severity    Severity     `json:"severity,omitempty"` // of the verdict, or of the answer that replaced a failed one
	Contributed []Digest     `json:"contributed,omitempty"`
	Audit       []Audit      `json:"audit,omitempty"`
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	// Position is the place of this record in the journal. Only Follow sets it: see
	// [FollowJournal].
	Position int64 `json:"-"`
}

// Latency is a duration that is readable in JSON, such as "1.5ms".
type Latency time.Duration

// MarshalText writes a Go duration.
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

// String returns a Go duration.
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

// record is the compact form of a Run. A dispatch writes it quickly, because a turn waits.
// Runtime.run adds the other fields when the record is read.
type record struct {
	e        *installed
	scope    *Scope
	dispatch uint64 // all runs of one dispatch have the same value
	seq      uint64
	start    int64
	took     int64
	detail   *detail // nil for a run with an empty answer
	state    State
}

// set fills in the record of a run that completed with an empty answer.
func (r *record) set(e *installed, scope *Scope, dispatch, seq uint64, start, took int64) {
	r.e, r.scope, r.dispatch, r.seq, r.start, r.took, r.state = e, scope, dispatch, seq, start, took, Completed
}

// detail holds the fields of a record that only some runs have: runs with an answer, a
// failure or a job.
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

// note adds a diagnostic. It leaves out phase and subscription, which the record already
// has.
func (d *detail) note(diag Diagnostic) {
	d.diags = append(d.diags, Diagnostic{Code: diag.Code, Level: diag.Level, Message: cut(diag.Message, safeLength)})
}

// run returns the full form of a record.
func (rt *Runtime) run(r *record) Run { return rt.runAfter(r, "") }

// runAfter is run for the record after another one. If both are of the same dispatch, known
// is the Dispatch of that one.
func (rt *Runtime) runAfter(r *record, known string) Run {
	s := r.e.sub
	if known == "" {
		known = rt.prefix + strconv.FormatUint(r.dispatch, 36)
	}
	run := Run{
		ID:           rt.prefix + strconv.FormatUint(r.seq, 36),
		Subscription: s.id,
		Version:      s.opts.Version,
		Phase:        s.phase.name,
		Dispatch:     known,
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
