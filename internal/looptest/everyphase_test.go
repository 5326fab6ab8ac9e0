package looptest_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// anyOutcome is a hook.Outcome without type parameters.
type anyOutcome struct {
	in, out     any
	by          string
	rewriters   []string
	diagnostics []hook.Diagnostic
}

// phaseCase is a phase without type parameters, for tests of every phase.
type phaseCase struct {
	hook.AnyPhase
	decode   func(scope hook.Scope, data []byte) (any, error)
	on       func(id string, handle func(ctx context.Context, in any) (any, error), opts *hook.Options) hook.Subscription
	dispatch func(ctx context.Context, s *hook.Snapshot, in any) (anyOutcome, error)
	// misbehave tests the phase with every misbehaviour that hooktest knows.
	misbehave func(t *testing.T, in any, answer any)
}

func caseOf[In any, Out hook.Output](p hook.Phase[In, Out]) phaseCase {
	return phaseCase{
		AnyPhase: p,
		decode:   func(scope hook.Scope, data []byte) (any, error) { return p.DecodeInput(scope, data) },
		on: func(id string, handle func(context.Context, any) (any, error), opts *hook.Options) hook.Subscription {
			return p.On(id, func(ctx context.Context, in In) (Out, error) {
				answer, err := handle(ctx, in)
				out, _ := answer.(Out) // a nil answer becomes the zero output
				return out, err
			}, opts)
		},
		dispatch: func(ctx context.Context, s *hook.Snapshot, in any) (anyOutcome, error) {
			o, err := p.Dispatch(ctx, s, in.(In))
			return anyOutcome{o.Input, o.Output, o.By, o.Rewriters, o.Diagnostics}, err
		},
		misbehave: func(t *testing.T, in, answer any) {
			t.Helper()
			misbehaveAt(t, p, in.(In), answer.(Out))
		},
	}
}

// everyPhase lists all phases with their Go types. The list of belay.Phases has no types.
func everyPhase() []phaseCase {
	return []phaseCase{
		caseOf(belay.SessionStart),
		caseOf(belay.UserPromptSubmit),
		caseOf(belay.TurnPrePolicy),
		caseOf(belay.TurnPrePromptContext),
		caseOf(belay.TurnPostPreflightPromptContext),
		caseOf(belay.TurnPreToolMaterialization),
		caseOf(belay.TurnPrePromptCompile),
		caseOf(belay.TurnPostPromptCompile),
		caseOf(belay.ModelPre),
		caseOf(belay.ModelPost),
		caseOf(belay.ToolPre),
		caseOf(belay.ApprovalRequest),
		caseOf(belay.ApprovalDecided),
		caseOf(belay.ToolPost),
		caseOf(belay.ToolDenied),
		caseOf(belay.SubagentStart),
		caseOf(belay.SubagentStop),
		caseOf(belay.TurnStop),
		caseOf(belay.TurnPreCompaction),
		caseOf(belay.TurnPostCompaction),
		caseOf(belay.TurnPostTurn),
		caseOf(belay.Error),
		caseOf(belay.SessionEnd),
	}
}

// testScope is the scope of the inputs in tests.
var testScope = hook.Scope{Session: "s", Turn: "t", Step: 1, Agent: "main"}

// inputOf decodes an input of a phase.
func inputOf[In any, Out hook.Output](t testing.TB, p hook.Phase[In, Out], data string) In {
	t.Helper()
	in, err := p.DecodeInput(testScope, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// snapshotOf installs subscriptions in a runtime with all phases and takes a snapshot. The
// snapshot is released when the test ends.
func snapshotOf(t testing.TB, opts *hook.RuntimeOptions, subs ...hook.Subscription) *hook.Snapshot {
	t.Helper()
	rt, err := hook.NewRuntime(belay.Phases(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Install(subs...); err != nil {
		t.Fatal(err)
	}
	snapshot := rt.Snapshot()
	t.Cleanup(func() {
		if err := snapshot.Release(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return snapshot
}

// dispatch installs subscriptions and dispatches one input to them.
func dispatch[In any, Out hook.Output](t testing.TB, p hook.Phase[In, Out], in In, subs ...hook.Subscription) hook.Outcome[In, Out] {
	t.Helper()
	outcome, err := p.Dispatch(context.Background(), snapshotOf(t, nil, subs...), in)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// answering returns a handler that always gives the same answer.
func answering[In any, Out hook.Output](_ hook.Phase[In, Out], out Out) hook.Handler[In, Out] {
	return func(context.Context, In) (Out, error) { return out, nil }
}

// withNote returns an answer at the phase that has only a note.
func withNote(p hook.AnyPhase, note belay.Note) any {
	_, out := p.Types()
	answer := reflect.New(out).Elem()
	if out == reflect.TypeFor[belay.Note]() {
		answer.Set(reflect.ValueOf(note))
	} else {
		answer.FieldByName("Note").Set(reflect.ValueOf(note))
	}
	return answer.Interface()
}

// codesOf lists the codes of diagnostics, in order.
func codesOf(diagnostics []hook.Diagnostic) []codes.Code {
	var codes []codes.Code
	for _, d := range diagnostics {
		codes = append(codes, d.Code)
	}
	return codes
}
