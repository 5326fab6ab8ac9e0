package hooktest

import (
	"testing"

	"github.com/belay-run/belay/hook"
)

// Input makes an input of the phase from its JSON form. Inputs are immutable and often have
// no exported fields, so tests in other packages need this function. The input has the
// session "test", turn "test-1" and step 1. For another scope, call
// [hook.Phase.DecodeInput]. The test fails if the JSON cannot be decoded.
func Input[In any, Out hook.Output](t testing.TB, phase hook.Phase[In, Out], json string) In {
	t.Helper()
	in, err := phase.DecodeInput(hook.Scope{Session: "test", Turn: "test-1", Step: 1}, []byte(json))
	if err != nil {
		t.Fatalf("hooktest: %v\ngiven: %s", err, json)
	}
	return in
}
