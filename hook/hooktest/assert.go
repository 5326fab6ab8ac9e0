package hooktest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// Passed asserts that nothing was stopped: the dispatch returned no error, and the merged
// answer does not ask, deny or halt.
func (trial *Trial[In, Out]) Passed() {
	trial.t.Helper()
	trial.verdict(hook.SeverityPass, "")
}

// Asked asserts that the merged verdict is to ask a person, and that its text contains
// reason. An empty reason matches any text.
func (trial *Trial[In, Out]) Asked(reason string) {
	trial.t.Helper()
	trial.verdict(hook.SeverityAsk, reason)
}

// Denied asserts that the merged verdict is a denial, and that its text contains reason. An
// empty reason matches any text. A gate that fails closed denies.
func (trial *Trial[In, Out]) Denied(reason string) {
	trial.t.Helper()
	trial.verdict(hook.SeverityDeny, reason)
}

// Halted asserts that the merged verdict is to halt, and that its text contains reason. An
// empty reason matches any text.
func (trial *Trial[In, Out]) Halted(reason string) {
	trial.t.Helper()
	trial.verdict(hook.SeverityHalt, reason)
}

// Severity asserts the severity of the merged verdict.
func (trial *Trial[In, Out]) Severity(want hook.Severity) {
	trial.t.Helper()
	trial.verdict(want, "")
}

// verdict asserts severity and reason. If the dispatch returned an error, a pass or an ask
// fails the test. A denial does not, because a gate denies when the dispatch fails. After a
// Goexit there is no verdict, and the test always fails.
func (trial *Trial[In, Out]) verdict(want hook.Severity, reason string) {
	trial.t.Helper()
	answer := answerOf(trial.Output)
	if trial.Err != nil && (want < hook.SeverityDeny || errors.Is(trial.Err, errGoexit)) {
		trial.failf("want %s, got the error %q", want, trial.Err)
		return
	}
	if answer.Severity != want {
		trial.failf("want %s, got %s%s", want, answer.Severity, saying(answer))
		return
	}
	if !slices.ContainsFunc(answer.Parts, func(p hook.Part) bool { return strings.Contains(p.Content, reason) }) && reason != "" {
		trial.failf("want %s with the text %q, got %s%s", want, reason, answer.Severity, saying(answer))
	}
}

// Contributed asserts the kinds of the recorded contributions of the subscription's answer,
// in order. Without arguments it asserts that there are no contributions: the handler had
// no opinion, failed, or was not called.
func (trial *Trial[In, Out]) Contributed(kinds ...string) {
	trial.t.Helper()
	run, _ := trial.Run()
	got := make([]string, 0, len(run.Contributed))
	for _, d := range run.Contributed {
		got = append(got, d.Kind)
	}
	if !slices.Equal(got, kinds) {
		trial.failf("want the contributions %q, got %q", kinds, got)
	}
}

// State asserts how the subscription's run ended.
func (trial *Trial[In, Out]) State(want hook.State) {
	trial.t.Helper()
	if run, ok := trial.recorded(); ok && run.State != want {
		trial.failf("want a run that is %s, got %s", want, run.State)
	}
}

// Code asserts the code of the subscription's recorded run. An empty code matches a run
// without a failure.
func (trial *Trial[In, Out]) Code(want codes.Code) {
	trial.t.Helper()
	if run, ok := trial.recorded(); ok && run.Class != want {
		trial.failf("want the code %q, got %q", want, run.Class)
	}
}

// NotAsked asserts that the subscription's handler was not called: it did not match, is
// disabled, or an earlier handler had stopped the phase.
func (trial *Trial[In, Out]) NotAsked() {
	trial.t.Helper()
	if run, ok := trial.Run(); ok && run.State != hook.Skipped {
		trial.failf("want no call of the handler, got a run that is %s", run.State)
	}
}

// Rewrote asserts that the subscription rewrote the input. The field Input holds the
// result.
func (trial *Trial[In, Out]) Rewrote() {
	trial.t.Helper()
	if !slices.Contains(trial.Rewriters, trial.id) {
		trial.failf("want the subscription to rewrite the input, but only these did: %q", trial.Rewriters)
	}
}

// Diagnosed asserts that the dispatch returned a diagnostic with the given code, from any
// subscription.
func (trial *Trial[In, Out]) Diagnosed(want codes.Code) {
	trial.t.Helper()
	if !slices.ContainsFunc(trial.Diagnostics, func(d hook.Diagnostic) bool { return d.Code == want }) {
		trial.failf("want the diagnostic %q, got %d others", want, len(trial.Diagnostics))
	}
}

// recorded returns the subscription's record and fails the test if there is none.
func (trial *Trial[In, Out]) recorded() (hook.Run, bool) {
	trial.t.Helper()
	run, ok := trial.Run()
	if !ok {
		trial.failf("want a run, but there is no record: the handler was not called")
	}
	return run, ok
}

// failf reports a failed assertion, with the whole trial.
func (trial *Trial[In, Out]) failf(format string, args ...any) {
	trial.t.Helper()
	trial.t.Errorf("%s at %s: %s\n%s", trial.id, trial.phase, fmt.Sprintf(format, args...), trial)
}

// saying describes the contents of an answer for a failure message.
func saying(answer hook.Answer) string {
	if len(answer.Parts) == 0 {
		return ", without a text"
	}
	said := make([]string, 0, len(answer.Parts))
	for _, p := range answer.Parts {
		said = append(said, fmt.Sprintf("%s %q", p.Kind, p.Content))
	}
	return ", with the text " + strings.Join(said, ", ")
}

// answerOf returns the answer of an output, or an empty answer for nil.
func answerOf(out hook.Output) hook.Answer {
	if isNil(out) {
		return hook.Answer{}
	}
	answer := out.Answer()
	if answer == nil {
		return hook.Answer{}
	}
	return *answer
}

func isNil(out hook.Output) bool {
	v := reflect.ValueOf(out)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return v.IsNil()
	default:
		return false
	}
}
