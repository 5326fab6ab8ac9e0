//go:build unix

package postgres_test

import (
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay/store/postgres"
)

// A process is stopped for longer than its lease and then continues. All its writes fail,
// and it does not change what the new holder has written. It can register again.
//
// SPEC L-02
func TestZombie(t *testing.T) {
	t.Parallel()
	s := open(t, &postgres.Options{Takeover: takeover})
	zombie, _ := another(t, "zombie", s.DSN())
	signal(t, zombie, syscall.SIGSTOP)
	stored := takeOver(t, s, "a", time.Now())
	commit(t, s, say("a", stored.Epoch, 2, "by me"))
	signal(t, zombie, syscall.SIGCONT)
	if _, err := io.WriteString(zombie.in, "go on\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"commit true", "state true", "release true", "open true", "again true"} {
		if got := zombie.line(t); !strings.HasPrefix(got, want) {
			t.Errorf("the zombie says %q, want %q", got, want)
		}
	}
	commit(t, s, say("a", stored.Epoch, 3, "still by me"))
	if got := texts(t, s, "a"); !slices.Equal(got, []string{"by the other", "by me", "still by me"}) {
		t.Errorf("the session says %q", got)
	}
	if got := texts(t, s, "c"); !slices.Equal(got, []string{"it lives"}) {
		t.Errorf("the session that the zombie opened then says %q", got)
	}
	wantStates(t, s, "begun interrupted", "ended completed") // no later write of the zombie is stored
	if got := held(t, s); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("%q are held, want the session that was taken over and the zombie's new one", got)
	}
}

// If a process is stopped in the middle of a transaction, the server releases its locks.
//
// SPEC L-02
func TestStoppedInATransaction(t *testing.T) {
	t.Parallel()
	s := open(t, &postgres.Options{Takeover: takeover})
	stuck, _ := another(t, "stuck", s.DSN())
	signal(t, stuck, syscall.SIGSTOP)
	stored := takeOver(t, s, "a", time.Now().Add(time.Second)) // the server needs a second to notice
	commit(t, s, say("a", stored.Epoch, 1, "by me"))
}

func signal(t testing.TB, p *process, what syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(what); err != nil {
		t.Fatal(err)
	}
}
