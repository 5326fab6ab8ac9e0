//go:build unix

package killtest_test

import "testing"

// A process that runs turns is killed at random times. The rules in check_unix_test.go
// must hold. TestSoakKills does the same for longer.
//
// SPEC L-01, L-02, L-07, J-01, J-04, J-05
func TestKills(t *testing.T) {
	t.Parallel()
	from := seed(t)
	t.Run("run", func(t *testing.T) {
		t.Parallel()
		l := newLane(t, from, roleRun, "")
		l.run(12)
		l.check(t)
	})
	t.Run("serve", func(t *testing.T) {
		t.Parallel()
		l := newLane(t, from, roleServe, "")
		l.serve(1, 3, 12)
		l.check(t)
	})
}
