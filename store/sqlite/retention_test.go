package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/store/sqlite"
)

// fill makes a session with a large message and two hook runs, and releases it.
func fill(t testing.TB, s *sqlite.Store, session string, state *belay.SessionState, asked ...belay.Approval) {
	t.Helper()
	epoch := hold(t, s, session).Epoch
	c := say(session, epoch, 1, strings.Repeat("text ", 20_000))
	c.State, c.Approvals = state, asked
	for i := range 2 {
		r := run(fmt.Sprintf("%s-%d", session, i), hook.Completed)
		r.Scope.Session = session
		c.Runs = append(c.Runs, r)
	}
	commit(t, s, c)
	if err := s.Release(context.Background(), session, epoch); err != nil {
		t.Fatal(err)
	}
}

// sessions lists the ids of the sessions, sorted.
func sessions(t testing.TB, s *sqlite.Store) (ids []string) {
	t.Helper()
	for info, err := range s.Sessions(context.Background(), belay.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.ID)
	}
	slices.Sort(ids)
	return ids
}

// Prune removes whole sessions, oldest first. It never removes a session that is still
// needed.
func TestPrune(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	clock := hooktest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	s := open(t, &sqlite.Options{Clock: clock})
	fill(t, s, "old-open", &belay.SessionState{Turn: &belay.TurnState{ID: "t"}})
	fill(t, s, "old-parked", &belay.SessionState{Turn: &belay.TurnState{ID: "t", Parked: true}})
	fill(t, s, "old-asks", nil, belay.Approval{ID: "pending", Session: "old-asks", Hash: "h"})
	fill(t, s, "old-asked", nil, belay.Approval{ID: "decided", Session: "old-asked", Hash: "h", Decided: &belay.Decision{By: "ann"}})
	fill(t, s, "old-held", nil)
	for i := range 4 {
		clock.Advance(time.Hour)
		fill(t, s, fmt.Sprint("idle-", i), nil)
	}
	orphan := run("orphan", hook.Completed)
	orphan.Scope.Session, orphan.Started = "long-gone", clock.Now().Add(-1000*time.Hour)
	appendRuns(t, s, orphan)
	clock.Advance(time.Hour)
	hold(t, s, "old-held")

	none, err := s.Prune(ctx, sqlite.Retention{})
	if err != nil || len(none.Sessions) > 0 || len(sessions(t, s)) != 9 {
		t.Errorf("keeping everything removes %+v, %v", none, err)
	}
	aged, err := s.Prune(ctx, sqlite.Retention{Age: 210 * time.Minute})
	if err != nil || !slices.Equal(aged.Sessions, []string{"old-asked", "idle-0"}) || aged.Runs != 5 {
		t.Errorf("by age %+v is removed, %v, want old-asked and idle-0 with 4 runs, and the one of a session that is gone", aged, err)
	}
	if aged.After >= aged.Before-150_000 {
		t.Errorf("%d bytes are stored after %d, want two sessions less", aged.After, aged.Before)
	}
	if info, err := os.Stat(s.Path()); err != nil || info.Size() > aged.After+8192 {
		t.Errorf("the file has %d bytes (%v) and %d are in use, want the rest given back", info.Size(), err, aged.After)
	}
	sized, err := s.Prune(ctx, sqlite.Retention{MaxBytes: aged.After - 50_000, Keep: 1})
	if err != nil || !slices.Equal(sized.Sessions, []string{"idle-1"}) {
		t.Errorf("by size %+v is removed, %v, want idle-1", sized, err)
	}
	rest, err := s.Prune(ctx, sqlite.Retention{MaxBytes: 1, Keep: 2})
	if err != nil || !slices.Equal(rest.Sessions, []string{"idle-2"}) {
		t.Errorf("down to nothing %+v is removed, %v, want idle-2: the two last changed stay", rest, err)
	}
	if got := sessions(t, s); !slices.Equal(got, []string{"idle-3", "old-asks", "old-held", "old-open", "old-parked"}) {
		t.Errorf("%q are left", got)
	}
	if _, err := s.Decide(ctx, belay.Decision{Approval: "pending", Hash: "h", Allow: true, By: "ann"}); err != nil {
		t.Errorf("the pending approval: %v", err)
	}
	if got := states(t, s, hook.Filter{Session: "idle-2"}); len(got) > 0 {
		t.Errorf("the runs %q of a session are left that is gone", got)
	}
	wantUntouched(t, s.Path())
}

