package providertest

import (
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// rule is one thing that a provider must do. Its name says what.
type rule struct {
	name  string
	check func(s *scene)
}

// patience is how long a rule waits for something that must happen. A machine may
// be busy.
const patience = 30 * time.Second

// rules returns the rules of the suite.
func rules() []rule { return slices.Concat(wholeRules(), streamRules) }

// wholeRules returns the rules that do not need an answer to be streamed.
func wholeRules() []rule {
	return slices.Concat(contentRules, requestRules, carryRules, failureRules, leaveRules)
}

// Test runs the conformance suite: all that a provider must do, each rule a
// subtest of its own. start starts a server of the provider's protocol, such as
// [StartAnthropic], and open opens a model that talks to it.
//
// Some rules close the server and wait for the model's goroutines to end, so that
// a model must let go of a connection that the server has closed.
//
//nolint:tparallel // whether the suite runs beside other tests is the caller's choice
func Test(t *testing.T, start func(t testing.TB) Server, open func(t testing.TB, server Server) belay.Model) {
	t.Helper()
	play(t, rules(), start, open)
}

// TestWhole runs the rules of [Test] that do not need a stream. It is for
// providers that also take an answer in one piece, since some servers of their
// protocol do not stream: start starts one that does not.
//
//nolint:tparallel // likewise
func TestWhole(t *testing.T, start func(t testing.TB) Server, open func(t testing.TB, server Server) belay.Model) {
	t.Helper()
	play(t, wholeRules(), start, open)
}

// TestSwap runs the rules about conversations that another provider began: its
// ids of calls, names and schemas that it took, and what it wants back reach a
// service that does not know them.
//
//nolint:tparallel // likewise
func TestSwap(t *testing.T, start func(t testing.TB) Server, open func(t testing.TB, server Server) belay.Model) {
	t.Helper()
	play(t, swapRules, start, open)
}

// play plays rules, each as a subtest.
func play(t *testing.T, rules []rule, start func(t testing.TB) Server, open func(t testing.TB, server Server) belay.Model) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.check(newScene(t, patience, start, open))
		})
	}
}
