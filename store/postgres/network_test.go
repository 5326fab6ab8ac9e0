package postgres_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/postgres"
)

// submit submits a turn and fails the test on an error.
func submit(t testing.TB, s *postgres.Store, session string) {
	t.Helper()
	turn, err := belay.NewQueuedTurn(session, "main", "hello")
	if err == nil {
		err = s.Submit(context.Background(), turn)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// patience is the timeout of a test.
const patience = time.Minute

type claimed struct {
	due belay.DueTurn
	err error
}

func claims(ctx context.Context, s *postgres.Store) <-chan claimed {
	got := make(chan claimed, 1)
	go func() { // ends when Claim returns
		due, err := s.Claim(ctx, belay.TurnFilter{})
		got <- claimed{due, err}
	}()
	return got
}

// wantClaim waits for a claim and asserts its session.
func wantClaim(t testing.TB, got <-chan claimed, session string) {
	t.Helper()
	select {
	case c := <-got:
		if c.err != nil || c.due.Session != session {
			t.Fatalf("Claim gave %+v, %v, want the turn of session %s", c.due, c.err, session)
		}
	case <-time.After(patience):
		t.Fatalf("the turn of session %s is not claimed", session)
	}
}

// If the connection is cut while a claim is being committed, Claim fails. The turn is due
// again, also for the same process.
func TestClaimWhoseCommitIsCut(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t, template)
	p, by := through(t, dsn)
	s := openDSN(t, by, &postgres.Options{TurnPoll: 20 * time.Millisecond})
	submit(t, openDSN(t, dsn, nil), "a")
	p.set(func() { p.cut = commitAfter("UPDATE due_turns SET holder") })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if due, err := s.Claim(ctx, belay.TurnFilter{}); err == nil {
		t.Fatalf("Claim gave %+v, want that nobody knows", due)
	}
	wantClaim(t, claims(ctx, s), "a")
}

// The store closes connections on which the server does not answer. Claims and reads use
// new connections, and the process never counts as dead.
//
// SPEC L-02
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dsn := server.Database(t, template)
	p, by := through(t, dsn)
	s := openDSN(t, by, &postgres.Options{Takeover: 9 * time.Second, Timeout: 2 * time.Second})
	submit(t, openDSN(t, dsn, nil), "a")
	p.silence()
	got := claims(ctx, s)
	if _, err := s.Queued(ctx, "a"); err != nil {
		t.Errorf("reading gave %v", err)
	}
	wantClaim(t, got, "a")
	p.silence()
	livesOn(t, dsn, s.ID())
}

// If a connection is silent before a write begins, the write uses another connection.
//
// SPEC L-02
func TestSilentBeforeAWrite(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t, template)
	p, by := through(t, dsn)
	s := openDSN(t, by, &postgres.Options{Timeout: 2 * time.Second})
	var muted atomic.Bool
	p.set(func() {
		p.mute = func(said []byte) bool { return bytes.Contains(said, []byte("begin")) && !muted.Swap(true) }
	})
	submit(t, s, "a")
	if !muted.Load() {
		t.Fatal("the write began otherwise than expected")
	}
	queued, err := openDSN(t, dsn, nil).Queued(t.Context(), "a")
	if err != nil || len(queued) != 1 {
		t.Errorf("%d turns are queued (%v), want 1", len(queued), err)
	}
}

// A listener notices that its connection is silent. It listens on a new connection, and
// looks for changes that it may have missed.
//
// SPEC L-02
func TestSilentWhileListening(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dsn := server.Database(t, template)
	p, by := through(t, dsn)
	s := openDSN(t, by+"&application_name=waits", &postgres.Options{Timeout: 2 * time.Second, TurnPoll: time.Hour, MaxConns: 1})
	got := claims(ctx, s)
	waits(ctx, t, dsn)
	p.silence()
	submit(t, openDSN(t, dsn, nil), "a") // there is no polling, and the notification is lost
	wantClaim(t, got, "a")
}

// waits returns when the store has looked for turns and listens.
func waits(ctx context.Context, t testing.TB, dsn string) {
	t.Helper()
	db := connect(t, dsn)
	defer func() { _ = db.Close(context.Background()) }()
	often := time.NewTicker(5 * time.Millisecond)
	defer often.Stop()
	for seen := 0; seen < 2; { // twice, because the store looks again after it begins to listen
		looked := false
		query(t, db, &looked, `SELECT count(*) FILTER (WHERE query LIKE 'WITH RECURSIVE kinds%' AND state = 'idle') > 0 AND count(*) FILTER (WHERE query LIKE 'LISTEN belay_sessions%' AND state = 'idle') > 0
			FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'waits'`)
		if looked {
			seen++
		}
		select {
		case <-often.C:
		case <-ctx.Done():
			t.Fatal("it does not look for turns")
		}
	}
}

