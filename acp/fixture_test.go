package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay/acp"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main() // the sandbox starts this test program again to confine commands
	if value, ok := os.LookupEnv(mcpValue); ok {
		serveMCP(value)
		return
	}
	os.Exit(m.Run())
}

// editor is an editor made of the SDK: it keeps what the agent sends.
type editor struct {
	*sdk.ClientSideConnection

	t   *testing.T
	dir string
	in  io.WriteCloser // to the agent

	// permit answers permission requests. Without it the editor fails them.
	permit func(ctx context.Context, p *sdk.RequestPermissionRequest) (sdk.RequestPermissionOutcome, error)
	served chan error // what Serve returned

	mu      sync.Mutex
	updates []sdk.SessionNotification
	changed chan struct{} // gets a value after each update
	seen    []*sdk.RequestPermissionRequest
}

func (c *editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	c.mu.Lock()
	c.updates = append(c.updates, n)
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return nil
}

func (c *editor) RequestPermission(ctx context.Context, p sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	c.mu.Lock()
	c.seen = append(c.seen, &p)
	c.mu.Unlock()
	if c.permit == nil {
		return sdk.RequestPermissionResponse{}, errors.New("this editor cannot ask")
	}
	outcome, err := c.permit(ctx, &p)
	return sdk.RequestPermissionResponse{Outcome: outcome}, err
}

var errNotOffered = errors.New("this editor does not offer it")

func (*editor) ReadTextFile(context.Context, sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error) {
	return sdk.ReadTextFileResponse{}, errNotOffered
}

func (*editor) WriteTextFile(context.Context, sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error) {
	return sdk.WriteTextFileResponse{}, errNotOffered
}

func (*editor) CreateTerminal(context.Context, sdk.CreateTerminalRequest) (sdk.CreateTerminalResponse, error) {
	return sdk.CreateTerminalResponse{}, errNotOffered
}

func (*editor) KillTerminal(context.Context, sdk.KillTerminalRequest) (sdk.KillTerminalResponse, error) {
	return sdk.KillTerminalResponse{}, errNotOffered
}

func (*editor) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (sdk.TerminalOutputResponse, error) {
	return sdk.TerminalOutputResponse{}, errNotOffered
}

func (*editor) ReleaseTerminal(context.Context, sdk.ReleaseTerminalRequest) (sdk.ReleaseTerminalResponse, error) {
	return sdk.ReleaseTerminalResponse{}, errNotOffered
}

func (*editor) WaitForTerminalExit(context.Context, sdk.WaitForTerminalExitRequest) (sdk.WaitForTerminalExitResponse, error) {
	return sdk.WaitForTerminalExitResponse{}, errNotOffered
}

// project makes a directory with files.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// options are options of hosts that do not depend on the user's own settings.
func options(dir string, steps ...scripted.Step) *host.Options {
	return &host.Options{Dir: dir, UserDir: filepath.Join(dir, "user"), Environ: []string{}, Model: scripted.New(steps, nil)}
}

// connect starts an editor for a source. The test closes it, or its end does.
func connect(t *testing.T, source acp.Source, dir string) *editor {
	t.Helper()
	agentIn, editorOut := io.Pipe()
	editorIn, agentOut := io.Pipe()
	c := &editor{t: t, dir: dir, in: editorOut, served: make(chan error, 1), changed: make(chan struct{}, 1)}
	server := acp.New(source, &acp.Options{Person: "ann", Heed: 10 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		c.served <- server.Serve(ctx, agentIn, agentOut)
		_ = agentOut.Close() // ignore errors: a pipe has none
	}()
	c.ClientSideConnection = sdk.NewClientSideConnection(c, editorOut, editorIn)
	c.SetLogger(slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		_ = editorOut.Close() // ignore errors: a pipe has none
		<-c.served
		cancel()
	})
	return c
}

// start starts an editor for a scripted project, and initializes the connection.
func start(t *testing.T, files map[string]string, steps ...scripted.Step) *editor {
	t.Helper()
	dir := project(t, files)
	c := connect(t, acp.Hosts(options(dir, steps...)), dir)
	c.initialize(nil)
	return c
}

func (c *editor) initialize(meta map[string]any) sdk.InitializeResponse {
	c.t.Helper()
	out, err := c.Initialize(c.t.Context(), sdk.InitializeRequest{
		ProtocolVersion: sdk.ProtocolVersionNumber, ClientInfo: &sdk.Implementation{Name: "testedit", Version: "1"},
		ClientCapabilities: sdk.ClientCapabilities{Meta: meta},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// open opens a new session.
func (c *editor) open() sdk.SessionId {
	c.t.Helper()
	out, err := c.NewSession(c.t.Context(), sdk.NewSessionRequest{Cwd: c.dir, McpServers: []sdk.McpServer{}})
	if err != nil {
		c.t.Fatal(err)
	}
	return out.SessionId
}

// say sends a prompt and waits for its end.
func (c *editor) say(session sdk.SessionId, text string) sdk.StopReason {
	c.t.Helper()
	out, err := c.Prompt(c.t.Context(), sdk.PromptRequest{SessionId: session, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
	if err != nil {
		c.t.Fatal(err)
	}
	return out.StopReason
}

// await waits until what the agent has sent fulfils a condition.
func (c *editor) await(what string, ok func([]sdk.SessionNotification) bool) {
	c.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		c.mu.Lock()
		fulfilled := ok(c.updates)
		c.mu.Unlock()
		if fulfilled {
			return
		}
		select {
		case <-c.changed:
		case <-deadline:
			c.t.Fatalf("the agent did not send %s; it sent\n%s", what, c.transcript())
		}
	}
}

// text returns the messages of the agent as one text.
func (c *editor) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, n := range c.updates {
		if m := n.Update.AgentMessageChunk; m != nil && m.Content.Text != nil {
			b.WriteString(m.Content.Text.Text)
		}
	}
	return b.String()
}

// call returns the beginning of a call, and the last value of each field of its updates.
func (c *editor) call(id string) (start sdk.SessionUpdateToolCall, last sdk.SessionToolCallUpdate) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	found := false
	for _, n := range c.updates {
		if u := n.Update.ToolCall; u != nil && string(u.ToolCallId) == id {
			start, found = *u, true
		}
		if u := n.Update.ToolCallUpdate; u != nil && string(u.ToolCallId) == id {
			if u.Status != nil {
				last.Status = u.Status
			}
			if u.Content != nil {
				last.Content = u.Content
			}
			if u.Meta != nil {
				last.Meta = u.Meta
			}
		}
	}
	if !found {
		c.t.Fatalf("the agent did not send the call %s", id)
	}
	return start, last
}

// transcript returns everything that the agent has sent, one line for each update.
func (c *editor) transcript() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, n := range c.updates {
		line, err := json.Marshal(n.Update)
		if err != nil {
			c.t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// selected is the outcome of a user who has chosen an option.
func selected(id sdk.PermissionOptionId) sdk.RequestPermissionOutcome {
	return sdk.NewRequestPermissionOutcomeSelected(id)
}
