package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/belay-run/belay/hook/codes"
)

// Severity orders verdicts. The most severe verdict of a gate wins.
type Severity uint8

// The severities, from none to most severe. A gate with other verdicts maps them to these:
// "continue" at turn.stop is as severe as a denial, because it prevents the end of the
// turn.
const (
	SeverityPass Severity = iota
	SeverityAsk
	SeverityDeny
	SeverityHalt
)

var severityNames = map[Severity]string{
	SeverityPass: "pass", SeverityAsk: "ask", SeverityDeny: "deny", SeverityHalt: "halt",
}

// String returns pass, ask, deny or halt.
func (s Severity) String() string { return enumName("severity", severityNames, s) }

// MarshalText writes the wire name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the wire name.
func (s *Severity) UnmarshalText(text []byte) error {
	return enumParse("severity", severityNames, s, text)
}

// stops reports whether the verdict keeps later handlers in plan order from starting.
func (s Severity) stops() bool { return s >= SeverityDeny }

// Answer describes an [Output] to the runtime: its verdict and contributions. A nil or
// empty Answer means "no opinion".
type Answer struct {
	// Severity is the severity of a gate's verdict.
	Severity Severity
	// Parts are the contributions. Each part needs its capability. The record keeps the
	// kind, size and hash of each part.
	Parts []Part
	// Audit notes are stored in the record. They must be safe to store: see [Audit].
	Audit []Audit
	// Jobs are scheduled together with the run's record.
	Jobs []Job
	// Invalid says why the output is invalid. The run then fails with hook.output_invalid.
	// The text must not quote the conversation.
	Invalid string
}

// Part is one contribution of an answer.
type Part struct {
	// Kind is a stable word: deny, context, section, input, ...
	Kind string
	// Needs is the required capability.
	Needs Capability
	// Content is the text whose hash and size are recorded.
	Content string
}

func (a *Answer) empty() bool {
	return a == nil || a.Invalid == "" && a.Severity == SeverityPass && len(a.Parts) == 0 && len(a.Audit) == 0 && len(a.Jobs) == 0
}

// uses returns every capability that the answer needs.
func (a *Answer) uses() Capability {
	var set Capability
	if a == nil {
		return set
	}
	for i := range a.Parts {
		set |= a.Parts[i].Needs
	}
	if len(a.Audit) > 0 {
		set |= CanAudit
	}
	if len(a.Jobs) > 0 {
		set |= CanSchedule
	}
	// A verdict is a contribution even if the output does not list it.
	if a.Severity >= SeverityDeny && set&(CanBlock|CanApprove) == 0 {
		set |= CanBlock
	}
	if a.Severity == SeverityAsk && set&(CanAsk|CanApprove) == 0 {
		set |= CanAsk
	}
	return set
}

// Audit is a note for the record: a stable code, and a message, stored up to 512
// characters. The handler guarantees that the message does not quote prompts, tool inputs,
// outputs or the environment.
type Audit struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
}

// Digest describes a contribution in a record.
type Digest struct {
	Kind string `json:"kind"`
	Hash string `json:"hash"` // sha256:…
	Size int    `json:"size"`
}

func digest(parts []Part) []Digest {
	if len(parts) == 0 {
		return nil
	}
	digests := make([]Digest, len(parts))
	for i, p := range parts {
		sum := sha256.Sum256([]byte(p.Content))
		digests[i] = Digest{Kind: p.Kind, Hash: "sha256:" + hex.EncodeToString(sum[:]), Size: len(p.Content)}
	}
	return digests
}

// Merging is the argument of a phase's merge rule.
type Merging struct {
	// From is the subscription whose answer is being merged.
	From string
	// Wins reports that the answer's verdict is more severe than the verdict of every
	// earlier answer in plan order.
	Wins bool
	// Limits are the runtime's settings.
	Limits Limits

	phase       string
	diagnostics []Diagnostic
}

// Diagnose adds a diagnostic about the answer that is being merged. The message must not
// quote values.
func (m *Merging) Diagnose(code codes.Code, message string) {
	m.diagnostics = append(m.diagnostics, Diagnostic{
		Code: code, Level: code.Level(), Phase: m.phase, Subscription: m.From, Message: message,
	})
}

// Limits limit what merged contributions may add to a prompt. Characters are code points. A
// zero field means the field's default.
type Limits struct {
	ContextEntries    int // prompt context entries. Defaults to 16.
	ContextCharacters int // characters of prompt context in all. Defaults to 12,000.
	Sections          int // prompt sections. Defaults to 16.
	SectionCharacters int // characters of one section. Defaults to 8,000.
	PromptCharacters  int // characters of all sections together. Defaults to 16,000.
}

func (l Limits) defaults() Limits {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&l.ContextEntries, 16)
	set(&l.ContextCharacters, 12_000)
	set(&l.Sections, 16)
	set(&l.SectionCharacters, 8_000)
	set(&l.PromptCharacters, 16_000)
	return l
}

// Scope says where in a conversation something happens.
type Scope struct {
	Session string `json:"session,omitempty"`
	Turn    string `json:"turn,omitempty"`
	Step    int    `json:"step,omitempty"`
	Agent   string `json:"agent,omitempty"`
}

var noScope = new(Scope)

// String returns session/turn/step.
func (s Scope) String() string {
	return s.Session + "/" + s.Turn + "/" + strconv.Itoa(s.Step)
}

// Retry says when failed background work is retried. Only idempotent subscriptions and job
// handlers may have a Retry.
type Retry struct {
	// Attempts is the maximum number of runs, including the first. If all fields are zero,
	// there is no retry. Otherwise Attempts must be at least 1.
	Attempts int `json:"attempts,omitempty"`
	// Delay is the pause before the second attempt. Defaults to 1 s.
	Delay time.Duration `json:"delay,omitempty"`
	// Exponential doubles the pause after each attempt.
	Exponential bool `json:"exponential,omitempty"`
	// Cap limits the pause. Defaults to 5 minutes.
	Cap time.Duration `json:"cap,omitempty"`
	// Jitter is a fraction from 0 to 1. The pause is shortened by a random part of itself,
	// at most by this fraction.
	Jitter float64 `json:"jitter,omitempty"`
}

// Pause returns how long to wait after an attempt, counted from 1. random is in [0, 1).
func (r Retry) Pause(attempt int, random float64) time.Duration {
	pause, bound := r.Delay, r.Cap
	if pause == 0 {
		pause = time.Second
	}
	if bound == 0 {
		bound = 5 * time.Minute
	}
	for i := 1; r.Exponential && i < attempt && pause < bound; i++ {
		pause *= 2
	}
	pause = min(pause, bound)
	return pause - time.Duration(float64(pause)*r.Jitter*random)
}

// answerOf returns the answer of an output, or an empty answer if the output has none.
func answerOf(out Output) *Answer {
	if out != nil {
		if ans := out.Answer(); ans != nil {
			return ans
		}
	}
	return emptyAnswer
}

// emptyAnswer is shared: do not write to it.
var emptyAnswer = new(Answer)
