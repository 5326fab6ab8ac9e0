package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
)

type note struct {
	Text string `json:"text"`
}

// noteTool notes a text, and says what it noted.
func noteTool(ran func(text string)) belay.Tool {
	return belay.NewTool("note", "Takes a note.", func(_ context.Context, in note) (string, error) {
		ran(in.Text)
		return "noted: " + in.Text, nil
	}, nil)
}

// pass is a gate that lets everything through.
var pass = belay.ToolPre.On("pass", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Pass, nil }, nil)

// A turn takes 2 + 2 x tool steps commits, and with nobody else writing each is
// one transaction.
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
		if got := after.Transactions - before.Transactions; got != want+1 { // the session was opened
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

// What cannot be stored does not happen: the disk is full when the tool's intent is
// to be stored, so the tool does not run, and the turn says why.
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

// While the journal cannot be written gates deny; then they go on, and no record is
// lost.
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

// The records of hooks are searched for secrets, as they are in the file and in
// its log.
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

// A whole turn is searched: prompt, input, output, error, environment and the answer
// of a model are in the transcript and nowhere else. So are the words of those who ask
// about a call and of those who decide, which may quote it, and hold no secrets.
//
// SPEC J-02, P-18
func TestSecretsOfATurn(t *testing.T) {
	ctx, s := t.Context(), open(t, nil)
	t.Setenv("BELAY_TEST_TOKEN", "planted-environment")
	asks := belay.ToolPre.On("asks", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.Ask("planted-reason: it notes " + string(call.Input()) + " and sends " + inWords("reason")), nil
	}, nil)
	fails := belay.ToolPost.On("fails", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
		return belay.ToolReaction{}, errors.New("planted-error")
	}, nil)
	behind := belay.TurnPostTurn.On("behind", func(context.Context, belay.TurnEnded) (belay.Note, error) { return belay.Note{}, nil },
		&hook.Options{Execution: hook.Background})
	model := scripted.New([]scripted.Step{{Text: "planted-answer", Calls: []scripted.Call{{Tool: "note", Input: `{"text": "planted-input, password: secret-of-the-input"}`}}}, {Text: "planted-end"}}, nil)
	agent, err := belay.New(model, &belay.Options{
		Store: s, Tools: []belay.Tool{noteTool(func(string) {})}, Hooks: []hook.Subscription{asks, fails, behind}, OnAsk: belay.AskPark,
		Authorizer: patternFloor{},
	})
	if err != nil {
		t.Fatal(err)
	}
	session := agent.Session("a")
	turn, err := session.Turn(ctx, "planted-prompt")
	if err != nil || len(turn.Waits) != 1 {
		t.Fatalf("the turn is %+v, %v, want it parked", turn, err)
	}
	asked := turn.Waits[0].Approval
	if _, err := agent.Decide(ctx, belay.Decision{
		Approval: asked.ID, Hash: asked.Hash, Allow: true, By: "ann", Reason: "planted-answer " + inWords("answer") + strings.Repeat("é", 600) + "cut off",
		Scope: belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: "note(planted-pattern *)"},
	}); err != nil {
		t.Fatal(err)
	}
	if turn, err := belay.Await(session.Resume(ctx)); err != nil || turn.Reason != belay.EndTurn {
		t.Fatalf("the turn is %+v, %v", turn, err)
	}
	if err := agent.Close(ctx); err != nil {
		t.Fatal(err)
	}
	tables, rest := dumpTables(t, s), 0
	for name, text := range tables {
		switch name {
		case "sessions", "messages", "calls", "approval_words", "job_inputs": // the transcript, words about it, and what was given to work that waits
			if name != "job_inputs" && !strings.Contains(text, "planted-") {
				t.Errorf("the table %s does not hold what was said: %s", name, text)
			}
		default:
			if strings.Contains(text, "planted-") {
				t.Errorf("the table %s holds what was said: %s", name, text)
			}
			rest += len(text)
		}
	}
	for _, name := range []string{"approvals", "approval_words"} {
		if strings.Contains(tables[name], "secret-of") {
			t.Errorf("the table %s holds secrets: %s", name, tables[name])
		}
	}
	if rest == 0 || strings.Contains(tables["approval_words"], "cut off") {
		t.Errorf("the other tables hold %d bytes, and the words %q: what is not for one call is cut at 512 characters", rest, tables["approval_words"])
	}
	for name, want := range map[string]string{
		"approvals": asked.Hash, "approval_words": "planted-reason", "sessions": "planted-pattern", "runs": "behind", "river_job": "behind",
	} {
		if !strings.Contains(tables[name], want) {
			t.Errorf("the table %s does not hold %q: the search did not see everything", name, want)
		}
	}
	for approval, err := range s.Approvals(ctx, belay.ApprovalFilter{}) {
		if err != nil || !strings.HasPrefix(approval.Reason, "planted-reason") || !strings.HasPrefix(approval.Decided.Reason, "planted-answer") ||
			approval.Decided.Scope.Pattern != "note(planted-pattern *)" {
			t.Errorf("the approval is %+v decided as %+v, %v: want it with its words", approval, approval.Decided, err)
		}
	}
}

