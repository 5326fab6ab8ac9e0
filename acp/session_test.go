package acp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/acp"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// A loaded session sends its whole history, and the conversation continues. A resumed session
// sends none. Both are listed.
//
// SPEC U-05
func TestSessionIsLoadedListedAndResumed(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"notes.md": "old\n"})
	c := connect(t, hosts(dir, scripted.Step{
		Thinking: "Let me look.", Text: "I read it.", Calls: []scripted.Call{{ID: "r", Tool: "read", Input: `{"path": "notes.md"}`}, {ID: "x", Tool: "read", Input: `{"path": "none.md"}`}},
	}, scripted.Step{Text: "It says old."}, scripted.Step{Expect: &scripted.Expect{User: "And now?"}, Text: "Still old."}, scripted.Step{Text: "Yes."}), dir)
	c.initialize(nil)
	session := c.open()
	c.say(session, "What do the notes say?")
	c.updates = nil
	if _, err := c.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: session, Cwd: dir, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	at := 0
	history := c.transcript()
	for _, want := range []string{
		`"What do the notes say?","type":"text"},"sessionUpdate":"user_message_chunk"`, "Let me look.", "I read it.",
		`"sessionUpdate":"tool_call"`, `"sessionUpdate":"tool_call_update"`, "It says old.",
	} {
		next := strings.Index(history[at:], want)
		if next < 0 {
			t.Fatalf("the history has no %s after character %d:\n%s", want, at, history)
		}
		at += next
	}
	if _, end := c.call("x"); *end.Status != sdk.ToolCallStatusFailed {
		t.Errorf("the failed call is %s", *end.Status)
	}
	c.say(session, "And now?")
	list, err := c.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: &dir})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != session || list.Sessions[0].Cwd != dir || *list.Sessions[0].Title != "What do the notes say?" {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if _, err := c.CloseSession(t.Context(), sdk.CloseSessionRequest{SessionId: session}); err != nil {
		t.Error(err)
	}
	c.updates = nil
	if _, err := c.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: session, Cwd: dir}); err != nil {
		t.Fatal(err)
	}
	if got := c.text(); got != "" {
		t.Errorf("the resumed session sent %q", got)
	}
	c.say(session, "Really?")
	if got := c.text(); got != "Yes." {
		t.Errorf("the agent said %q", got)
	}
}

// One process serves several sessions at once, also in several projects. Cancelling one leaves
// the others alone. A second prompt in a session is refused and does not disturb the first.
//
// SPEC U-05
func TestSeveralSessions(t *testing.T) {
	t.Parallel()
	here, there := project(t, nil), project(t, nil)
	begun, release := make(chan struct{}, 2), make(chan struct{})
	step := scripted.Step{Compute: func(ctx context.Context, _ *belay.Request) (scripted.Step, error) {
		begun <- struct{}{}
		select {
		case <-release:
			return scripted.Step{Text: "released"}, nil
		case <-ctx.Done():
			return scripted.Step{}, context.Cause(ctx)
		}
	}}
	c := connect(t, hosts(here, step, step), here)
	c.initialize(nil)
	first := c.open()
	c.dir = there
	second := c.open()
	type ended struct {
		reason sdk.StopReason
		err    error
	}
	ends := map[sdk.SessionId]chan ended{first: make(chan ended, 1), second: make(chan ended, 1)}
	for id, end := range ends {
		go func() {
			out, err := c.Prompt(context.Background(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("Wait.")}})
			end <- ended{out.StopReason, err}
		}()
	}
	<-begun
	<-begun
	if _, err := c.Prompt(t.Context(), sdk.PromptRequest{SessionId: first, Prompt: []sdk.ContentBlock{sdk.TextBlock("Me too.")}}); err == nil || !strings.Contains(err.Error(), "a prompt is running") {
		t.Errorf("a second prompt: %v", err)
	}
	if err := c.Cancel(t.Context(), sdk.CancelNotification{SessionId: first}); err != nil {
		t.Fatal(err)
	}
	if got := <-ends[first]; got.err != nil || got.reason != sdk.StopReasonCancelled {
		t.Errorf("the cancelled turn: %+v", got)
	}
	close(release)
	if got := <-ends[second]; got.err != nil || got.reason != sdk.StopReasonEndTurn {
		t.Errorf("the other turn: %+v", got)
	}
	for _, dir := range []string{here, there} {
		if _, err := os.Stat(filepath.Join(dir, ".belay", "belay.db")); err != nil {
			t.Errorf("the project has no store of its own: %v", err)
		}
	}
}

