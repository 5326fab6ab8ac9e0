package looptest_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// keptJobs is a queue that keeps its jobs.
type keptJobs struct{ jobs []hook.Job }

func (q *keptJobs) Enqueue(_ context.Context, _ hook.Run, jobs []hook.Job) error {
	q.jobs = append(q.jobs, jobs...)
	return nil
}

// referenceOf returns the reference that a background job uses for an input of the phase.
func referenceOf(t testing.TB, p phaseCase, scope hook.Scope, input string) string {
	t.Helper()
	in, err := p.decode(scope, []byte(input))
	if err != nil {
		t.Fatal(err)
	}
	queue := new(keptJobs)
	snapshot := snapshotOf(t, &hook.RuntimeOptions{Queue: queue},
		p.on("later", func(context.Context, any) (any, error) { return nil, nil }, &hook.Options{Execution: hook.Background}))
	outcome, err := p.dispatch(context.Background(), snapshot, in)
	if err != nil || len(queue.jobs) != 1 {
		t.Fatalf("%s: no job was queued for %+v %s: %v %v", p.Name(), scope, input, err, outcome.diagnostics)
	}
	return queue.jobs[0].Reference
}

var plainReference = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,256}$`)

// A job refers to its input by a reference. The reference has only characters that every
// store accepts, whatever the name of the session.
//
// SPEC H-09, J-09
func TestReferencesArePlain(t *testing.T) {
	t.Parallel()
	odd := []string{
		"", "plain", "with space", "a/b", "../..", "naïve 日本語", "line\nbreak", strings.Repeat("x", 64), strings.Repeat("x", 65),
		strings.Repeat("y", 5_000), "\x00", "\xff\xfe", "h:abc", "-", ":",
	}
	for _, p := range everyPhase() {
		if p.Info().Kind == hook.Gate {
			continue // gates have no background handlers
		}
		seen := map[string]hook.Scope{}
		for _, session := range odd {
			for _, turn := range []string{"1", strings.Repeat("z", 300), "u v"} {
				scope := hook.Scope{Session: session, Turn: turn, Step: 1 << 40}
				reference := referenceOf(t, p, scope, "{}")
				if !plainReference.MatchString(reference) {
					t.Errorf("%s: the reference %q is not 1-256 plain characters", p.Name(), reference)
				}
				if other, taken := seen[reference]; taken {
					t.Errorf("%s: %q and %q share the reference %s", p.Name(), other, scope, reference)
				}
				seen[reference] = scope
				if again := referenceOf(t, p, scope, "{}"); again != reference {
					t.Errorf("%s: one input has the references %s and %s", p.Name(), reference, again)
				}
			}
		}
	}
}

// If a phase fires several times in a step, the inputs have different references.
// Otherwise the queue would take their jobs for the same job and run only one.
//
// SPEC H-09
func TestReferencesWithinAStepDiffer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule          string
		phase         phaseCase
		first, second string
	}{
		{"two calls", caseOf(belay.ToolPost), `{"id": "call-1"}`, `{"id": "call-2"}`},
		{"two refused calls", caseOf(belay.ToolDenied), `{"id": "call-1"}`, `{"id": "call-2"}`},
		{"calls with odd ids", caseOf(belay.ToolDenied), `{"id": "call 1"}`, `{"id": "call/1"}`},
		{"two decisions", caseOf(belay.ApprovalDecided), `{"id": "a"}`, `{"id": "b"}`},
		{"two child runs", caseOf(belay.SubagentStop), `{"run": "a"}`, `{"run": "b"}`},
		{"two attempts of one request", caseOf(belay.ModelPre), `{"attempt": 1}`, `{"attempt": 2}`},
		{"two compactions", caseOf(belay.TurnPreCompaction), `{"trigger": "window", "tokens": 9}`, `{"trigger": "too_long", "tokens": 9}`},
		{"two compactions of one sort", caseOf(belay.TurnPreCompaction), `{"trigger": "forced", "tokens": 9}`, `{"trigger": "forced", "tokens": 8}`},
		{"two compactions that are over", caseOf(belay.TurnPostCompaction), `{"trigger": "forced", "before": 9}`, `{"trigger": "forced", "before": 8}`},
		{"a session opened and resumed", caseOf(belay.SessionStart), `{"source": "new"}`, `{"source": "resumed"}`},
		{"a session resumed twice", caseOf(belay.SessionStart), `{"source": "resumed", "messages": 4}`, `{"source": "resumed", "messages": 9}`},
		{"a session closed twice", caseOf(belay.SessionEnd), `{"turns": 1}`, `{"turns": 2}`},
	} {
		first, second := referenceOf(t, test.phase, testScope, test.first), referenceOf(t, test.phase, testScope, test.second)
		if first == second {
			t.Errorf("%s: %s: both are %s", test.phase.Name(), test.rule, first)
		}
	}
}

// A session name cannot make its jobs look like those of another session.
//
// SPEC H-09
func TestReferencesCannotBeForged(t *testing.T) {
	t.Parallel()
	const session = "somebody else's session"
	sum := sha256.Sum256([]byte(session))
	theirs := referenceOf(t, caseOf(belay.TurnPostTurn), hook.Scope{Session: session, Turn: "1"}, "{}")
	digits := hex.EncodeToString(sum[:])
	for n := range len(digits) + 1 {
		forged := "h:" + digits[:n]
		if mine := referenceOf(t, caseOf(belay.TurnPostTurn), hook.Scope{Session: forged, Turn: "1"}, "{}"); mine == theirs {
			t.Errorf("the session %q has the reference of %q: %s", forged, session, mine)
		}
	}
}

// SPEC H-09
func TestReferencesAreDistinct(t *testing.T) {
	t.Parallel()
	name := rapid.OneOf(
		rapid.StringOfN(rapid.SampledFrom([]rune("ab/:. -h0")), 0, 4, -1),
		rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 63, 66, -1),
		rapid.String(),
	)
	p := caseOf(belay.ToolDenied)
	rapid.Check(t, func(r *rapid.T) {
		type at struct {
			scope hook.Scope
			call  string
		}
		draw := func(which string) at {
			return at{hook.Scope{
				Session: name.Draw(r, which+" session"), Turn: name.Draw(r, which+" turn"), Step: rapid.IntRange(0, 2).Draw(r, which+" step"),
			}, strings.ToValidUTF8(name.Draw(r, which+" call"), "")}
		}
		reference := func(a at) string {
			return referenceOf(t, p, a.scope, string(encode(t, map[string]any{"id": a.call})))
		}
		a, b := draw("first"), draw("second")
		if first, second := reference(a), reference(b); (first == second) != (a == b) {
			r.Errorf("%+v is %s and %+v is %s", a, first, b, second)
		}
	})
}
