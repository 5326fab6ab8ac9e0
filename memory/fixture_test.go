package memory_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
)

func TestMain(m *testing.M) {
	if task := os.Getenv(childTask); task != "" {
		os.Exit(child(task))
	}
	os.Exit(m.Run())
}

// sessionUser returns the user of a session: the part of the id before the first dash.
func sessionUser(_ context.Context, session string) (string, error) {
	user, _, _ := strings.Cut(session, "-")
	return user, nil
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// open opens a memory file. It is closed when the test ends.
func open(t testing.TB, path string) *memory.Store {
	t.Helper()
	s, err := memory.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newStore(t testing.TB) *memory.Store {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "memory.db"))
}

// openSessions opens a store for sessions. It is closed when the test ends.
func openSessions(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, &sqlite.Options{JobPoll: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newFile makes a file with an empty store.
var newFile = filetest.Copies("belay.db", func(path string) error {
	s, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	return s.Close()
})

func newSessions(t testing.TB) *sqlite.Store {
	t.Helper()
	return openSessions(t, newFile(t))
}

// newAgent returns an agent with the extension. Extraction reads from the agent's store.
func newAgent(t testing.TB, memories *memory.Store, sessions *sqlite.Store, opts memory.Options, agent belay.Options, steps ...scripted.Step) *belaytest.Agent {
	t.Helper()
	opts.Transcript = sessions
	extension, err := memory.New(memories, &opts)
	if err != nil {
		t.Fatal(err)
	}
	agent.Store = sessions
	agent.Extensions = append(agent.Extensions, extension)
	return belaytest.New(t, scripted.New(steps, nil), &agent)
}

func says(t testing.TB, agent *belaytest.Agent, session, text string) *belaytest.Turn {
	t.Helper()
	return agent.Take(func(ctx context.Context) seq { return agent.Session(session).Run(ctx, text) })
}

// work runs a number of jobs and returns their runs.
func work(t testing.TB, agent *belay.Agent, sessions *sqlite.Store, jobs int) []hook.Run {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan hook.Run, jobs)
	ended := make(chan error, 1)
	queue, ok := sessions.Queue().(hook.WorkQueue)
	if !ok {
		t.Fatal("the queue hands out no jobs")
	}
	go func() { // ends when ctx is cancelled
		ended <- queue.Work(ctx, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
			run := agent.Hooks().Perform(ctx, job)
			done <- run
			if run.State == hook.Failed {
				return run, time.Now() // retry at once
			}
			return run, time.Time{}
		})
	}()
	var runs []hook.Run
	for range jobs {
		select {
		case run := <-done:
			runs = append(runs, run)
		case err := <-ended:
			t.Fatalf("the work ended after %d of %d jobs: %v", len(runs), jobs, err)
		}
	}
	cancel()
	<-ended // now the jobs are settled
	return runs
}

// idle reports whether no job waits.
func idle(t testing.TB, sessions *sqlite.Store) bool {
	t.Helper()
	stats, err := sessions.Queue().(hook.StatQueue).Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stats.Waiting == 0 && stats.Running == 0
}

func add(t testing.TB, s *memory.Store, drafts ...memory.Draft) []memory.Memory {
	t.Helper()
	added, err := s.Add(t.Context(), drafts...)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// all returns the matching memories, the newest first.
func all(t testing.TB, s *memory.Store, filter memory.Filter) []memory.Memory {
	t.Helper()
	var list []memory.Memory
	for m, err := range s.List(t.Context(), filter) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

// texts returns the texts of the memories in the given states, sorted.
func texts(t testing.TB, s *memory.Store, states ...memory.State) []string {
	t.Helper()
	var list []string
	for _, m := range all(t, s, memory.Filter{States: states}) {
		list = append(list, m.Text)
	}
	slices.Sort(list)
	return list
}

// search returns the texts that a search finds, best first.
func search(t testing.TB, s *memory.Store, text string, scopes ...memory.Scope) []string {
	t.Helper()
	found, err := s.Search(t.Context(), memory.Query{Text: text, Scopes: scopes})
	if err != nil {
		t.Fatalf("search for %q: %v", text, err)
	}
	var list []string
	for _, f := range found {
		list = append(list, f.Text)
	}
	return list
}

func wantTexts(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// sent returns all text of a turn's last request.
func sent(turn *belaytest.Turn) string {
	request := turn.Requests[len(turn.Requests)-1]
	var b strings.Builder
	b.WriteString(request.System + "\n")
	for _, m := range request.Messages {
		for _, p := range m.Parts {
			b.WriteString(p.Text + "\n")
			if p.Result != nil {
				b.WriteString(p.Result.Text + "\n")
			}
		}
	}
	return b.String()
}

// toolsOf returns the names of the tools in a turn's first request.
func toolsOf(turn *belaytest.Turn) []string {
	var names []string
	for _, d := range turn.Requests[0].Tools {
		names = append(names, d.Name)
	}
	return names
}

// sound asserts that the search index matches the memories.
func sound(t testing.TB, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), "INSERT INTO found (found) VALUES ('integrity-check')"); err != nil {
		t.Errorf("the index is not sound: %v", err)
	}
	var verdict string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("the file is not sound: %s, %v", verdict, err)
	}
	for name, query := range map[string]string{
		"active memories that are not in the index":        "SELECT count(*) FROM memories WHERE state = 'active' AND num NOT IN (SELECT rowid FROM found)",
		"entries of the index that are no active memories": "SELECT count(*) FROM found WHERE rowid NOT IN (SELECT num FROM memories WHERE state = 'active')",
		"scopes whose memories are miscounted": `SELECT count(*) FROM scopes s WHERE (SELECT count(*) FROM memories m WHERE m.scope = s.id AND m.state = 'active')
			<> coalesce((SELECT memories FROM words WHERE word = s.id || 'x'), 0)`,
		"words that are miscounted": `SELECT count(*) FROM words w WHERE word NOT LIKE '%x' AND memories <> (SELECT count(*) FROM found WHERE ' ' || words || ' ' LIKE '% ' || w.word || ' %')`,
	} {
		var n int
		if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: %d, %v, want none", name, n, err)
		}
	}
}
