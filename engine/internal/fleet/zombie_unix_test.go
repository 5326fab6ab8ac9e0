//go:build unix

package fleet_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// If a worker is stopped for longer than its lease lasts, another worker takes over its
// turn and finishes it. When the first worker continues, none of its writes is stored. No
// tool that is not idempotent runs twice.
//
// SPEC L-01, L-02
func TestZombie(t *testing.T) {
	t.Parallel()
	dsn, dir := server.Database(t, template), t.TempDir()
	s := open(t, dsn, nil)
	submit(t, s, "a", "call send, stand, send")
	zombie := begin(t, part{DSN: dsn, Dir: dir, Takeover: takeover})
	zombie.until("that the call began", func(l line) bool { return l.Began == "a" })
	if err := zombie.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	other := begin(t, part{DSN: dsn, Dir: dir, Takeover: takeover})
	l := other.until("that a turn was taken", func(l line) bool { return l.Session == "a" })
	if l.End != belay.EndTurn || l.Err != "" {
		t.Errorf("the other worker's turn ended %+v", l)
	}
	if took := time.Since(stopped); took > 10*takeover { // the limit is generous, because the machine may be busy
		t.Errorf("taking over took %s, want %s", took, takeover)
	}
	before := read(t, s, "a")
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := zombie.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if l := zombie.until("how its turn went", func(l line) bool { return l.Session == "a" }); !l.Fenced {
		t.Errorf("the zombie's turn ended %+v, want that its hold was lost", l)
	}
	if after := read(t, s, "a"); !slices.Equal(before, after) {
		t.Errorf("the zombie has written: the session says\n  %s\nwhere it said\n  %s", strings.Join(after, "\n  "), strings.Join(before, "\n  "))
	}
	done, err := effects(dir)
	if err != nil {
		t.Fatal(err)
	}
	check(t, s, done, "a", "send", "stand", "send")
	// The first worker registers again and runs another turn.
	other.kill()
	submit(t, s, "b", "call send")
	if l := zombie.until("that it takes another turn", func(l line) bool { return l.Session == "b" }); l.End != belay.EndTurn {
		t.Errorf("the zombie's next turn ended %+v", l)
	}
}
