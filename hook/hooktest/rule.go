package hooktest

import (
	"strings"
	"testing"
	"time"
)

// rule is one requirement for an implementation. Its name says what is required. S is the
// implementation under test, or a function that opens it.
type rule[S any] struct {
	name  string
	check func(t testing.TB, s S)
}

// patience is how long a rule waits for something that must happen. It is long, because the
// machine may be busy. pause is how long a rule waits to see that something does not happen.
const (
	patience = time.Minute
	pause    = 50 * time.Millisecond
)

// testRules runs each rule as a subtest and lists the skipped rules in the log.
func testRules[S any](t *testing.T, rules []rule[S], open func(t testing.TB) S) {
	t.Helper()
	var skipped []string
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			defer func() {
				if t.Skipped() {
					skipped = append(skipped, r.name)
				}
			}()
			r.check(t, open(t))
		})
	}
	if len(skipped) > 0 {
		t.Logf("hooktest: not covered, because the implementation lacks an optional interface:\n  %s", strings.Join(skipped, "\n  "))
	}
}