// A new session gets a new epoch, even if Prune removed a session with the same id.
func TestPrunedSessionBeginsAnew(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	former := hold(t, s, "a")
	commit(t, s, say("a", former.Epoch, 1, "one"))
	if err := s.Release(t.Context(), "a", former.Epoch); err != nil {
		t.Fatal(err)
	}
	if did, err := s.Prune(t.Context(), sqlite.Retention{Age: 1}); err != nil || len(did.Sessions) != 1 {
		t.Fatalf("Prune: %+v, %v", did, err)
	}
	if again := hold(t, s, "a"); again.Last != 0 || again.Epoch <= former.Epoch {
		t.Errorf("it has %d messages and epoch %d after %d, want none and a higher one", again.Last, again.Epoch, former.Epoch)
	}
}

// An export contains all parts of a session, each in its own line.
func TestExport(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	stored := hold(t, s, "a")
	const many = 300 // more than one page
	for seq := range int64(many) {
		commit(t, s, say("a", stored.Epoch, seq+1, fmt.Sprint("<text> ", seq+1)))
	}
	mine, other := run("mine", hook.Failed), run("other", hook.Completed)
	mine.Audit, other.Scope.Session = []hook.Audit{{Code: "note"}}, "b"
	commit(t, s, &belay.Commit{
		Session: "a", Epoch: stored.Epoch, State: &belay.SessionState{Turns: 3}, Runs: []hook.Run{mine, other},
		Calls:     []belay.CallRecord{{Message: 1, ID: "call", Tool: "read", State: belay.CallDone, Input: json.RawMessage(`{"b":1,"a":2}`), Result: &belay.Result{Text: "r"}}},
		Approvals: []belay.Approval{{ID: "ask", Session: "a", Hash: "h", Asked: time.Now()}},
	})
	var out bytes.Buffer
	if err := s.Export(ctx, &out, "a"); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		var line sqlite.ExportLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		switch count[line.Type]++; {
		case line.Type == "session" && (line.Version != sqlite.ExportVersion || line.Session.ID != "a" || line.Session.State.Turns != 3 || !line.Session.Held):
			t.Errorf("the first line is %s", lines.Text())
		case line.Type == "message" && (line.Message.Seq != int64(count["message"]) || line.Message.Text() != fmt.Sprint("<text> ", line.Message.Seq)):
			t.Errorf("message %d is %s", count["message"], lines.Text())
		case line.Type == "call" && (string(line.Call.Input) != `{"b":1,"a":2}` || line.Call.Result.Text != "r"),
			line.Type == "approval" && line.Approval.ID != "ask", line.Type == "run" && (line.Run.ID != "mine" || line.Run.State != hook.Failed):
			t.Errorf("a line is %s", lines.Text())
		}
	}
	if want := map[string]int{"session": 1, "message": many, "call": 1, "approval": 1, "run": 1}; fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("there are %v lines, want %v", count, want)
	}
	wantError(t, "Export of a session that is not there", s.Export(ctx, &out, "b"), belay.ErrNotFound)
}

// Backup works while the store is in use. The backup is itself a store.
func TestBackup(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	stored := hold(t, s, "a")
	commit(t, s, say("a", stored.Epoch, 1, "one"))
	appendRuns(t, s, run("begun", hook.Started))
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := s.Backup(ctx, copied); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(ctx, copied); err == nil {
		t.Error("a backup overwrites a file")
	}
	commit(t, s, say("a", stored.Epoch, 2, "two"))
	from := openFile(t, copied, nil)
	if got := texts(t, from, "a"); !slices.Equal(got, []string{"one"}) {
		t.Errorf("the copy has %q, want what was there", got)
	}
	hold(t, from, "a") // the copy has no lock file of the old holder, so the session can be opened
	wantStates(t, from, "begun interrupted")
	wantStates(t, s, "begun started")
	wantUntouched(t, copied)
}

// Check counts the content of a store.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	fill(t, s, "a", nil, belay.Approval{ID: "pending", Session: "a"})
	got, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Problems) > 0 || got.Version < 2 || got.Sessions != 1 || got.Runs != 2 || got.Pending != 1 || got.Bytes < 100_000 || got.Log == 0 ||
		got.Jobs.Capacity != 1024 || len(got.Holders) != 1 || !got.Holders[0].Self || got.Holders[0].Gone || got.Holders[0].PID != int64(os.Getpid()) {
		t.Errorf("Check tells %+v", got)
	}
}
