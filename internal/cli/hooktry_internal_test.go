package cli

import (
	"errors"
	"testing"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// A diagnostic does not repeat its message, although the error also begins with that
// message.
func TestDiagnosedSaysEachThingOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		message string
		err     error
		want    string
	}{
		{"no error", "the hook is disabled", nil, "hook.error gate at tool.pre: the hook is disabled"},
		{"an error without a message", "", errors.New("no database"), "hook.error gate at tool.pre: no database"},
		{"a message that is the error", "exit code 1", &hook.SafeError{Message: "exit code 1"}, "hook.error gate at tool.pre: exit code 1"},
		{
			"a message with the output of the hook", "exit code 1",
			&hook.SafeError{Message: "exit code 1", Reason: "no database"}, "hook.error gate at tool.pre: exit code 1: no database",
		},
		{
			"a message with its cause", "the hook's answer does not match the schema of the phase",
			&hook.SafeError{Message: "the hook's answer does not match the schema of the phase", Err: errors.New(`"reason" is not a text`)},
			`hook.error gate at tool.pre: the hook's answer does not match the schema of the phase: "reason" is not a text`,
		},
		{"an error that differs from the message", "exit code 1", errors.New("exit code 10"), "hook.error gate at tool.pre: exit code 1: exit code 10"},
	} {
		d := hook.Diagnostic{Code: codes.Error, Phase: "tool.pre", Subscription: "gate", Message: test.message, Err: test.err}
		if got := diagnosed(d); got != test.want {
			t.Errorf("%s: %q, want %q", test.rule, got, test.want)
		}
	}
}
