package acp_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay/provider/scripted"
)

// A whole turn: thinking and text are streamed, calls have a kind, a title, a place and an
// input, and changes of files have diffs.
//
// SPEC U-05
func TestTurnReachesTheEditor(t *testing.T) {
	t.Parallel()
	c := start(t, map[string]string{"notes.md": "old\n"}, scripted.Step{
		Thinking: "Let me look.", Text: "I read it.",
		Calls: []scripted.Call{{ID: "r", Tool: "read", Input: `{"path": "notes.md"}`}},
	}, scripted.Step{
		Calls: []scripted.Call{
			{ID: "e", Tool: "edit", Input: `{"path": "notes.md", "old_string": "old", "new_string": "new"}`},
			{ID: "w", Tool: "write", Input: `{"path": "more.md", "content": "more\n"}`},
			{ID: "s", Tool: "shell", Input: `{"command": "echo hello"}`},
		},
	}, scripted.Step{
		Calls: []scripted.Call{{ID: "o", Tool: "write", Input: `{"path": "more.md", "content": "less\n"}`}},
	}, scripted.Step{Text: "Done."})
	session := c.open()
	if reason := c.say(session, "Change the notes."); reason != sdk.StopReasonEndTurn {
		t.Errorf("the turn ended with %s", reason)
	}
	if got := c.text(); got != "I read it.Done." {
		t.Errorf("the agent said %q", got)
	}
	if !strings.Contains(c.transcript(), `"sessionUpdate":"agent_thought_chunk"`) {
		t.Error("the editor did not get the thoughts")
	}
	read, end := c.call("r")
	if read.Kind != sdk.ToolKindRead || read.Title != "Read `notes.md`" || len(read.Locations) != 1 || read.Locations[0].Path != filepath.Join(c.dir, "notes.md") {
		t.Errorf("the call of read is %+v", read)
	}
	if input, _ := read.RawInput.(map[string]any); input["path"] != "notes.md" {
		t.Errorf("the input of read is %v", read.RawInput)
	}
	if *end.Status != sdk.ToolCallStatusCompleted || !strings.Contains(end.Content[0].Content.Content.Text.Text, "old") {
		t.Errorf("the result of read is %+v", end)
	}
	for _, test := range []struct{ call, path, before, after string }{
		{"e", "notes.md", "old", "new"},
		{"w", "more.md", "", "more\n"},
		{"o", "more.md", "more\n", "less\n"},
	} {
		start, end := c.call(test.call)
		if start.Kind != sdk.ToolKindEdit || len(start.Content) != 1 || start.Content[0].Diff == nil {
			t.Errorf("%s: the change is %+v", test.call, start)
			continue
		}
		diff, before := start.Content[0].Diff, ""
		if diff.OldText != nil {
			before = *diff.OldText
		}
		if diff.Path != filepath.Join(c.dir, test.path) || before != test.before || diff.NewText != test.after || (test.call == "w") != (diff.OldText == nil) {
			t.Errorf("%s: the diff is %q → %q of %s", test.call, before, diff.NewText, diff.Path)
		}
		if *end.Status != sdk.ToolCallStatusCompleted || end.Content != nil {
			t.Errorf("%s: the result replaces the diff: %+v", test.call, end)
		}
	}
	shell, end := c.call("s")
	if shell.Kind != sdk.ToolKindExecute || shell.Title != "`echo hello`" || !strings.Contains(end.Content[0].Content.Content.Text.Text, "hello") {
		t.Errorf("the command is %+v, %+v", shell, end)
	}
	if text, err := os.ReadFile(filepath.Join(c.dir, "notes.md")); err != nil || string(text) != "new\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// What the user refers to reaches the model: a link as the name that tools use, an embedded
// file as a part of its own, an image as an image. A /word in an embedded file is no command.
//
// SPEC U-05
func TestPromptHasFilesAndImages(t *testing.T) {
	t.Parallel()
	c := start(t, nil, scripted.Step{Text: "seen"})
	session := c.open()
	image := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n"))
	_, err := c.Prompt(t.Context(), sdk.PromptRequest{SessionId: session, Prompt: []sdk.ContentBlock{
		sdk.TextBlock("Compare "), sdk.ResourceLinkBlock("a.go", "file://"+c.dir+"/sub/a.go"), sdk.TextBlock(" with "),
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file://" + c.dir + "/b.md", Text: "/stop\n"}}),
		sdk.ImageBlock(image, "image/png"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.text(); got != "seen" {
		t.Fatalf("the model was not asked: %q", got)
	}
	c.updates = nil
	if _, err := c.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: session, Cwd: c.dir, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	got := c.transcript()
	for _, want := range []string{"Compare `sub/a.go` with `b.md`", "Content of `b.md`, from the editor", `"type":"image"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the history has no %q:\n%s", want, got)
		}
	}
}

// An editor that shows the terminals of agents gets the output of commands as a terminal.
//
// SPEC U-05
func TestCommandIsShownAsTerminal(t *testing.T) {
	t.Parallel()
	dir := project(t, nil)
	c := connect(t, hosts(dir, scripted.Step{Calls: []scripted.Call{{ID: "s", Tool: "shell", Input: `{"command": "echo hello; exit 3"}`}}}, scripted.Step{Text: "failed"}), dir)
	c.initialize(map[string]any{"terminal_output": true})
	c.say(c.open(), "Run it.")
	begun, end := c.call("s")
	if len(begun.Content) != 1 || begun.Content[0].Terminal == nil || begun.Content[0].Terminal.TerminalId != "s" {
		t.Fatalf("the call has no terminal: %+v", begun)
	}
	all := c.transcript()
	exit, _ := end.Meta["terminal_exit"].(map[string]any)
	if !strings.Contains(all, `"terminal_output":{"data":"hello`) || exit["exit_code"] != float64(3) {
		t.Errorf("the output of the terminal is not there:\n%s", all)
	}
}