// Listing the sessions of a directory that has none leaves nothing behind.
func TestListingMakesNoStore(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	list, err := c.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: &c.dir})
	if err != nil || len(list.Sessions) != 0 {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if _, err := os.Stat(filepath.Join(c.dir, ".belay")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the listing made a directory: %v", err)
	}
}

// Without a model the editor learns what is missing: at initialize as a way to log in, and at
// session/new as the error of the protocol for that.
//
// SPEC U-05
func TestWithoutAModel(t *testing.T) {
	t.Parallel()
	dir := project(t, nil)
	opts := options(dir)
	opts.Model = nil
	c := connect(t, acp.Hosts(opts), dir)
	out := c.initialize(nil)
	if len(out.AuthMethods) != 1 || !strings.Contains(*out.AuthMethods[0].Agent.Description, "ANTHROPIC_API_KEY") {
		t.Errorf("the ways to log in are %+v", out.AuthMethods)
	}
	_, err := c.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: dir, McpServers: []sdk.McpServer{}})
	if e, ok := errors.AsType[*sdk.RequestError](err); !ok || e.Code != -32000 || !strings.Contains(e.Message, "there is no model") {
		t.Errorf("session/new: %v", err)
	}
	if _, err := c.Authenticate(t.Context(), sdk.AuthenticateRequest{MethodId: "key"}); err == nil {
		t.Error("the login succeeded without a key")
	}
}

// The slash commands and the skills of the project are advertised, and run when the user
// types them.
//
// SPEC U-05
func TestCommandsAreAdvertised(t *testing.T) {
	t.Parallel()
	c := start(t, map[string]string{
		".belay/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: Tidies up.\n---\nTidy carefully.\n",
	}, scripted.Step{Expect: &scripted.Expect{User: "now"}, Text: "Tidied."})
	session := c.open()
	var names []string
	c.await("the commands", func(all []sdk.SessionNotification) bool {
		for _, n := range all {
			if u := n.Update.AvailableCommandsUpdate; u != nil && n.SessionId == session {
				for _, a := range u.AvailableCommands {
					names = append(names, a.Name)
				}
				return true
			}
		}
		return false
	})
	if !slices.Contains(names, "compact") || !slices.Contains(names, "tidy") {
		t.Errorf("the commands are %v", names)
	}
	c.say(session, "/help")
	c.say(session, "/tidy now")
	if got := c.text(); !strings.Contains(got, "/compact: ") || !strings.HasSuffix(got, "Tidied.") {
		t.Errorf("the agent said %q", got)
	}
}

// The directories that the editor adds can be used as the project can.
//
// SPEC U-05
func TestMoreDirectories(t *testing.T) {
	t.Parallel()
	dir, more := project(t, nil), project(t, map[string]string{"a.txt": "from elsewhere\n"})
	read := scripted.Step{Calls: []scripted.Call{{ID: "r", Tool: "read", Input: `{"path": "` + filepath.ToSlash(more) + `/a.txt"}`}}}
	c := connect(t, hosts(dir, read, scripted.Step{Text: "done"}), dir)
	c.initialize(nil)
	out, err := c.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: dir, AdditionalDirectories: []string{more}, McpServers: []sdk.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	c.say(out.SessionId, "Read it.")
	if _, end := c.call("r"); *end.Status != sdk.ToolCallStatusCompleted || !strings.Contains(end.Content[0].Content.Content.Text.Text, "from elsewhere") {
		t.Errorf("the result is %+v", end)
	}
}

// A program serves an agent of its own.
func TestAgentOfAProgram(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	agent, err := belay.New(scripted.New([]scripted.Step{{Text: "Hello."}}, nil), &belay.Options{Store: store, OnAsk: belay.AskPark})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Close(context.Background()) }()
	dir := project(t, nil)
	c := connect(t, acp.Fixed(agent, store, dir), dir)
	if out := c.initialize(nil); len(out.AuthMethods) != 0 {
		t.Errorf("the ways to log in are %+v", out.AuthMethods)
	}
	session := c.open()
	c.say(session, "Hi.")
	if got := c.text(); got != "Hello." {
		t.Errorf("the agent said %q", got)
	}
}
