package storetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// Options are the settings of Test. A nil pointer is valid.
type Options struct {
	// Reopen stops using a store without releasing anything, as if its process had ended.
	// It opens the stored data again. Defaults to nil: Test skips the rules about the end
	// of a process.
	Reopen func(t testing.TB, s belay.Store) belay.Store
	// Expire makes the holder of a session count as gone, so that the next Open takes over
	// the session. Defaults to nil: Test skips the rules about takeovers.
	Expire func(t testing.TB, s belay.Store, session string)
}

// Test checks an implementation of [belay.Store] against the contract of the interface.
// open returns an empty store. Clean up with t.Cleanup.
//
// A store may round times to microseconds and change their zone. It may change white space
// and escapes in JSON, but not the order of keys or the spelling of numbers.
//
// If two sessions changed within two microseconds, a listing may have them in any order.
//
// For the rules about a full queue, the queue must be a [hook.StatQueue] with a capacity of
// at most 4,096.
func Test(t *testing.T, open func(t testing.TB) belay.Store, opts *Options) {
	t.Helper()
	var o Options
	if opts != nil {
		o = *opts
	}
	var skipped []string
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			defer func() {
				if t.Skipped() {
					skipped = append(skipped, r.name)
				}
			}()
			r.check(t, &subject{Store: open(t), opts: o})
		})
	}
	if len(skipped) > 0 {
		t.Logf("storetest: not covered, because the store lacks an optional interface or an option was not given:\n  %s", strings.Join(skipped, "\n  "))
	}
}

// rule is a requirement for a store. The name says what it requires.
type rule struct {
	name  string
	check func(t testing.TB, s *subject)
}

func rules() []rule {
	return slices.Concat(holdRules, fenceRules, commitRules, refusalRules, messageRules, windowRules, callRules, stateRules,
		readRules, approvalRules, decideRules, sessionListRules, sessionInfoRules, listingRules, describeRules, pageRules, deleteRules, inboxRules, journalRules, parallelRules, reopenRules)
}
