package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/postgres"
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

// The tables, the server's files and the server's log contain hook runs without secrets.
//
// SPEC J-02
func TestSecrets(t *testing.T) {
	t.Parallel()
	private := privateServer(t)
	hooktest.TestSecrets(t, func(t testing.TB) hooktest.Store {
		s := openDSN(t, private.Database(t, "template1"), nil)
		return hooktest.Store{Journal: s.Journal(), Queue: s.Queue(), Dump: func() ([]byte, error) {
			var all []byte
			for _, text := range dumpTables(t, s) {
				all = append(all, text...)
			}
			files, err := dumpFiles(private)
			return append(all, files...), err
		}}
	})
}

// dumpFiles returns the bytes of a server's files. The server stops for as long as they are read,
// because a running server removes files at any time.
func dumpFiles(s *pgtest.Server) (all []byte, err error) {
	restarted := s.Restart(func() { all, err = readFiles(s) })
	return all, errors.Join(err, restarted)
}

func readFiles(s *pgtest.Server) (all []byte, err error) {
	for _, dir := range []string{"base", "pg_wal"} {
		err = errors.Join(err, filepath.WalkDir(filepath.Join(s.Data(), dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			all = append(all, data...)
			return err
		}))
	}
	return all, err
}

// dumpTables returns the rows of each table as text.
func dumpTables(t testing.TB, s *postgres.Store) map[string]string {
	t.Helper()
	ctx, all := context.Background(), map[string]string{}
	names := ""
	if err := s.QueryRow(ctx, "SELECT string_agg(table_name, ',') FROM information_schema.tables WHERE table_schema = 'public'", &names); err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(names, ",") {
		text := ""
		if err := s.QueryRow(ctx, `SELECT coalesce(string_agg(x::text, E'\n'), '') FROM "`+name+`" x`, &text); err != nil {
			t.Fatal(err)
		}
		all[name] = text
	}
	return all
}