// inWords is a text as people and rules write it about a call, with secrets of every
// shape in it. Each says whose it is.
func inWords(whose string) string {
	text := "curl -H 'Authorization: Bearer SECRET' --token SECRET -u ann:SECRET https://ann:SECRET@git.example/?access_token=SECRET TOKEN=SECRET " +
		`{"password":"SECRET"} key: SECRET sk-ant-SECRET ghp_secretofNAME12 AKIASECRETOFNAME eyJhbGciOiJIUzI1NiJ9.secret-of-NAME.x xoxb-SECRET`
	return strings.NewReplacer("SECRET", "secret-of-the-"+whose, "NAME", whose, "AKIASECRETOFNAME", "AKIASECRETOF"+strings.ToUpper(whose)).Replace(text)
}

// secretWords are what is left of inWords where nobody looked.
var secretWords = regexp.MustCompile(`(?i)secret-?of-?[a-z-]+`)

// What is put in words about approvals is searched in the files and in the log of the
// store, too: whoever asks, whatever is answered, and when it is decided.
//
// SPEC J-02, P-18
func TestSecretsOfApprovals(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	epoch := hold(t, s, "a").Epoch
	asked := func(id string) belay.Approval {
		return belay.Approval{
			ID: id, Session: "a", Turn: "turn", Call: "call", Tool: "shell", Hash: "sha256:" + id, Asked: time.Now(),
			Reason: "the reason " + inWords("reason"), By: "rule shell(" + inWords("rule") + ")",
		}
	}
	answered := belay.Decision{
		Approval: "two", Hash: "sha256:two", Allow: true, By: "ann " + inWords("person"), Reason: "the answer " + inWords("answer"), Time: time.Now(),
		Scope: belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: "shell(" + inWords("pattern") + ")"},
	}
	decided := asked("two")
	decided.Decided = &answered
	commit(t, s, &belay.Commit{Session: "a", Epoch: epoch, Approvals: []belay.Approval{asked("one"), decided}})
	later := belay.Decision{Approval: "one", Hash: "sha256:one", Allow: true, By: "ann " + inWords("person"), Reason: "the answer " + inWords("answer"), Time: time.Now(), Scope: answered.Scope}
	if _, err := s.Decide(ctx, later); !errors.Is(err, belay.ErrScope) {
		t.Errorf("a pattern with a secret gives %v, want that it is refused", err)
	}
	later.Scope = belay.ApprovalScope{}
	if _, err := s.Decide(ctx, later); err != nil {
		t.Fatal(err)
	}
	all, err := dumpFiles(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, word := range secretWords.FindAll(all, -1) {
		found[string(word)] = true
	}
	if len(found) > 0 {
		t.Errorf("the files hold %v", found)
	}
	for _, word := range []string{"the reason curl", "the answer curl", "[REDACTED]"} {
		if !bytes.Contains(all, []byte(word)) {
			t.Errorf("the files do not hold %q: the search did not see everything", word)
		}
	}
}

// secretFloor is a floor that asks in the name of a rule with a secret in it.
type secretFloor struct{ patternFloor }

func (secretFloor) Authorize(context.Context, belay.ToolCall) (belay.Authorization, error) {
	return belay.Authorization{Decision: belay.ToolAsk, By: "rule note(" + inWords("rule") + ")"}, nil
}

// A rule whose name holds a secret is on record without it, and is known again: what
// was approved runs, and what was granted is not asked about again.
//
// SPEC P-18
func TestApprovalOfARuleWithASecret(t *testing.T) {
	t.Parallel()
	ctx, s, noted := t.Context(), open(t, nil), 0
	call := []scripted.Call{{Tool: "note", Input: `{"text": "one"}`}}
	model := scripted.New([]scripted.Step{{Calls: call}, {Calls: call}, {Text: "done"}}, nil)
	agent, err := belay.New(model, &belay.Options{Store: s, Tools: []belay.Tool{noteTool(func(string) { noted++ })}, OnAsk: belay.AskPark, Authorizer: secretFloor{}})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := agent.Session("a").Turn(ctx, "note it")
	if err != nil || len(turn.Waits) != 1 {
		t.Fatalf("the turn is %+v, %v, want it parked", turn, err)
	}
	asked := turn.Waits[0].Approval
	if _, err := agent.Decide(ctx, belay.Decision{Approval: asked.ID, Hash: asked.Hash, Allow: true, By: "ann", Scope: belay.ApprovalScope{Kind: belay.ScopeSession}}); err != nil {
		t.Fatal(err)
	}
	if turn, err := belay.Await(agent.Session("a").Resume(ctx)); err != nil || turn.Reason != belay.EndTurn || noted != 2 {
		t.Errorf("the turn is %+v, %v, and the tool ran %d times, want both calls run", turn, err, noted)
	}
	if err := agent.Close(ctx); err != nil {
		t.Error(err)
	}
}

// patternFloor is a floor that takes every pattern and asks about nothing.
type patternFloor struct{}

func (patternFloor) Authorize(context.Context, belay.ToolCall) (belay.Authorization, error) {
	return belay.Authorization{}, nil
}

func (patternFloor) CheckPattern(string) error { return nil }

func (patternFloor) Covers(context.Context, string, belay.ToolCall) (bool, error) { return true, nil }

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

// lockOut keeps everybody from writing until the returned function is called.
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
