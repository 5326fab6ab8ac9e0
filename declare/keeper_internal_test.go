package declare

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// SPEC C-08
func TestPausesOfAWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{d: new(Declaration), set: &Set{opts: Options{Backoff: firstBackoff, Logger: slog.New(slog.DiscardHandler)}}}
		want := firstBackoff
		for death := range 100 {
			k.died(errEnded)
			if got := time.Until(k.rest); got != want {
				t.Fatalf("after death %d the pause is %s, want %s", death+1, got, want)
			}
			want = min(2*want, 30*time.Second)
		}
		// If the pause is too long to wait for, a call fails at once with the reason.
		begun := time.Now()
		if _, err := k.running(t.Context()); !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "does not start it again before") || time.Since(begun) != 0 {
			t.Errorf("a call in the pause returns %v after %s", err, time.Since(begun))
		}
		k.succeeded()
		k.died(errEnded)
		if got := time.Until(k.rest); got != firstBackoff {
			t.Errorf("after a success the pause is %s, want %s", got, firstBackoff)
		}
	})
}
