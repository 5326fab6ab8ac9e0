package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/store/postgres"
)

// storm defines the number of sessions and workers, and the failures.
type storm struct {
	sessions, workers, turns int
	takeover                 time.Duration
	// pause is the time between two failures. troubles is the number of failures. 0 means
	// that failures happen until all turns have ended.
	pause    time.Duration
	troubles int
	restart  bool          // restart the server once
	tool     time.Duration // how long a tool takes
	failing  int
	hanging  int
	// sample is how often the first worker reports its size. That worker is never killed,
	// so that a leak would show.
	sample time.Duration
}

// stories are the tools that the sessions call.
var stories = [][]string{{"send", "look"}, {"look", "send", "send"}, {"send"}, {"send", "deploy"}}

// weather runs sessions while workers are killed and connections are cut. All turns must
// end, nothing may be done twice, and the counts of messages and effects must match.
func (st *storm) weather(t *testing.T, server *pgtest.Server, dsn string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*patience)
	defer cancel()
	dir := t.TempDir()
	s := open(t, dsn, &postgres.Options{Takeover: st.takeover, MaxConns: 6})
	p := part{DSN: dsn, Dir: dir, Takeover: st.takeover, Turns: st.turns, Failing: st.failing, Hanging: st.hanging, Pause: st.tool}
	workers := make([]*process, st.workers)
	oldest := p
	oldest.Sample = st.sample
	for i := range workers {
		workers[i] = begin(t, oldest)
		oldest.Sample = 0
	}
	mortal := 0 // index of the first worker that may be killed
	if st.sample > 0 {
		mortal = 1
	}
	for i := range st.sessions {
		submit(t, s, fmt.Sprint("s", i), "call "+strings.Join(stories[i%len(stories)], ", "))
	}
	ended := make(chan struct{})
	go func() { // ends when no work is left, or with ctx
		defer close(ended)
		st.settle(ctx, t, s)
	}()
	often := time.NewTicker(st.pause)
	defer often.Stop()
	kills, cuts := 0, 0
	for trouble := 0; st.troubles == 0 || trouble < st.troubles; trouble++ {
		select {
		case <-ended:
			trouble, st.troubles = 1<<30, 1 // no more failures
			continue
		case <-often.C:
		}
		switch {
		case st.restart && trouble == 2:
			if err := server.Restart(func() {}); err != nil {
				t.Fatal(err)
			}
		case trouble%3 == 2:
			cut(ctx, t, dsn)
			cuts++
		default:
			i := mortal + rand.IntN(len(workers)-mortal)
			workers[i].kill()
			workers[i] = begin(t, p)
			kills++
		}
	}
	select {
	case <-ended:
	case <-ctx.Done():
		t.Fatal("the turns do not end")
	}
	t.Logf("%d kills, %d cuts", kills, cuts)
	st.checkAll(ctx, t, s, dir)
	if st.sample > 0 {
		workers[0].mu.Lock()
		samples := slices.Clone(workers[0].samples)
		workers[0].mu.Unlock()
		if err := flat(samples); err != nil {
			t.Errorf("the worker that was not killed: %v", err)
		} else {
			t.Logf("%d samples, the first %+v, the last %+v", len(samples), samples[0], samples[len(samples)-1])
		}
	}
	for _, w := range workers { // each worker must stop without leaving anything behind
		w.until("ready", func(l line) bool { return l.Ready })
		if err := w.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
			continue
		}
		if l := w.until("how many goroutines are left", func(l line) bool { return l.Goroutines > 0 }); l.Goroutines > 12 {
			t.Errorf("a worker that has ended has %d goroutines", l.Goroutines)
		}
		w.end()
	}
}

// settle approves pending approvals until no work is left.
func (st *storm) settle(ctx context.Context, t *testing.T, s *postgres.Store) {
	often := time.NewTicker(50 * time.Millisecond)
	defer often.Stop()
	for {
		left, err := st.left(ctx, s)
		if err == nil && left == 0 {
			return
		}
		select {
		case <-often.C:
		case <-ctx.Done():
			t.Errorf("%d are left, %v", left, err)
			return
		}
	}
}

// left approves pending approvals and counts the remaining work. It fails if the server is
// unreachable.
func (st *storm) left(ctx context.Context, s *postgres.Store) (int, error) {
	for a, err := range s.Approvals(ctx, belay.ApprovalFilter{Pending: true}) {
		if err == nil {
			_, err = s.Decide(ctx, belay.Decision{Approval: a.ID, Hash: a.Hash, Allow: true, By: "ann"})
		}
		if err != nil {
			return 0, err
		}
	}
	load, err := s.Load(ctx)
	if err != nil {
		return 0, err
	}
	health, err := s.Check(ctx)
	if err != nil {
		return 0, err
	}
	left := load.Waiting + load.Parked + health.Jobs.Waiting + health.Jobs.Running
	for _, h := range load.Holders {
		left += len(h.Turns)
	}
	return left, nil
}

// cut closes all connections to a database.
func cut(ctx context.Context, t testing.TB, dsn string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
}

func (st *storm) checkAll(ctx context.Context, t *testing.T, s *postgres.Store, dir string) {
	t.Helper()
	done, err := effects(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range st.sessions {
		check(t, s, done, fmt.Sprint("s", i), stories[i%len(stories)]...)
	}
	turns := make(map[string]bool)
	count := 0
	for info, err := range s.Sessions(ctx, belay.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if count++; info.State.Turn != nil || info.State.Last != belay.EndTurn || info.State.Turns != 1 {
			t.Errorf("session %s is not at rest: %+v", info.ID, info.State)
		}
	}
	if count != st.sessions {
		t.Errorf("there are %d sessions, want %d", count, st.sessions)
	}
	learned := make(map[string]int)
	for run, err := range s.Journal().(hook.ListJournal).List(ctx, hook.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !run.State.Final() {
			t.Errorf("a record is not final: %+v", run)
		}
		turns[run.Scope.Turn] = true
		if run.Subscription == "learn" && run.Attempt > 0 && run.State == hook.Completed {
			learned[run.Scope.Session]++
		}
	}
	for i := range st.sessions {
		if n := learned[fmt.Sprint("s", i)]; n != 1 {
			t.Errorf("the background work of session s%d succeeded %d times", i, n)
		}
	}
}

// All turns of many sessions end as they should, although the test kills and disconnects
// workers and makes hooks fail.
//
// SPEC L-01, L-02, J-04, J-05, P-08
func TestStorm(t *testing.T) {
	t.Parallel()
	st := &storm{sessions: 40, workers: 3, turns: 2, takeover: takeover, pause: 400 * time.Millisecond, troubles: 6, tool: 100 * time.Millisecond, failing: 10, hanging: 2}
	st.weather(t, server, server.Database(t, template))
}