// livesOn waits for longer than a holder's lease, and asserts that the holder never counts
// as dead.
func livesOn(t testing.TB, dsn, id string) {
	t.Helper()
	db := connect(t, dsn)
	defer func() { _ = db.Close(context.Background()) }()
	var from string
	query(t, db, &from, "SELECT clock_timestamp()::text")
	often := time.NewTicker(20 * time.Millisecond)
	defer often.Stop()
	for over := time.After(patience); ; {
		var gone, enough bool
		err := db.QueryRow(t.Context(), "SELECT seen + lease <= clock_timestamp(), seen > $2::text::timestamptz + lease FROM holders WHERE id = $1", id, from).Scan(&gone, &enough)
		switch {
		case err != nil:
			t.Fatal(err)
		case gone:
			t.Fatal("a process that lives counts as gone")
		case enough:
			return
		}
		select {
		case <-often.C:
		case <-over:
			t.Fatal("the server is not told that the process lives")
		}
	}
}

// Heartbeats continue even if no connection of the pool is free to release sessions.
//
// SPEC L-02
func TestLivesWhileThePoolIsBusy(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open(t, &postgres.Options{Takeover: takeover, MaxConns: 2})
	stored := hold(t, s, "a")
	release, err := s.Hog(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s.Owe("a", stored.Epoch)
	livesOn(t, s.DSN(), s.ID())
	release()
	other := openDSN(t, s.DSN(), nil)
	often := time.NewTicker(10 * time.Millisecond)
	defer often.Stop()
	for over := time.After(patience); ; {
		_, err := other.Open(ctx, "a")
		if err == nil {
			return
		}
		wantError(t, "Open of what is owed", err, belay.ErrHeld)
		select {
		case <-often.C:
		case <-over:
			t.Fatal("the session is never released")
		}
	}
}

// A background job is stored exactly once, even if the connection is cut during the write
// or the server is down for a short time.
//
// SPEC J-04
func TestEnqueueOutlastsCuts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, enqueue := range map[string]func(s *postgres.Store) error{
		"jobs": func(s *postgres.Store) error {
			return s.Queue().Enqueue(ctx, run("asked", hook.Completed), []hook.Job{{ID: "j", Key: "k", Handler: "h"}})
		},
		"a job with its input": func(s *postgres.Store) error {
			return s.Queue().(hook.InputQueue).EnqueueInput(ctx, run("asked", hook.Completed), hook.Job{ID: "j", Key: "k", Handler: "h"}, []byte(`{"a":1}`))
		},
	} {
		for trouble, make := range map[string]func(p *proxy){
			"the commit is cut": func(p *proxy) { p.cut = commitAfter("river_job") },
			"the server is away": func(p *proxy) {
				away := p.dials + 5
				p.refuse = func(n int) []byte {
					if n <= away {
						return []byte{}
					}
					return nil
				}
				for l := range p.links {
					l.end()
				}
			},
		} {
			t.Run(name+", "+trouble, func(t *testing.T) {
				t.Parallel()
				p, by := through(t, server.Database(t, template))
				s := openDSN(t, by, nil)
				p.set(func() { make(p) })
				if err := enqueue(s); err != nil {
					t.Fatal(err)
				}
				wantStates(t, s, "asked completed")
				if stats, err := s.Queue().(hook.StatQueue).Stats(ctx); err != nil || stats.Waiting != 1 {
					t.Errorf("the queue is %+v, %v, want the job once", stats, err)
				}
			})
		}
	}
}

