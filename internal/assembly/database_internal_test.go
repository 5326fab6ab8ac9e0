package assembly

import (
	"log/slog"
	"strings"
	"testing"
)

// Each log message of a database store is one line. A line that repeats the previous line
// is skipped.
func TestRemarks(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	log := slog.New(&remarks{from: New(&Options{Notify: func(n Notice) { said.WriteString(n.Text + "\n") }})})
	for _, line := range []string{"lost", "lost", "back", "lost"} {
		log.Warn(line, "store", "belay at h", "error", "away\nfor long") //nolint:sloglint // the message is what is tested
	}
	log.Debug("nobody wants to know")
	if want := "lost; error: away for long\nback; error: away for long\nlost; error: away for long\n"; said.String() != want {
		t.Errorf("it says\n%swant\n%s", &said, want)
	}
}
