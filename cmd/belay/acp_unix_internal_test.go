//go:build unix

package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
)

// acpEditor is an editor that approves everything and keeps the text of the agent.
type acpEditor struct {
	sdk.Client // the methods that no test needs are not there

	text  chan string
	asked chan string
}

func (e *acpEditor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	if m := n.Update.AgentMessageChunk; m != nil && m.Content.Text != nil {
		e.text <- m.Content.Text.Text
	}
	return nil
}

func (e *acpEditor) RequestPermission(_ context.Context, p sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	e.asked <- *p.ToolCall.Title
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(p.Options[0].OptionId)}, nil
}

// "belay acp" speaks the Agent Client Protocol on standard input and output, and nothing else.
// Its user decides approvals in the editor. It ends when the editor closes the stream. Other
// commands see the same session.
//
// SPEC U-05
func TestACP(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{
		"s.yaml": "follow_transcript: true\nsteps:\n  - calls: [{tool: write, input: {path: notes.md, content: x}}]\n  - text: It is written.\n",
	})
	cmd := command(t, dir, "acp", "--model", "scripted/s.yaml", "--mode", "strict", "--log", "acp.log")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	editor := &acpEditor{text: make(chan string, 100), asked: make(chan string, 1)}
	conn := sdk.NewClientSideConnection(editor, in, out)
	conn.SetLogger(slog.New(slog.DiscardHandler))
	if _, err := conn.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber}); err != nil {
		t.Fatal(err)
	}
	session, err := conn.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: dir, McpServers: []sdk.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	end, err := conn.Prompt(t.Context(), sdk.PromptRequest{SessionId: session.SessionId, Prompt: []sdk.ContentBlock{sdk.TextBlock("write it")}})
	if err != nil || end.StopReason != sdk.StopReasonEndTurn {
		t.Errorf("the turn ended with %+v, %v", end, err)
	}
	if title := <-editor.asked; title != "Write `notes.md`" {
		t.Errorf("the editor was asked about %q", title)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "notes.md")); err != nil || string(text) != "x" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	<-conn.Done()
	if err := cmd.Wait(); err != nil {
		t.Errorf("belay acp ended with %v", err)
	}
	if log, err := os.ReadFile(filepath.Join(dir, "acp.log")); err != nil || !strings.Contains(string(log), "method=session/prompt") {
		t.Errorf("the log is %q, %v", log, err)
	}
	if out, errs, code := belay(t, dir, "show", string(session.SessionId)); code != 0 || !strings.Contains(out, "It is written.") {
		t.Errorf("show: exit code %d, %s, %s", code, out, errs)
	}
}
