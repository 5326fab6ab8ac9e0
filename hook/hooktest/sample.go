package hooktest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// epoch is the start time of the suites' runs. It has whole seconds, so that rounding does
// not move a run across the limit of a filter.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sampleRun returns a run with the given id and state. The run started n seconds after the
// epoch.
func sampleRun(id string, state hook.State, n int) hook.Run {
	run := hook.Run{
		ID: id, Subscription: "sample", Phase: "test.phase", State: state,
		Scope:   hook.Scope{Session: "session", Turn: "turn", Step: 1},
		Started: epoch.Add(time.Duration(n) * time.Second),
	}
	if state.Final() {
		run.Latency = hook.Latency(3 * time.Millisecond)
		run.Ended = run.Started.Add(3 * time.Millisecond)
	}
	return run
}

// finalStates are the states in which a run can end.
var finalStates = []hook.State{hook.Completed, hook.Skipped, hook.Failed, hook.TimedOut, hook.Backgrounded, hook.Interrupted}

// foreign is text that an encoding can damage. It has several scripts, characters of one to
// four bytes, combining marks, both writing directions, several kinds of quotes, and line
// ends. It has no NUL, because PostgreSQL cannot store NUL.
const foreign = "naïve Ελληνικά 日本語 العربية e\u0301 👩\u200d🚀 \"quoted\" 'single' \\back ` %s $1 ?1 \t tab\r\nline\u2028 end"

// fullRun returns a run in which every field is set, each to a different value.
func fullRun() hook.Run {
	started := epoch.Add(123456 * time.Microsecond)
	return hook.Run{
		ID: "full-1", Subscription: "full.subscription", JobHandler: "full.job", Version: "v1.2.3", Phase: "full.phase", Dispatch: "full-0",
		Origin:    hook.Origin{Kind: hook.OriginSpace, Name: "demo", File: "hooks/a.yaml", Line: 4},
		Scope:     hook.Scope{Session: "full session", Turn: "full turn", Step: 7, Agent: "full agent"},
		Execution: hook.Background, State: hook.Failed, Shadow: true, Visibility: hook.VisibleToUser,
		Job: "job-1", Attempt: 3, Key: "key:1", Started: started, Ended: started.Add(1500 * time.Microsecond),
		Latency: hook.Latency(1500 * time.Microsecond), Class: codes.Timeout, Severity: hook.SeverityDeny,
		Contributed: []hook.Digest{
			{Kind: "deny", Hash: "sha256:" + strings.Repeat("0f", 32), Size: 17},
			{Kind: "context", Hash: "sha256:" + strings.Repeat("a1", 32), Size: 1 << 20},
		},
		Audit: []hook.Audit{{Code: "note.one", Message: "first"}, {Code: "note.two", Message: "second"}},
		Diagnostics: []hook.Diagnostic{
			{Code: codes.Timeout, Level: codes.LevelWarn, Phase: "p", Subscription: "s", Message: "no answer within 1s"},
			{Code: codes.PolicyConflict, Level: codes.LevelError, Phase: "q", Subscription: "u", Message: "earlier stands"},
		},
	}
}

// fullJob returns a job that is due at the given time, with every field set except Attempt.
func fullJob(at time.Time) hook.Job {
	return hook.Job{
		Handler: "full.job", Reference: "transcript:7/3", Key: "key:full/1", At: at, ID: "full-1.1",
		Subscription: "full.subscription", Phase: "full.phase", Version: "v1.2.3", Run: "full-1",
		Scope:      hook.Scope{Session: foreign, Turn: "full turn", Step: 7, Agent: "full agent"},
		Idempotent: true,
		Retry:      hook.Retry{Attempts: 5, Delay: 2 * time.Second, Exponential: true, Cap: time.Minute, Jitter: 0.25},
		Attempt:    0, // Claim increments it
	}
}

// rounding is how far a stored time may differ from the original: SQL databases keep
// microseconds.
const rounding = time.Microsecond

// differentRun returns how a run that was read differs from the stored one, or "". Times
// and latencies may be rounded, and times may have another zone. The Err of a diagnostic is
// never stored.
func differentRun(want, got hook.Run) string {
	snap(&got.Started, want.Started)
	snap(&got.Ended, want.Ended)
	if d := time.Duration(got.Latency - want.Latency); d.Abs() <= rounding {
		got.Latency = want.Latency
	}
	return different(want, got)
}

// differentJob returns how a claimed job differs from the queued one, or "".
func differentJob(want, got hook.Job) string {
	snap(&got.At, want.At)
	return different(want, got)
}

// snap replaces got by want if the two times are equal except for rounding and zone.
func snap(got *time.Time, want time.Time) {
	if got.IsZero() == want.IsZero() && got.Sub(want).Abs() <= rounding {
		*got = want
	}
}

// different compares the JSON forms. They contain every stored field, and have no
// difference between nil and empty lists.
func different(want, got any) string {
	a, b := indented(want), indented(got)
	if a == b {
		return ""
	}
	return lineDiff(a, b)
}

func indented(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Sprintf("cannot be encoded: %v\n", err)
	}
	return string(text) + "\n"
}
