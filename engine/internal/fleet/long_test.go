//go:build soak

package fleet_test

import (
	"testing"
	"time"

	"github.com/belay-run/belay/internal/pgtest"
)

// There are a thousand sessions and four workers. A worker is killed every few seconds,
// the server is restarted once, and hooks fail and hang. All turns must end, and nothing
// may be done twice or left undone. One worker is never killed, and its memory must not
// grow.
//
// SPEC L-01, L-02, J-04, J-05, P-08
func TestSoakStorm(t *testing.T) {
	t.Parallel()
	private, err := pgtest.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := private.Stop(); err != nil {
			t.Error(err)
		}
	})
	dsn, err := private.Create(t.Context(), "belay", "template1")
	if err != nil {
		t.Fatal(err)
	}
	st := &storm{sessions: 1000, workers: 4, turns: 4, tool: 400 * time.Millisecond, takeover: 6 * time.Second, pause: 3 * time.Second, restart: true, failing: 10, hanging: 3, sample: time.Second}
	st.weather(t, private, dsn)
}
