//go:build unix && soak

package killtest_test

import (
	"fmt"
	"testing"

	"github.com/belay-run/belay/internal/pgtest"
)

// TestSoakKills is like TestKills, but longer, and also with several workers on
// PostgreSQL.
//
// SPEC L-01, L-02, L-07, J-01, J-04, J-05
func TestSoakKills(t *testing.T) {
	t.Parallel()
	from := seed(t)
	for i := range 2 {
		t.Run(fmt.Sprint("run ", i), func(t *testing.T) {
			t.Parallel()
			l := newLane(t, from, roleRun, "")
			l.run(80)
			l.check(t)
		})
	}
	t.Run("serve", func(t *testing.T) {
		t.Parallel()
		l := newLane(t, from, roleServe, "")
		l.serve(1, 4, 80)
		l.check(t)
	})
	t.Run("workers on PostgreSQL", func(t *testing.T) {
		t.Parallel()
		server, err := pgtest.Start(nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
		dsn, err := server.Create(t.Context(), "belay", "template1")
		if err != nil {
			t.Fatal(err)
		}
		l := newLane(t, from, roleServe, dsn)
		l.serve(3, 12, 120)
		l.check(t)
	})
}
