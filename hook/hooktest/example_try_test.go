package hooktest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
)

// printer replaces the *testing.T of a real test: it prints what would fail.
type printer struct{ testing.TB }

func (printer) Helper() {}

func (printer) Errorf(format string, args ...any) {
	message, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n") // the first line is enough here
	fmt.Println("FAIL:", message)
}

// Try a subscription with an input, and check the result.
func ExampleTry() {
	var t printer // in a test: the *testing.T

	// docs:begin try
	trial := hooktest.Try(t, upload, noSecrets, file{name: ".env"}, nil)
	trial.Denied("looks like a secret")
	trial.Contributed("deny")
	trial.State(hook.Completed)
	// docs:end try

	fmt.Println(trial.Output.Reason)
	fmt.Println(trial.Explanation.Won, "won")

	hooktest.Try(t, upload, noSecrets, file{name: "README.md"}, nil).Denied("")
	// Output:
	// .env looks like a secret
	// no-secrets won
	// FAIL: no-secrets at upload: want deny, got pass, without a text
}

// Options say which other subscriptions are installed, and set up the runtime.
func ExampleTry_options() {
	var t printer // in a test: the *testing.T

	askFirst := upload.On("ask-first", func(context.Context, file) (verdict, error) {
		return verdict{Severity: hook.SeverityAsk, Reason: "may I?"}, nil
	}, &hook.Options{After: []string{"no-secrets"}})

	trial := hooktest.Try(t, upload, askFirst, file{name: ".env"}, &hooktest.Options{
		Others: []hook.Subscription{noSecrets},
	})
	trial.NotAsked()
	for _, entry := range trial.Plan.Entries {
		fmt.Println(entry.Position, entry.ID)
	}
	fmt.Println("decided by", trial.By)
	// Output:
	// 1 no-secrets
	// 2 ask-first
	// decided by no-secrets
}

// Input makes an input from JSON, because the fields of inputs are usually not exported.
func ExampleInput() {
	var t printer // in a test: the *testing.T

	in := hooktest.Input(t, upload, `{"name": ".env.production", "owner": "ann"}`)
	trial := hooktest.Try(t, upload, noSecrets, in, nil)
	trial.Denied(".env.production")
	fmt.Println(trial.Runs[0].Scope)
	// Output:
	// test/test-1/1
}
