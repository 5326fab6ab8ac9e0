package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/postgres"
)

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// follow follows a journal until the test ends. It returns after the follower has begun.
func follow(t testing.TB, s *postgres.Store) <-chan string {
	t.Helper()
	ids, begun := make(chan string, 1000), make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var once sync.Once
	t.Cleanup(func() {
		stop()
		<-ended
	})
	go func() { // ends with the test
		defer close(ended)
		for r, err := range s.Journal().(hook.FollowJournal).Follow(ctx, hook.Filter{}) {
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("Follow: %v", err)
				}
				return
			}
			if r.ID == "begun" {
				once.Do(func() { close(begun) })
				continue
			}
			ids <- r.ID
		}
	}()
	often := time.NewTicker(50 * time.Millisecond)
	defer often.Stop()
	for {
		select {
		case <-begun:
			return ids
		case <-often.C:
			appendRuns(t, s, run("begun", hook.Started))
		}
	}
}

func next(t testing.TB, ids <-chan string) string {
	t.Helper()
	select {
	case id := <-ids:
		return id
	case <-time.After(time.Minute):
		t.Fatal("nothing is told")
		return ""
	}
}

// A run can get its position early and be stored late. Followers in any process still see
// it.
//
// SPEC J-08
func TestFollowWaitsForWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	other := openDSN(t, s.DSN(), &postgres.Options{Poll: 10 * time.Millisecond})
	here, there := follow(t, s), follow(t, other)
	under, goOn := make(chan struct{}), make(chan struct{})
	stored := make(chan error, 1)
	go func() { // ends when goOn is closed
		stored <- s.AppendSlowly(ctx, func() {
			close(under)
			<-goOn
		}, run("slow", hook.Completed))
	}()
	<-under
	appendRuns(t, s, run("quick", hook.Completed))
	close(goOn)
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	for who, ids := range map[string]<-chan string{"here": here, "there": there} {
		if got := []string{next(t, ids), next(t, ids)}; !slices.Equal(got, []string{"slow", "quick"}) {
			t.Errorf("who follows %s is told %q, want both in the order of their places", who, got)
		}
	}
}

// A follower in another process gets each run exactly once, even if many processes append
// at the same time.
//
// SPEC J-08
func TestFollowMany(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	other := openDSN(t, s.DSN(), &postgres.Options{Poll: 10 * time.Millisecond})
	ids := follow(t, other)
	const writers, each = 8, 25
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range each {
				if err := s.Journal().Append(context.Background(), []hook.Run{run(fmt.Sprint(w, "-", n), hook.Completed)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	told := map[string]bool{}
	for range writers * each {
		id := next(t, ids)
		if told[id] {
			t.Errorf("%s is told twice", id)
		}
		told[id] = true
	}
	all.Wait()
}

// Prune removes old sessions with everything that belongs to them. It keeps sessions that
// are still needed.
func TestPrune(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	for _, session := range []string{"old", "held", "parked", "job", "kept"} {
		stored := hold(t, s, session)
		c := say(session, stored.Epoch, 1, "said")
		r := run("run-"+session, hook.Completed)
		r.Scope.Session = session
		c.Runs = []hook.Run{r}
		switch session {
		case "parked":
			c.State = &belay.SessionState{Turn: &belay.TurnState{ID: "turn", Parked: true}}
		case "job":
			c.Jobs = []hook.Job{{ID: "j", Key: "k", Handler: "h", Scope: hook.Scope{Session: session}}}
		}
		commit(t, s, c)
		if session != "held" {
			if err := s.Release(ctx, session, stored.Epoch); err != nil {
				t.Fatal(err)
			}
		}
	}
	appendRuns(t, s, run("orphan", hook.Completed))
	if did, err := s.Prune(ctx, postgres.Retention{}); err != nil || len(did.Sessions) != 0 || did.Runs != 0 {
		t.Errorf("keeping everything removes %+v, %v", did, err)
	}
	if did, err := s.Prune(ctx, postgres.Retention{Age: time.Hour}); err != nil || len(did.Sessions) != 0 || did.Runs != 0 {
		t.Errorf("keeping an hour removes %+v, %v", did, err)
	}
	did, err := s.Prune(ctx, postgres.Retention{Age: time.Nanosecond, Keep: 1})
	if err != nil || !slices.Equal(did.Sessions, []string{"old"}) || did.Runs != 2 {
		t.Errorf("keeping what is new and one more removes %+v, %v, want the session old and two runs", did, err)
	}
	wantStates(t, s, "run-held completed", "run-parked completed", "run-job completed", "run-kept completed")
}
