package acp_test

import (
	"context"
	"iter"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/acp"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// slowStore is a store that can be held up. Like a database, it reads nothing for a context that
// has ended.
type slowStore struct {
	belay.ListStore

	reading chan struct{} // gets a value when sessions are read
	held    chan struct{} // reading sessions waits until this is closed
}

func (s *slowStore) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	select {
	case s.reading <- struct{}{}:
	default:
	}
	<-s.held
	return s.ListStore.Sessions(ctx, filter)
}

func (s *slowStore) Approvals(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
	if err := ctx.Err(); err != nil {
		return func(yield func(belay.Approval, error) bool) { yield(belay.Approval{}, err) }
	}
	return s.ListStore.Approvals(ctx, filter)
}

// waiting is an editor with a session whose turn waits for a decision.
func waiting(t *testing.T) (*editor, sdk.SessionId, *slowStore) {
	t.Helper()
	store := &slowStore{memstore.New(nil), make(chan struct{}, 1), make(chan struct{})}
	close(store.held)
	tool := belay.NewRawTool(belay.ToolDeclaration{Name: "work", Description: "works", InputSchema: []byte(`{"type":"object"}`)}, func(context.Context, *belay.Invocation) (belay.Result, error) {
		return belay.Result{Text: "done"}, nil
	}, nil)
	guard := belay.ToolPre.On("guard", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Ask("is it fine?"), nil }, &hook.Options{Capabilities: hook.CanAsk})
	agent, err := belay.New(scripted.New([]scripted.Step{{Calls: []scripted.Call{{ID: "a", Tool: "work", Input: `{}`}}}, {Text: "next"}}, nil), &belay.Options{
		Store: store.ListStore, OnAsk: belay.AskPark, Tools: []belay.Tool{tool}, Hooks: []hook.Subscription{guard},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Close(context.Background()) })
	dir := project(t, nil)
	c := connect(t, acp.Fixed(agent, store, dir), dir)
	c.initialize(nil)
	session := c.open()
	c.say(session, "Go.") // this editor cannot ask, so the turn waits
	return c, session, store
}

// A prompt that is cancelled before it reaches the turn that waits ends as cancelled, and not with
// an error.
//
// SPEC U-05
func TestCancelBeforeTheTurnContinues(t *testing.T) {
	t.Parallel()
	c, session, store := waiting(t)
	store.held = make(chan struct{})
	type ended struct {
		out sdk.PromptResponse
		err error
	}
	end := make(chan ended, 1)
	select {
	case <-store.reading:
	default:
	}
	go func() {
		out, err := c.Prompt(context.Background(), sdk.PromptRequest{SessionId: session, Prompt: []sdk.ContentBlock{sdk.TextBlock("Go on.")}})
		end <- ended{out, err}
	}()
	<-store.reading
	if err := c.Cancel(t.Context(), sdk.CancelNotification{SessionId: session}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Authenticate(t.Context(), sdk.AuthenticateRequest{MethodId: "none"}); err == nil { // its response says that the cancellation has arrived
		t.Fatal("there is no such method")
	}
	close(store.held)
	if got := <-end; got.err != nil || got.out.StopReason != sdk.StopReasonCancelled {
		t.Errorf("the prompt ended with %q, %v", got.out.StopReason, got.err)
	}
	if reason := c.say(session, "Something else."); reason != sdk.StopReasonEndTurn || c.text() == "" {
		t.Errorf("the next prompt ended with %s: %q", reason, c.text())
	}
}

// A session that is loaded while its turn waits says so: the question comes with the next message.
//
// SPEC U-05
func TestLoadedSessionSaysThatItWaits(t *testing.T) {
	t.Parallel()
	c, session, _ := waiting(t)
	c.permit = func(context.Context, *sdk.RequestPermissionRequest) (sdk.RequestPermissionOutcome, error) {
		return selected("allow-once"), nil
	}
	if _, err := c.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: session, Cwd: c.dir, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	c.await("that the turn waits", func(all []sdk.SessionNotification) bool {
		for _, n := range all {
			if u := n.Update.AgentThoughtChunk; u != nil && u.Content.Text != nil && u.Content.Text.Text == "The last turn waits for a decision or an answer: send a message to continue it.\n" {
				return true
			}
		}
		return false
	})
}
