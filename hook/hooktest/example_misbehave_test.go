package hooktest_test

import (
	"fmt"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
)

// The example calls a gate with one handler for each kind of failure that the kit knows.
func ExampleMisbehaviours() {
	var t printer // in a test: the *testing.T

	for _, m := range hooktest.Misbehaviours(upload, deny("no")) {
		if m.Deadline {
			continue // see the example of Clock
		}
		sub := upload.On("bad", m.Handler, &hook.Options{Capabilities: m.Capabilities, Concurrent: true})
		trial := hooktest.Try(t, upload, sub, file{name: "a"}, &hooktest.Options{Ready: m.Bind})
		trial.State(m.State())
		trial.Code(m.Code)
		fmt.Printf("%s: %s\n", m.Name, trial.Output.Severity)
	}
	// Output:
	// returns an error: deny
	// returns context.Canceled without a cancellation: deny
	// returns an error with its own code: deny
	// answers and fails: deny
	// panics: deny
	// panics with an error: deny
	// panics with nil: deny
	// calls runtime.Goexit: deny
	// installs, closes and dispatches again: pass
	// answers beyond its capabilities: deny
}

// One misbehaviour alone: the handler panics, and the gate denies.
func ExamplePanics() {
	var t printer // in a test: the *testing.T

	sub := upload.On("bad", hooktest.Panics[file, verdict]("oh no"), nil)
	trial := hooktest.Try(t, upload, sub, file{name: "a"}, nil)
	trial.Code(codes.Panic)
	fmt.Println(trial.Output.Reason)
	// Output:
	// bad could not decide (hook.panic)
}
