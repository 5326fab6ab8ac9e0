package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/postgres"
	"github.com/belay-run/belay/store/sqlite"
)

// endLeases ends the leases of processes that have ended, because this test cannot wait
// for so many leases. Other tests wait until a lease expires.
func endLeases(t testing.TB, dsn string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, "SELECT pid FROM holders")
	if err != nil {
		t.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	for _, pid := range pids {
		process, found := os.FindProcess(pid)
		if found == nil {
			found = process.Signal(syscall.Signal(0))
		}
		if found != nil {
			_, ended := conn.Exec(ctx, "UPDATE holders SET seen = '-infinity' WHERE pid = $1", pid)
			err = errors.Join(err, ended)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A worker can be killed at any point of a turn, and another worker finishes the turn.
// Nothing is lost, nothing is done twice, and the queue of turns is empty at the end.
//
// SPEC L-01, L-02, J-03, J-04
func TestKillMatrix(t *testing.T) {
	t.Parallel()
	story := []string{"send", "look"}
	dsn, dir := server.Database(t, template), t.TempDir()
	submit(t, open(t, dsn, nil), "a", "call "+strings.Join(story, ", "))
	whole := begin(t, part{DSN: dsn, Dir: dir, Kill: "nowhere", Once: true})
	var points []string
	for l := range whole.lines {
		if l.Point != "" {
			points = append(points, l.Point)
		}
	}
	whole.end()
	if len(points) < 20 || !slices.Contains(points, "in a job #1") {
		t.Fatalf("the undisturbed worker passed %q", points)
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dsn, dir := server.Database(t, template), t.TempDir()
			s := open(t, dsn, &postgres.Options{MaxConns: 2})
			submit(t, s, "a", "call "+strings.Join(story, ", "))
			first := begin(t, part{DSN: dsn, Dir: dir, Kill: point, Once: true})
			for range first.lines {
			}
			first.kill() // the process has already ended: killed at the point, or because all work was done before the point
			endLeases(t, dsn)
			second := begin(t, part{DSN: dsn, Dir: dir})
			second.until("ready", func(l line) bool { return l.Ready })
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			atRest(ctx, t, s)
			done, err := effects(dir)
			if err != nil {
				t.Fatal(err)
			}
			check(t, s, done, "a", story...)
			for info, err := range s.Sessions(ctx, belay.SessionFilter{}) {
				if err != nil || info.State.Turn != nil || info.State.Last != belay.EndTurn || info.State.Turns != 1 {
					t.Errorf("the session is not at rest: %+v, %v", info, err)
				}
			}
		})
	}
}

// With a file, the operating system shows that a worker has ended. So another worker
// finishes its turn at once.
//
// SPEC L-01, L-02
func TestKilledOnAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "belay.db")
	s, err := sqlite.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	submit(t, s, "a", "call send, stand, send")
	first := begin(t, part{DSN: file, Dir: dir})
	first.until("that the call began", func(l line) bool { return l.Began == "a" })
	second := begin(t, part{DSN: file, Dir: dir})
	second.until("ready", func(l line) bool { return l.Ready })
	first.kill()
	if l := second.until("that the turn ends", func(l line) bool { return l.Session == "a" && l.End != "" }); l.End != belay.EndTurn {
		t.Errorf("the other worker's turn ended %+v", l)
	}
	done, err := effects(dir)
	if err != nil {
		t.Fatal(err)
	}
	check(t, s, done, "a", "send", "stand", "send")
}

// One worker parks a turn, another process decides the approval, and a third process
// finishes the turn.
//
// SPEC P-08
func TestApprovalAcrossProcesses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dsn, dir := server.Database(t, template), t.TempDir()
	s := open(t, dsn, nil)
	submit(t, s, "a", "call send, deploy")
	first := begin(t, part{DSN: dsn, Dir: dir, Takeover: takeover})
	if l := first.until("that the turn parks", func(l line) bool { return l.Session == "a" }); l.End != belay.EndParked {
		t.Fatalf("the turn ended %+v, want it parked", l)
	}
	first.kill()
	for a, err := range s.Approvals(ctx, belay.ApprovalFilter{Pending: true}) {
		if err == nil {
			_, err = s.Decide(ctx, belay.Decision{Approval: a.ID, Hash: a.Hash, Allow: true, By: "ann"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	third := begin(t, part{DSN: dsn, Dir: dir, Takeover: takeover})
	if l := third.until("that the turn ends", func(l line) bool { return l.Session == "a" && l.End != "" }); l.End != belay.EndTurn {
		t.Fatalf("decided, the turn ended %+v", l)
	}
	done, err := effects(dir)
	if err != nil {
		t.Fatal(err)
	}
	check(t, s, done, "a", "send", "deploy")
}

// A worker that is asked to stop finishes its current steps and hands over its turns.
// Other workers continue these turns at once, without waiting for a lease.
func TestDrain(t *testing.T) {
	t.Parallel()
	dsn, dir := server.Database(t, template), t.TempDir()
	s := open(t, dsn, nil)
	const n = 6
	story := []string{"send", "look", "look", "send", "look"}
	for i := range n {
		submit(t, s, fmt.Sprint("s", i), "call "+strings.Join(story, ", "))
	}
	first := begin(t, part{DSN: dsn, Dir: dir, Turns: 3, Pause: 20 * time.Millisecond})
	first.until("ready", func(l line) bool { return l.Ready })
	second := begin(t, part{DSN: dsn, Dir: dir, Turns: 1, Pause: 20 * time.Millisecond})
	second.until("that a turn was taken", func(l line) bool { return l.End == belay.EndTurn })
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	first.end()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	atRest(ctx, t, s)
	done, err := effects(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		check(t, s, done, fmt.Sprint("s", i), story...)
	}
	for what, times := range done {
		if strings.Contains(what, "send") && times != 1 {
			t.Errorf("%s was done %d times, want once: nothing was lost", what, times)
		}
	}
}
