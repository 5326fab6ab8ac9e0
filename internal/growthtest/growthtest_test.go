package growthtest_test

import (
	"testing"

	"github.com/belay-run/belay/internal/growthtest"
)

// verdict is a test that notes whether it failed.
type verdict struct {
	testing.TB
	failed bool
}

func (v *verdict) Helper()               {}
func (v *verdict) Errorf(string, ...any) { v.failed = true }

var sink int // prevents the compiler from removing the loops

func TestLinear(t *testing.T) { //nolint:paralleltest // it measures
	for rule, test := range map[string]struct {
		inner func(n int) int
		fails bool
	}{
		"linear work passes":   {func(int) int { return 5_000 }, false},
		"quadratic work fails": {func(n int) int { return n }, true},
	} {
		var v verdict
		growthtest.Linear(&v, 5_000, func(n int) func() {
			return func() {
				for range n {
					for j := range test.inner(n) {
						sink += j
					}
				}
			}
		})
		if v.failed != test.fails {
			t.Errorf("%s: failed = %v", rule, v.failed)
		}
	}
}