// Open retries while connections are cut, or while the server starts or stops. If the
// server rejects the connection, Open fails at once.
func TestOpenOutlastsCuts(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		refuse func(n int) []byte
		cuts   int
		want   error
		dials  int
	}{
		"the server starts": {refuse: func(n int) []byte {
			if n <= 3 {
				return fatal(t, "57P03")
			}
			return nil
		}},
		"the server stops and starts": {refuse: func(n int) []byte {
			switch {
			case n <= 2:
				return fatal(t, "57P01")
			case n <= 4:
				return []byte{}
			}
			return nil
		}},
		"connections are cut":     {cuts: 4},
		"the password is wrong":   {refuse: func(int) []byte { return fatal(t, "28P01") }, want: postgres.ErrRefused, dials: 1},
		"there is no database":    {refuse: func(int) []byte { return fatal(t, "3D000") }, want: postgres.ErrRefused, dials: 1},
		"there is nobody at all":  {refuse: func(int) []byte { return []byte{} }, want: postgres.ErrUnreachable, dials: 2}, // the driver may try twice
		"there is no connection ": {refuse: func(int) []byte { return fatal(t, "53300") }, want: postgres.ErrUnreachable, dials: 1},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			p, by := through(t, server.Database(t, template))
			p.set(func() {
				p.refuse = test.refuse
				if test.cuts > 0 {
					p.cut = cutting(p, test.cuts)
				}
			})
			s, err := postgres.Open(t.Context(), by, nil)
			if test.want != nil {
				wantError(t, "Open", err, test.want)
				if n := p.dialed(); n < 1 || n > test.dials {
					t.Errorf("it was tried %d times, want %d at most", n, test.dials)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			hold(t, s, "a")
			closeStore(t, s)
		})
	}
}

// cutting returns a function for proxy.cut. The function cuts the next connections, as many
// as left says, each after a request.
func cutting(p *proxy, left int) func([]byte) bool {
	return func(said []byte) bool {
		if !strings.Contains(string(said), "SELECT") && !strings.Contains(string(said), "-- ping") {
			return false
		}
		if left--; left > 0 {
			p.cut = nil
			defer func() { p.cut = cutting(p, left) }()
		}
		return true
	}
}

// A write that succeeded exactly at its timeout counts as successful.
func TestJustInTime(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	if again, err := postgres.InTime(s, true, false, nil); again || err != nil {
		t.Errorf("it gives %t, %v, want no error", again, err)
	}
	again, err := postgres.InTime(s, true, true, pgx.ErrTxClosed)
	if wantError(t, "a write that is late", err, postgres.ErrUnreachable, "longer than"); again {
		t.Error("a write that is late is tried again")
	}
}

// plainly makes the driver send the text of each query.
const plainly = "&default_query_exec_mode=exec"

// Changes does not miss a change that happens after it has read the session and before it
// waits.
//
// SPEC L-03
func TestWatchingMissesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dsn := server.Database(t, template)
	p, by := through(t, dsn)
	s := openDSN(t, by+plainly, &postgres.Options{TurnPoll: time.Hour})
	other := openDSN(t, dsn, nil)
	stored := hold(t, other, "a")
	commit(t, other, say("a", stored.Epoch, 1, "one"))
	told, looks := make(chan int64), make(chan struct{})
	go func() { // ends after the last change, or with the context
		defer close(told)
		for info, err := range s.Changes(ctx, "a") {
			if err != nil {
				return
			}
			told <- info.Last
			if info.Last == 2 {
				return
			}
			<-looks
		}
	}()
	if last := <-told; last != 1 {
		t.Fatalf("the session is told with %d messages, want 1", last)
	}
	waiting, release := p.hold(t, "FROM sessions WHERE id")
	close(looks)
	wait(t, waiting, "it looks, and the answer is that of before")
	heard, stop := s.Heard("a")
	defer stop()
	commit(t, other, say("a", stored.Epoch, 2, "two"))
	wait(t, heard, "who listens hears of the change")
	release()
	if last, ok := <-told; !ok || last != 2 {
		t.Errorf("the change is not told: %d messages", last)
	}
}

// Claim does not miss a turn that is submitted after it has looked for turns and before it
// waits.
func TestClaimingMissesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dsn := server.Database(t, template)
	p, by := through(t, dsn)
	s := openDSN(t, by+plainly, &postgres.Options{TurnPoll: time.Hour})
	other := openDSN(t, dsn, nil)
	submit(t, other, "first")
	wantClaim(t, claims(ctx, s), "first") // now the store listens
	waiting, release := p.hold(t, "WITH RECURSIVE kinds")
	got := claims(ctx, s)
	wait(t, waiting, "it looks, and there is nothing")
	heard := s.Due()
	submit(t, other, "a")
	wait(t, heard, "who listens hears of the turn")
	release()
	wantClaim(t, got, "a")
}

func wait(t testing.TB, signal <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		t.Fatalf("it does not come to this: %s", what)
	}
}

// A worker sees a turn that another process submits at once, even if the polling interval
// is long.
func TestSubmitIsHeard(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dsn := server.Database(t, template)
	s := openDSN(t, dsn+"&application_name=waits", &postgres.Options{TurnPoll: time.Hour, MaxConns: 1})
	other := openDSN(t, dsn, nil)
	got := claims(ctx, s)
	waits(ctx, t, dsn)
	submit(t, other, "a")
	wantClaim(t, got, "a")
}
