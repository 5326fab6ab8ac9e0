package hooktest

import (
	"testing"

	"github.com/belay-run/belay/hook"
)

// Input makes an input of the phase from its JSON form. Inputs are immutable and often have
// no exported fields, so this is how a test of another package makes one. It has the
// session "test", turn "test-1", step 1; for another scope call [hook.Phase.DecodeInput].
// The test fails if the JSON does not match the input.
func Input[In any, Out hook.Output](t testing.TB, phase hook.Phase[In, Out], json string) In {
	t.Helper()
	in, err := phase.DecodeInput(hook.Scope{Session: "test", Turn: "test-1", Step: 1}, []byte(json))
	if err != nil {
		t.Fatalf("hooktest: %v\ngiven: %s", err, json)
	}
	return in
}
