package visible_test

import (
	"testing"

	"github.com/belay-run/belay/internal/visible"
)

func TestCounted(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		0: "0 steps", 1: "1 step", 2: "2 steps", 999: "999 steps", 1000: "1,000 steps", 1234567: "1,234,567 steps",
		-1: "-1 steps", -999: "-999 steps", -1000: "-1,000 steps",
	} {
		if got := visible.Counted(n, "step"); got != want {
			t.Errorf("Counted(%d) = %q, want %q", n, got, want)
		}
	}
}
