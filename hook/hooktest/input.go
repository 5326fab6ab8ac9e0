package hooktest

import (
	"testing"

	"github.com/belay-run/belay/hook"
)

// Input builds an input of the phase from its JSON form, as it would arrive
// from a file or over a wire. Inputs are immutable and often have no exported
// fields; this is how a test of another package makes one. It belongs to the
// session "test", turn "test-1", step 1; for another scope call
// [hook.Phase.DecodeInput]. The test ends if the JSON does not fit.
func Input[In any, Out hook.Output](t testing.TB, phase hook.Phase[In, Out], json string) In {
	t.Helper()
	in, err := phase.DecodeInput(hook.Scope{Session: "test", Turn: "test-1", Step: 1}, []byte(json))
	if err != nil {
		t.Fatalf("hooktest: %v\ngiven: %s", err, json)
	}
	return in
}
