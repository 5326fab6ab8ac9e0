package acp_test

import (
	"context"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay/provider/scripted"
)

// The permission modes are the modes of the session. Switching works while a turn runs: the
// next call is checked in the new mode.
//
// SPEC U-05
func TestModeIsSwitchedWhileATurnRuns(t *testing.T) {
	t.Parallel()
	write := func(id string) scripted.Step {
		return scripted.Step{Calls: []scripted.Call{{ID: id, Tool: "write", Input: `{"path": "` + id + `.md", "content": "x"}`}}}
	}
	c := start(t, nil, write("a"), write("b"), scripted.Step{Text: "done"}, write("c"), scripted.Step{Text: "done"})
	out, err := c.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: c.dir, McpServers: []sdk.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	session := out.SessionId
	if out.Modes == nil || len(out.Modes.AvailableModes) < 4 || out.Modes.CurrentModeId == "strict" || len(out.ConfigOptions) == 0 || out.ConfigOptions[0].Select.Id != "mode" {
		t.Fatalf("the modes are %+v, %+v", out.Modes, out.ConfigOptions)
	}
	if _, err := c.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: session, ModeId: "strict"}); err != nil {
		t.Fatal(err)
	}
	c.permit = func(ctx context.Context, _ *sdk.RequestPermissionRequest) (sdk.RequestPermissionOutcome, error) {
		_, err := c.SetSessionConfigOption(ctx, sdk.SetSessionConfigOptionRequest{ValueId: &sdk.SetSessionConfigOptionValueId{SessionId: session, ConfigId: "mode", Value: "standard"}})
		return selected("allow-once"), err
	}
	c.say(session, "Write both.")
	if len(c.seen) != 1 || string(c.seen[0].ToolCall.ToolCallId) != "a" {
		t.Errorf("the editor was asked about %+v", c.seen)
	}
	c.await("the new mode", func(all []sdk.SessionNotification) bool {
		for _, n := range all {
			if u := n.Update.CurrentModeUpdate; u != nil && u.CurrentModeId == "standard" {
				return true
			}
		}
		return false
	})
	if _, err := c.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: session, ModeId: "read-only"}); err != nil {
		t.Fatal(err)
	}
	c.say(session, "Another one.")
	if _, end := c.call("c"); *end.Status != sdk.ToolCallStatusFailed || !strings.Contains(end.Content[0].Content.Content.Text.Text, "read-only") {
		t.Errorf("the call in read-only mode: %+v", end)
	}
}
