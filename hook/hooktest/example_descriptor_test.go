package hooktest_test

import (
	"fmt"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
)

// Descriptor compares a handler's contract with a golden file. To accept a change, run the
// test with HOOKTEST_UPDATE=1.
func ExampleDescriptor() {
	var t printer // in a test: the *testing.T

	hooktest.Descriptor(t, "testdata/example.json", noSecrets)

	for _, d := range hook.Describe(noSecrets) {
		fmt.Println(d.ID, d.Kind, d.Version, d.Phases, d.Capabilities)
	}
	// Output:
	// no-secrets go 1 [upload] block,ask,audit,jobs
}
