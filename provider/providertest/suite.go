package providertest

import (
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// rule is one requirement for providers. Its name states the requirement.
type rule struct {
	name  string
	check func(s *scene)
}

// patience is how long a rule waits for something that must happen. It is long because the
// machine may be busy.
const patience = 30 * time.Second

// rules returns all rules of the suite.
func rules() []rule { return slices.Concat(wholeRules(), streamRules) }

// wholeRules returns the rules that need no stream.
func wholeRules() []rule {
	return slices.Concat(contentRules, requestRules, settingRules, carryRules, failureRules, leaveRules)
}

// Test runs the conformance suite. Each rule is a subtest. start starts a server with the
// provider's protocol, for example [StartAnthropic]. open returns a model that uses the
// server.
//
// Some rules close the server and wait until the goroutines of the model have ended. So a
// model must release a connection that the server has closed.
//
//nolint:tparallel // whether the suite runs beside other tests is the caller's choice
func Test(t *testing.T, start func(t testing.TB) Server, open func(t testing.TB, server Server) belay.Model) {
	t.Helper()
	play(t, rules(), start, open)
}

// TestWhole runs the rules of [Test] that need no stream. It is for providers that also
// accept answers that are not streams, because some servers of their protocol do not stream.
// start starts a server that does not stream.
//
//nolint:tparallel // likewise
func TestWhole(t *testing.T, start func(t testing.TB) Server, open func(t testing.TB, server Server) belay.Model) {
	t.Helper()
	play(t, wholeRules(), start, open)
}

// TestSwap runs the rules about conversations that began with another provider. The other
// provider's call ids, tool names, schemas and opaque data must not make the service refuse
// a request.
//
//nolint:tparallel // likewise
func TestSwap(t *testing.T, start func(t testing.TB) Server, open func(t testing.TB, server Server) belay.Model) {
	t.Helper()
	play(t, swapRules, start, open)
}

func play(t *testing.T, rules []rule, start func(t testing.TB) Server, open func(t testing.TB, server Server) belay.Model) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.check(newScene(t, patience, start, open))
		})
	}
}
