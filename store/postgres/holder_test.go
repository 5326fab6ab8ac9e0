package postgres_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/store/postgres"
)

// No process can clean up after a holder that is alive.
//
// SPEC L-02
func TestTheLivingAreNotSettled(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	stored := hold(t, s, "a")
	submit(t, s, "b")
	wantClaim(t, claims(ctx, s), "b")
	other := openDSN(t, s.DSN(), nil)
	if err := other.SettleHolder(ctx, s.ID()); err != nil {
		t.Fatal(err)
	}
	commit(t, s, say("a", stored.Epoch, 1, "the hold is still valid"))
	load, err := other.Load(ctx)
	if err != nil || load.Waiting != 0 {
		t.Errorf("%d turns wait, %v, want that the claim stands", load.Waiting, err)
	}
	if got := other.Recovery(); got.Holders != 0 || len(got.Sessions) != 0 {
		t.Errorf("settled: %+v, want nothing", got)
	}
}

// If a holder has sent no heartbeat during its lease, it registers again before it takes a
// session or a turn. Otherwise others could take over that session or turn at once. A
// holder that is no longer registered also registers again.
//
// SPEC L-02
func TestTheLateEnterAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for what, take := range map[string]func(t testing.TB, s *postgres.Store){
		"a session": func(t testing.TB, s *postgres.Store) { t.Helper(); hold(t, s, "b") },
		"a turn":    func(t testing.TB, s *postgres.Store) { t.Helper(); wantClaim(t, claims(ctx, s), "a") },
	} {
		for how, late := range map[string]string{
			"its lease has ended":   "UPDATE holders SET seen = '-infinity' WHERE id = $1",
			"it was taken for gone": "DELETE FROM holders WHERE id = $1",
		} {
			t.Run(what+", "+how, func(t *testing.T) {
				t.Parallel()
				s := open(t, &postgres.Options{Takeover: time.Hour}) // the next heartbeat is far away
				submit(t, s, "a")
				if err := s.Execute(ctx, late, s.ID()); err != nil {
					t.Fatal(err)
				}
				take(t, s)
				lives := false
				if err := s.QueryRow(ctx, "SELECT count(*) = 1 FROM holders WHERE seen + lease > clock_timestamp()", &lives); err != nil || !lives {
					t.Errorf("it counts as living: %t, %v, want it to", lives, err)
				}
			})
		}
	}
}

// If the row of a holder is deleted, the next heartbeat registers the holder again.
// Otherwise others could take over its sessions. The new row still says that the holder
// claims turns.
//
// SPEC L-02
func TestADeletedHolderComesBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open(t, &postgres.Options{Takeover: takeover, Logger: slog.New(slog.DiscardHandler)})
	submit(t, s, "a")
	wantClaim(t, claims(ctx, s), "a")
	db := connect(t, s.DSN())
	defer func() { _ = db.Close(context.Background()) }()
	often := time.NewTicker(5 * time.Millisecond)
	defer often.Stop()
	for range 2 {
		if err := s.Execute(ctx, "DELETE FROM holders WHERE id = $1", s.ID()); err != nil {
			t.Fatal(err)
		}
		until := time.After(patience)
		for back := false; !back; {
			query(t, db, &back, "SELECT count(*) = 1 FROM holders WHERE id = '"+s.ID()+"' AND seen + lease > clock_timestamp() AND worker")
			select {
			case <-often.C:
			case <-until:
				t.Fatal("the holder did not enter itself again as a worker")
			}
		}
	}
}

