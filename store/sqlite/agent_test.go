package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
)

// A turn makes two commits, and two more for each tool step. If nothing else writes, each
// commit is one transaction.
//
// SPEC L-01
func TestCommitsOfATurn(t *testing.T) {
	t.Parallel()
	for steps := range 4 {
		s := open(t, nil)
		var script []scripted.Step
		for i := range steps {
			script = append(script, scripted.Step{Calls: []scripted.Call{{Tool: "note", Input: fmt.Sprintf(`{"text": "%d"}`, i)}}})
		}
		agent, err := belay.New(scripted.New(append(script, scripted.Step{Text: "done"}), nil), &belay.Options{
			Store: s, Tools: []belay.Tool{noteTool(func(string) {})}, Hooks: []hook.Subscription{pass},
		})
		if err != nil {
			t.Fatal(err)
		}
		session := agent.Session("a")
		before := s.Stats()
		if turn, err := session.Turn(t.Context(), "take notes"); err != nil || turn.Reason != belay.EndTurn {
			t.Fatalf("the turn is %+v, %v", turn, err)
		}
		after := s.Stats()
		want := int64(2 + 2*steps)
		if got := after.Commits - before.Commits; got != want {
			t.Errorf("a turn with %d tool steps takes %d commits, want %d", steps, got, want)
		}
		if got := after.Transactions - before.Transactions; got != want+1 { // one more transaction opened the session
			t.Errorf("a turn with %d tool steps takes %d transactions, want %d and one to open the session", steps, got, want)
		}
		if got := states(t, s, hook.Filter{}); len(got) != steps {
			t.Errorf("the runs are %q, want %d", got, steps)
		}
		if err := agent.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// If the disk is full, the store cannot record that the tool will run. Then the tool does
// not run, and the turn returns the reason.
//
// SPEC J-03
func TestNothingRunsOnAFullDisk(t *testing.T) {
	t.Parallel()
	s, ran := open(t, nil), 0
	input := `{"text": "` + strings.Repeat("x", 1<<20) + `"}`
	fills := belay.ToolPre.On("fills", func(ctx context.Context, _ belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.Pass, s.MaxPages(ctx, 1)
	}, nil)
	agent, err := belay.New(scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "note", Input: input}}}, {Text: "done"}}, nil), &belay.Options{
		Store: s, Tools: []belay.Tool{noteTool(func(string) { ran++ })}, Hooks: []hook.Subscription{fills},
	})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := agent.Session("a").Turn(t.Context(), "take notes")
	if turn.Reason != belay.EndError {
		t.Errorf("the turn ends %s, want an error", turn.Reason)
	}
	wantError(t, "the turn", err, sqlite.ErrFull, s.Path())
	if ran > 0 {
		t.Error("the tool ran")
	}
	if err := s.MaxPages(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := texts(t, s, "a"); len(got) != 1 {
		t.Errorf("%d messages are stored, want the user's alone", len(got))
	}
}

// While the journal cannot be written, gates deny all calls. Afterwards they allow calls
// again, and no run is lost.
//
// SPEC J-03
func TestGatesDenyWithoutAJournal(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, &sqlite.Options{BusyTimeout: 10 * time.Millisecond})
	agent, err := belay.New(scripted.New(nil, nil), &belay.Options{Store: s, Hooks: []hook.Subscription{pass}})
	if err != nil {
		t.Fatal(err)
	}
	call, err := belay.ToolPre.DecodeInput(hook.Scope{Session: "a"}, []byte(`{"id": "c", "tool": "note", "input": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	snap := agent.Hooks().Snapshot()
	ask := func() (belay.ToolDecision, error) {
		outcome, err := belay.ToolPre.Dispatch(ctx, snap, call)
		return outcome.Output.Decision, err
	}
	if verdict, err := ask(); err != nil || verdict != "" {
		t.Fatalf("the gate says %v, %v, want pass", verdict, err)
	}
	unlock := lockOut(t, s)
	wantError(t, "Flush", snap.Flush(ctx), sqlite.ErrLocked, s.Path())
	verdict, err := ask()
	if _, ok := errors.AsType[*hook.JournalError](err); !ok || verdict != belay.ToolDeny {
		t.Errorf("without a journal the gate says %v, %v, want deny", verdict, err)
	}
	unlock()
	if err := snap.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if verdict, err := ask(); err != nil || verdict != "" {
		t.Errorf("with the journal again the gate says %v, %v, want pass", verdict, err)
	}
	if err := snap.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if got := states(t, s, hook.Filter{}); len(got) < 2 {
		t.Errorf("the runs are %q, want all that ran", got)
	}
	if err := agent.Close(ctx); err != nil {
		t.Error(err)
	}
}

// The files of the store, including the log, contain hook runs without secrets.
//
// SPEC J-02
func TestSecrets(t *testing.T) {
	t.Parallel()
	hooktest.TestSecrets(t, func(t testing.TB) hooktest.Store {
		s := open(t, nil)
		return hooktest.Store{Journal: s.Journal(), Queue: s.Queue(), Dump: func() ([]byte, error) { return dumpFiles(s.Path()) }}
	})
}

// dumpFiles returns the bytes of a store's files.
func dumpFiles(path string) (all []byte, err error) {
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, data...)
	}
	return all, nil
}

// dumpTables returns the rows of each table as text.
func dumpTables(t testing.TB, s *sqlite.Store) map[string]string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.Path()+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	all := map[string]string{}
	for _, name := range column(t, db, "SELECT name FROM sqlite_schema WHERE type = 'table'") {
		all[name] = ""
		for _, field := range column(t, db, "SELECT name FROM pragma_table_info('"+name+"')") {
			all[name] += strings.Join(column(t, db, `SELECT CAST(coalesce("`+field+`", '') AS TEXT) FROM "`+name+`"`), "\n")
		}
	}
	return all
}

func column(t testing.TB, db *sql.DB, query string) (values []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return values
}

// lockOut blocks all writers until the returned function is called.
func lockOut(t testing.TB, s *sqlite.Store) (unlock func()) {
	t.Helper()
	other, err := sql.Open("sqlite", "file:"+s.Path()+"?_txlock=immediate&_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := other.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Rollback(), other.Close()); err != nil {
			t.Error(err)
		}
	}
}
