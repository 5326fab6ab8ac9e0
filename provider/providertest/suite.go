package providertest

import (
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// rule is one thing that a provider must do. Its name says what.
type rule struct {
	name  string
	check func(s *scene)
}

// patience is how long a rule waits for something that must happen.
const patience = 10 * time.Second

// rules returns the rules of the suite.
func rules() []rule {
	var all []rule
	for _, some := range [][]rule{contentRules, requestRules, carryRules, failureRules, leaveRules} {
		all = append(all, some...)
	}
	return all
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
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.check(newScene(t, patience, start, open))
		})
	}
}