// While other processes clean up after a holder, the holder cannot take a session or a
// turn. It waits, and then registers again. Otherwise it could take a session that no one
// ever cleans up.
//
// SPEC L-02
func TestWhoIsBeingSettledWaits(t *testing.T) {
	t.Parallel()
	for what, take := range map[string]func(ctx context.Context, s *postgres.Store) error{
		"a session": func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Open(ctx, "b")
			return err
		},
		"a turn": func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Claim(ctx, belay.TurnFilter{})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			s := open(t, &postgres.Options{Takeover: time.Hour})
			submit(t, s, "first")
			wantClaim(t, claims(ctx, s), "first")
			submit(t, s, "a")
			settler := connect(t, s.DSN())
			defer func() { _ = settler.Close(context.Background()) }()
			if _, err := settler.Exec(ctx, "BEGIN"); err != nil {
				t.Fatal(err)
			}
			if _, err := settler.Exec(ctx, "SELECT 1 FROM holders WHERE id = $1 FOR UPDATE", s.ID()); err != nil {
				t.Fatal(err)
			}
			taken := make(chan error, 1)
			go func() { taken <- take(ctx, s) }() // ends when take returns
			db := connect(t, s.DSN())
			defer func() { _ = db.Close(context.Background()) }()
			often := time.NewTicker(5 * time.Millisecond)
			defer often.Stop()
			for waits := false; !waits; {
				query(t, db, &waits, "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR KEY SHARE%'")
				select {
				case <-often.C:
				case err := <-taken:
					t.Fatalf("it was taken while it was settled: %v", err)
				case <-ctx.Done():
					t.Fatal("it does not wait")
				}
			}
			if _, err := settler.Exec(ctx, "DELETE FROM holders WHERE id = '"+s.ID()+"'; COMMIT"); err != nil {
				t.Fatal(err)
			}
			if err := <-taken; err != nil {
				t.Fatal(err)
			}
			entered := 0
			if query(t, db, &entered, "SELECT count(*) FROM holders"); entered != 1 {
				t.Error("it has something, and is not on the list")
			}
		})
	}
}

// If the cleanup of one dead holder fails, other dead holders are still cleaned up.
//
// SPEC J-04
func TestAJobThatCannotBeSettled(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	stored := hold(t, s, "a")
	commit(t, s, say("a", stored.Epoch, 1, "one"))
	submit(t, s, "b")
	wantClaim(t, claims(ctx, s), "b")
	if err := s.Queue().Enqueue(ctx, run("asked", hook.Completed), []hook.Job{{ID: "bad", Key: "k", Handler: "h"}}); err != nil {
		t.Fatal(err)
	}
	execute(t, s.DSN(), `INSERT INTO holders (id, pid, host, since, seen) VALUES ('ghost', 1, 'elsewhere', 1, '-infinity');
		UPDATE sessions SET holder = 'ghost' WHERE id = 'a'; UPDATE due_turns SET holder = 'ghost';
		UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = ARRAY['ghost'];
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not this one''; END';
		CREATE TRIGGER refuse BEFORE INSERT ON runs FOR EACH ROW WHEN (NEW.job = 'bad') EXECUTE FUNCTION refuse()`)
	_, err := postgres.Open(ctx, s.DSN(), nil)
	if err == nil || !strings.Contains(err.Error(), "not this one") {
		t.Errorf("Open gives %v, want what cannot be settled", err)
	}
	left := ""
	if err := s.QueryRow(ctx, "SELECT holder FROM sessions WHERE id = 'a'", &left); err != nil || left != "" {
		t.Errorf("the session is held by %q, %v, want that it is settled", left, err)
	}
	commit(t, s, say("a", hold(t, s, "a").Epoch, 2, "two"))
	wantClaim(t, claims(ctx, s), "b")
}

// lines is a log handler that sends the messages to a channel.
type lines struct {
	slog.Handler
	said chan string
}

func (l lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (l lines) Handle(_ context.Context, r slog.Record) error {
	l.said <- r.Message
	return nil
}

// The store logs once that the server is unreachable, and once that it is back.
func TestLostAndBack(t *testing.T) {
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
	said := make(chan string, 1000)
	s := openDSN(t, dsn, &postgres.Options{Takeover: takeover, Logger: slog.New(lines{slog.DiscardHandler, said})})
	next := func(want string) {
		t.Helper()
		select {
		case got := <-said:
			if !strings.HasPrefix(got, want) {
				t.Fatalf("the log says %q, want %q", got, want)
			}
		case <-time.After(patience):
			t.Fatalf("the log does not say %q", want)
		}
	}
	for range 2 {
		if err := private.Restart(func() { next("the server cannot be reached") }); err != nil {
			t.Fatal(err)
		}
		next("the server can be reached again")
		db := connect(t, s.DSN())
		beats(t, db, 3)
		_ = db.Close(context.Background())
	}
	select {
	case got := <-said:
		t.Errorf("the log says %q, want nothing more", got)
	default:
	}
}
