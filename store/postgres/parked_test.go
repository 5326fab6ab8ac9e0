package postgres_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/postgres"
)

// parked is the number of pending approvals.
const parked = 10_000

// Pending approvals cost only rows: they need no goroutine, and no query reads them until
// they are requested. Any of them can be decided, and then its turn continues.
//
// SPEC P-08
func TestParked(t *testing.T) { //nolint:paralleltest // it counts goroutines
	ctx, dsn := t.Context(), server.Database(t, template)
	db, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(ctx) }()
	ran := 0
	s, agent := openParked(t, dsn, &ran)
	if turn, err := agent.Session("parked-0").Turn(ctx, "take a note"); err != nil || turn.Reason != belay.EndParked {
		t.Fatalf("the turn is %+v, %v, want it parked", turn, err)
	}
	before := idle(t, db, s, agent)
	multiply(t, db)
	scans := scansOf(t, db)
	s, agent = openParked(t, dsn, &ran)
	if now := idle(t, db, s, agent); now > before+50 { // the tolerance is for connections of the pool; a goroutine for each approval would be thousands
		t.Errorf("with %d approvals there are %d goroutines, with one there were %d", parked, now, before)
	}
	if now := scansOf(t, db); now != scans {
		t.Errorf("while all was idle approvals, calls and messages were looked at: %s, then %s", scans, now)
	}
	s, agent = openParked(t, dsn, &ran)
	for _, n := range []int{0, parked / 2, parked - 1} {
		session := fmt.Sprint("parked-", n)
		for a, err := range s.Approvals(ctx, belay.ApprovalFilter{Session: session, Pending: true}) {
			if err == nil {
				_, err = agent.Decide(ctx, belay.Decision{Approval: a.ID, Hash: a.Hash, Allow: true, By: "ann"})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if turn, err := belay.Await(agent.Session(session).Resume(ctx)); err != nil || turn.Reason != belay.EndTurn {
			t.Errorf("the turn of %s is %+v, %v", session, turn, err)
		}
	}
	if ran != 3 {
		t.Errorf("%d calls ran, want 3", ran)
	}
	if err := agent.Close(ctx); err != nil {
		t.Error(err)
	}
	closeStore(t, s)
}

// openParked opens a store and an agent that asks about every call.
func openParked(t testing.TB, dsn string, ran *int) (*postgres.Store, *belay.Agent) {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn, &postgres.Options{Takeover: takeover})
	if err != nil {
		t.Fatal(err)
	}
	tampered.Store(s, true) // multiply adds rows that the chain does not have
	// When a turn is resumed, the model must continue after the call.
	model := oneCall{}
	asks := belay.ToolPre.On("asks", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Ask("it notes"), nil }, nil)
	agent, err := belay.New(model, &belay.Options{
		Store: s, Tools: []belay.Tool{noteTool(func(string) { *ran++ })}, Hooks: []hook.Subscription{asks}, OnAsk: belay.AskPark,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, agent
}

// oneCall is a model that makes one call and then ends the turn.
type oneCall struct{}

// Stream implements belay.Model.
func (oneCall) Stream(_ context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		answer := &belay.Response{Parts: []belay.Part{belay.Text("done")}, StopReason: belay.StopEnd}
		if !slices.ContainsFunc(req.Messages, func(m *belay.Message) bool { return m.Role == belay.RoleAssistant }) {
			answer = &belay.Response{
				Parts:      []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{ID: "c", Tool: "note", Input: []byte(`{"text":"x"}`)}}},
				StopReason: belay.StopToolUse,
			}
		}
		yield(belay.Chunk{Response: answer}, nil)
	}
}

// idle runs an idle agent for a while and closes it. It returns the number of goroutines.
// When idle returns, the server's statistics include all reads.
func idle(t testing.TB, db *pgx.Conn, s *postgres.Store, agent *belay.Agent) (goroutines int) {
	t.Helper()
	working, stop := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- agent.Hooks().Work(working) }() // ends when working is cancelled
	beats(t, db, 10)
	goroutines = runtime.NumGoroutine()
	stop()
	if err := <-worked; err != nil {
		t.Error(err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Error(err)
	}
	closeStore(t, s)
	often := time.NewTicker(5 * time.Millisecond)
	defer often.Stop()
	for left := 1; left > 0; <-often.C { // a connection updates the statistics when it ends
		query(t, db, &left, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'belay'")
	}
	return goroutines
}

// query reads one value.
func query(t testing.TB, db *pgx.Conn, to any, text string) {
	t.Helper()
	if err := db.QueryRow(t.Context(), text).Scan(to); err != nil {
		t.Fatal(err)
	}
}

// multiply copies a parked session many times.
func multiply(t testing.TB, db *pgx.Conn) {
	t.Helper()
	const name = "'parked-' || n"
	for _, table := range []struct{ name, columns, values string }{
		{"sessions", "id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state", name + ", epoch, '', created, changed, last, response, compaction, keep, turn_state, state"},
		{"messages", "session, seq, body", name + ", seq, body"},
		{"calls", "session, message, idx, id, tool, state, input, wait, resumes, result", name + ", message, idx, id, tool, state, input, wait || n, resumes, result"},
		{"approvals", "id, session, response, turn, call_id, tool, hash, asked_by, asked, expires, decision, floor", "id || n, " + name + ", response, turn, call_id, tool, hash, asked_by, asked, expires, decision, floor"},
		{"approval_words", "id, reason, answer, pattern", "id || n, reason, answer, pattern"},
	} {
		text := fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %[1]s x, generate_series(1, %[4]d) n", table.name, table.columns, table.values, parked-1)
		if _, err := db.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	pending := 0
	query(t, db, &pending, `SELECT count(*) FROM approvals JOIN sessions ON sessions.id = session JOIN approval_words w ON w.id = approvals.id
		WHERE decision = '' AND turn_state = 'parked'`)
	if pending != parked {
		t.Fatalf("%d approvals wait, want %d", pending, parked)
	}
	// Update the statistics now. Otherwise autovacuum would read the tables later and
	// change them.
	if _, err := db.Exec(t.Context(), "ANALYZE; SELECT pg_stat_force_next_flush()"); err != nil {
		t.Fatal(err)
	}
}

// beats waits for n heartbeats of the store.
func beats(t testing.TB, db *pgx.Conn, n int) {
	t.Helper()
	often := time.NewTicker(5 * time.Millisecond)
	defer often.Stop()
	seen, last := 0, ""
	for until := time.After(time.Minute); seen <= n; {
		now := ""
		query(t, db, &now, "SELECT max(seen)::text FROM holders")
		if now != last {
			seen, last = seen+1, now
		}
		select {
		case <-often.C:
		case <-until:
			t.Fatalf("the store said %d times that it lives, want %d", seen, n)
		}
	}
}

// scansOf returns how often the server has read the tables that grow with pending
// approvals.
func scansOf(t testing.TB, db *pgx.Conn) (scans string) {
	t.Helper()
	query(t, db, &scans, `SELECT string_agg(relname || ' ' || seq_scan + coalesce(idx_scan, 0), ', ' ORDER BY relname)
		FROM pg_stat_user_tables WHERE relname IN ('approvals', 'approval_words', 'calls', 'messages')`)
	return scans
}
