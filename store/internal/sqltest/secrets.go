package sqltest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/provider/scripted"
)

type note struct {
	Text string `json:"text"`
}

// NoteTool is a tool that returns the text of its input.
func NoteTool(ran func(text string)) belay.Tool {
	return belay.NewTool("note", "Takes a note.", func(_ context.Context, in note) (string, error) {
		ran(in.Text)
		return "noted: " + in.Text, nil
	}, nil)
}

// Pass is a hook at tool.pre that allows every call.
var Pass = belay.ToolPre.On("pass", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Pass, nil }, nil)

// SecretsOfATurn searches the tables after a whole turn. The prompt, the input, the output,
// the error, the environment and the model's answer must be in the transcript only. The
// reasons of questions and decisions can quote a call, so they must contain no secrets.
func (b *Backend) SecretsOfATurn(t *testing.T) {
	t.Helper()
	ctx, s := t.Context(), b.Open(t, nil)
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
		Store: s, Tools: []belay.Tool{NoteTool(func(string) {})}, Hooks: []hook.Subscription{asks, fails, behind}, OnAsk: belay.AskPark,
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
	tables, rest := b.Tables(t, s), 0
	for name, text := range tables {
		switch name {
		case "sessions", "session_labels", "messages", "calls", "approval_words", "job_inputs": // the transcript, texts about the transcript, and inputs of waiting jobs
			if name != "job_inputs" && name != "session_labels" && !strings.Contains(text, "planted-") {
				t.Errorf("the table %s does not hold the conversation: %s", name, text)
			}
		default:
			if strings.Contains(text, "planted-") {
				t.Errorf("the table %s holds parts of the conversation: %s", name, text)
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
		t.Errorf("the other tables hold %d bytes, and the words %q: texts must be cut at 512 characters", rest, tables["approval_words"])
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

// RefusalThatQuotes asserts that a refused decision is refused in the words of Belay, also if it
// quotes a text that looks like a failure of the database.
func (b *Backend) RefusalThatQuotes(t *testing.T) {
	t.Helper()
	s := b.Open(t, nil)
	asked := belay.Approval{ID: "one", Session: "a", Turn: "turn", Call: "call", Tool: "shell", Hash: "sha256:one", Asked: time.Now()}
	Commit(t, s, &belay.Commit{Session: "a", Epoch: Hold(t, s, "a").Epoch, Approvals: []belay.Approval{asked}})
	refusal := func(kind string) string {
		_, err := s.Decide(t.Context(), belay.Decision{Approval: "one", Hash: "sha256:one", Allow: true, By: "ann", Time: time.Now(), Scope: belay.ApprovalScope{Kind: belay.ScopeKind(kind)}})
		if !errors.Is(err, belay.ErrScope) {
			t.Fatalf("a decision with the scope %q gives %v, want ErrScope", kind, err)
		}
		return strings.ReplaceAll(err.Error(), kind, "KIND")
	}
	const failure = "sql: Scan error, sql: database is closed, closed pool"
	if got, want := refusal(failure), refusal("for ever"); got != want {
		t.Errorf("a decision that quotes a failure is refused with %q, want %q", got, want)
	}
}

// inWords returns a text that a person or a rule could write about a call. It contains
// secrets of every form, and each secret contains the value of whose.
func inWords(whose string) string {
	text := "curl -H 'Authorization: Bearer SECRET' --token SECRET -u ann:SECRET https://ann:SECRET@git.example/?access_token=SECRET TOKEN=SECRET " +
		`{"password":"SECRET"} key: SECRET sk-ant-SECRET ghp_secretofNAME12 AKIASECRETOFNAME eyJhbGciOiJIUzI1NiJ9.secret-of-NAME.x xoxb-SECRET`
	return strings.NewReplacer("SECRET", "secret-of-the-"+whose, "NAME", whose, "AKIASECRETOFNAME", "AKIASECRETOF"+strings.ToUpper(whose)).Replace(text)
}

// secretWords matches the secrets of inWords that were not redacted.
var secretWords = lazyregexp.New(`(?i)secret-?of-?[a-z-]+`)

// SecretsOfApprovals searches the files of the store for secrets from the reasons of
// questions and decisions.
func (b *Backend) SecretsOfApprovals(t *testing.T) {
	t.Helper()
	s, files := b.Private(t)
	ctx, epoch := t.Context(), Hold(t, s, "a").Epoch
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
	Commit(t, s, &belay.Commit{Session: "a", Epoch: epoch, Approvals: []belay.Approval{asked("one"), decided}})
	later := belay.Decision{Approval: "one", Hash: "sha256:one", Allow: true, By: "ann " + inWords("person"), Reason: "the answer " + inWords("answer"), Time: time.Now(), Scope: answered.Scope}
	if _, err := s.Decide(ctx, later); !errors.Is(err, belay.ErrScope) {
		t.Errorf("a pattern with a secret gives %v, want a rejection", err)
	}
	later.Scope = belay.ApprovalScope{}
	if _, err := s.Decide(ctx, later); err != nil {
		t.Fatal(err)
	}
	all, err := files()
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

// secretFloor is a floor that asks about every call, because of a rule that contains a
// secret.
type secretFloor struct{ patternFloor }

func (secretFloor) Authorize(context.Context, belay.ToolCall) (belay.Authorization, error) {
	return belay.Authorization{Decision: belay.ToolAsk, By: "rule note(" + inWords("rule") + ")"}, nil
}

// RuleWithASecret asserts that the store keeps the name of a rule without the secret in it.
// Belay must still recognise the rule: approved calls run, and Belay does not ask again
// about granted calls.
func (b *Backend) RuleWithASecret(t *testing.T) {
	t.Helper()
	ctx, s, noted := t.Context(), b.Open(t, nil), 0
	call := []scripted.Call{{Tool: "note", Input: `{"text": "one"}`}}
	model := scripted.New([]scripted.Step{{Calls: call}, {Calls: call}, {Text: "done"}}, nil)
	agent, err := belay.New(model, &belay.Options{Store: s, Tools: []belay.Tool{NoteTool(func(string) { noted++ })}, OnAsk: belay.AskPark, Authorizer: secretFloor{}})
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

// patternFloor is a floor that accepts every pattern and asks about no call.
type patternFloor struct{}

func (patternFloor) Authorize(context.Context, belay.ToolCall) (belay.Authorization, error) {
	return belay.Authorization{}, nil
}

func (patternFloor) CheckPattern(string) error { return nil }

func (patternFloor) Covers(context.Context, string, belay.ToolCall) (bool, error) { return true, nil }
