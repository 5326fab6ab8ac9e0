package mcptool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// These variables turn this test program into a server: its kind, the address to which it
// reports, the address of the gate where it waits before it starts, and the address at
// which it serves HTTP.
const (
	serverVariable = "MCPTOOL_TEST_SERVER"
	rollVariable   = "MCPTOOL_TEST_ROLL"
	gateVariable   = "MCPTOOL_TEST_GATE"
	addrVariable   = "MCPTOOL_TEST_ADDR"
)

// A program with the race detector waits for a second before it ends, unless its environment
// has this. The tests start about 200 such programs, and wait for the end of each.
const (
	raceVariable = "GORACE"
	noPause      = "atexit_sleep_ms=0"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(serverVariable); kind != "" {
		os.Exit(serve(kind))
	}
	goleak.VerifyTestMain(m)
}

// serve runs this program as a server of the given kind.
func serve(kind string) int {
	if strings.HasPrefix(kind, "http") {
		return serveHTTP(kind == "http-stateless")
	}
	if addr := os.Getenv(rollVariable); addr != "" {
		if err := report(addr, kind); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if addr := os.Getenv(gateVariable); addr != "" {
		pass(addr)
	}
	if how, raw := strings.CutPrefix(kind, "raw "); raw {
		return serveRaw(how)
	}
	switch kind {
	case "garbage":
		_, _ = os.Stdout.WriteString("Server is running!\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "endless":
		for {
			if _, err := os.Stdout.Write(make([]byte, 1<<20)); err != nil {
				return 0
			}
		}
	case "deaf":
		stay()
	case "dies":
		fmt.Fprintln(os.Stderr, "no database at "+os.Getenv("SECRET"))
		return 3
	case "asks":
		return ask()
	case "chatters":
		return chatter()
	case "deafens":
		return serveDeafening()
	case "odd":
		return serveOdd()
	case "unfair", "flood", "asks at length", "huge", "many", "countless", "repeats", "blabs", "errs", "both", "restless":
		return serveUnfair(kind)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		_ = newServer().Run(context.Background(), &mcp.StdioTransport{})
		stay() // keep running when the input is closed
	}
	if err := newServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// serveHTTP serves HTTP requests that have the right token. It reports its address to the
// test.
func serveHTTP(stateless bool) int {
	listener, err := listen(os.Getenv(addrVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server := newServer()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: stateless})
	tell(os.Getenv(rollVariable), listener.Addr().String())
	err = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Token") != "tok-en" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// serveOdd is a server with faults that a server of the SDK cannot have.
func serveOdd() int {
	answers := map[string]string{
		"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"0"}}`,
		"tools/list": `{"tools":[
			{"name":"typeless","inputSchema":{"properties":{"text":{"type":"string"}}}},
			{"name":"good","description":"first","inputSchema":{"type":"object"}}, {"name":"good","description":"second","inputSchema":{"type":"object"}},
			{"name":"list","inputSchema":{"type":"array"}}, {"name":"remote","inputSchema":{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}},
			{"name":"worse","inputSchema":{"type":"object","properties":"none"}}, {"name":"","inputSchema":{"type":"object"}}]}`,
		"good":     `{"content":"no list"}`,
		"typeless": `{"content":[]}`,
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name      string `json:"name"`
				Arguments words  `json:"arguments"`
			} `json:"params"`
		}
		if err := json.Unmarshal(in.Bytes(), &m); err != nil || m.ID == nil {
			continue
		}
		if m.Method == "tools/call" {
			m.Method = m.Params.Name
		}
		answer, known := answers[m.Method]
		switch {
		case m.Params.Arguments.Text == "refuse":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"not that text"}}`+"\n", m.ID) //nolint:forbidigo // it is a server
		case !known:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`+"\n", m.ID) //nolint:forbidigo // likewise
		default:
			fmt.Printf(`[{"jsonrpc":"2.0","id":%s,"result":%s}]`+"\n", m.ID, strings.ReplaceAll(answer, "\n", "")) //nolint:forbidigo // likewise, and a batch, which the protocol had once
		}
	}
	return 0
}

// stay keeps the process running until it is killed.
func stay() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, os.Interrupt)
	<-never
}

func listen(addr string) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(context.Background(), "tcp", addr)
}

func dial(addr string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(context.Background(), "tcp", addr)
}

// held keeps the connection to the test open as long as the process runs.
var held []*os.File

// report tells the test that this process runs. The connection closes when the process
// has ended, together with any child process that inherited the connection.
func report(addr, kind string) error {
	conn, err := dial(addr)
	if err != nil {
		return err
	}
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return err
	}
	held = append(held, file)
	if kind == "parent" {
		child := exec.CommandContext(context.Background(), "sleep", "3600")
		child.ExtraFiles = []*os.File{file}
		if err := child.Start(); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(file, os.Getpid())
	return err
}

// pass waits until the test opens the gate.
func pass(addr string) {
	conn, err := dial(addr)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, conn)
}

// words is the input type of most test tools.
type words struct {
	Text string `json:"text,omitempty"`
	N    int    `json:"n,omitempty"`
}

// newServer makes a server with the tools that the tests need.
func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1.2"}, nil)
	yes, no := true, false
	text := func(name, description string, a *mcp.ToolAnnotations, f func(context.Context, *mcp.CallToolRequest, words) (string, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: description, Annotations: a},
			func(ctx context.Context, r *mcp.CallToolRequest, in words) (*mcp.CallToolResult, any, error) {
				out, err := f(ctx, r, in)
				if err != nil {
					return nil, nil, err
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: out}}}, nil, nil
			})
	}
	text("echo", "Says it again.", &mcp.ToolAnnotations{ReadOnlyHint: true}, func(_ context.Context, _ *mcp.CallToolRequest, in words) (string, error) { return in.Text, nil })
	text("destroy", "Destroys it.", &mcp.ToolAnnotations{DestructiveHint: &yes}, func(_ context.Context, _ *mcp.CallToolRequest, in words) (string, error) {
		return "destroyed " + in.Text, nil
	})
	text("add.note", "Adds a note.", &mcp.ToolAnnotations{DestructiveHint: &no}, func(_ context.Context, _ *mcp.CallToolRequest, in words) (string, error) {
		return "noted " + in.Text, nil
	})
	text("fail", "Fails.", nil, func(context.Context, *mcp.CallToolRequest, words) (string, error) {
		return "", errors.New("no such ticket")
	})
	text("big", "Says much.", nil, func(_ context.Context, _ *mcp.CallToolRequest, in words) (string, error) {
		return strings.Repeat("x", in.N), nil
	})
	text("environ", "Tells its environment, and what came with the call.", nil, func(_ context.Context, r *mcp.CallToolRequest, _ words) (string, error) {
		dir, err := os.Getwd()
		all := append(os.Environ(), "cwd "+dir)
		if trace, ok := r.Params.Meta["traceparent"]; ok {
			all = append(all, fmt.Sprint("traceparent ", trace))
		}
		return strings.Join(all, "\n"), err
	})
	text("die", "Ends the server.", nil, func(context.Context, *mcp.CallToolRequest, words) (string, error) {
		os.Exit(9)
		return "", nil
	})
	text("wait", "Waits until it is cancelled, and says so at an address.", nil, func(ctx context.Context, _ *mcp.CallToolRequest, in words) (string, error) {
		tell(in.Text, "waiting")
		<-ctx.Done()
		tell(in.Text, "cancelled")
		return "", ctx.Err()
	})
	text("walk", "Tells how far it is, and ends when the gate opens.", nil, func(ctx context.Context, r *mcp.CallToolRequest, in words) (string, error) {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "half way"})
		pass(in.Text)
		return "there", err
	})
	text("run", "Tells n times how far it is, the last time at length, and at an address that all of it was heard.", nil, func(ctx context.Context, r *mcp.CallToolRequest, in words) (string, error) {
		told := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Total: float64(in.N)}
		for told.Progress < told.Total {
			if told.Progress++; told.Progress == told.Total {
				told.Message = strings.Repeat("é", 1<<20)
			}
			if err := r.Session.NotifyProgress(ctx, told); err != nil {
				return "", err
			}
		}
		err := r.Session.Ping(ctx, nil) // the answer comes after the client has read all earlier messages
		tell(in.Text, "heard")
		return "there", err
	})
	text("meet", "Returns when it is called twice at a time.", &mcp.ToolAnnotations{ReadOnlyHint: true}, func(ctx context.Context, _ *mcp.CallToolRequest, _ words) (string, error) {
		return "met", meet(ctx)
	})
	text("change", "Adds a tool, or takes it away.", nil, func(_ context.Context, _ *mcp.CallToolRequest, in words) (string, error) {
		if in.Text == "remove" {
			s.RemoveTools("extra")
			return "removed", nil
		}
		text("extra", in.Text, nil, func(context.Context, *mcp.CallToolRequest, words) (string, error) { return "extra", nil })
		return "added", nil
	})
	s.AddTool(&mcp.Tool{Name: "parts", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			Content: []mcp.Content{
				&mcp.TextContent{Text: "first"}, &mcp.ImageContent{MIMEType: "image/png", Data: []byte("PNG")}, &mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("WAV!")},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "note://1", Text: "a note"}}, &mcp.ResourceLink{URI: "note://2", Name: "two"},
			},
			StructuredContent: map[string]any{"count": 2},
		}, nil
	})
	s.AddTool(&mcp.Tool{Name: "structured", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: map[string]any{"count": 2}, Content: []mcp.Content{}}, nil
	})
	return s
}

var meeting struct {
	sync.Mutex
	other chan struct{}
}

// meet waits until another call of meet is running at the same time.
func meet(ctx context.Context) error {
	meeting.Lock()
	if other := meeting.other; other != nil {
		meeting.other = nil
		meeting.Unlock()
		close(other)
		return nil
	}
	other := make(chan struct{})
	meeting.other = other
	meeting.Unlock()
	select {
	case <-other:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tell connects to an address and sends a line.
func tell(addr, line string) {
	if conn, err := dial(addr); err == nil {
		fmt.Fprintln(conn, line)
		_ = conn.Close()
	}
}

// patience is the timeout when a test waits for something.
const patience = 30 * time.Second

// line is a connection from a server, with the first line that the server sent.
type line struct {
	text string
	gone chan struct{} // closed when the connection ends
}

// desk receives the reports of server processes.
type desk struct {
	t     *testing.T
	addr  string
	lines chan *line
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	listener, err := listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, addr: listener.Addr().String(), lines: make(chan *line, 100)}
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { d.hear(ctx, conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		cancel()
		all.Wait()
	})
	return d
}

func (d *desk) hear(ctx context.Context, conn net.Conn) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	text, _ := in.ReadString('\n')
	l := &line{strings.TrimSpace(text), make(chan struct{})}
	defer close(l.gone)
	d.lines <- l
	_, _ = io.Copy(io.Discard, in)
}

func (d *desk) next() *line {
	d.t.Helper()
	select {
	case l := <-d.lines:
		return l
	case <-time.After(patience):
		d.t.Fatal("nobody reported")
		return nil
	}
}

// none fails the test if there is a report.
func (d *desk) none() {
	d.t.Helper()
	select {
	case l := <-d.lines:
		d.t.Errorf("%q reported, want nobody", l.text)
	default:
	}
}

// ended waits until the process has ended.
func (l *line) ended(t *testing.T) {
	t.Helper()
	select {
	case <-l.gone:
	case <-time.After(patience):
		t.Errorf("process %s is still running", l.text)
	}
}

// alive checks that a process has not ended.
func (l *line) alive(t *testing.T) {
	t.Helper()
	select {
	case <-l.gone:
		t.Errorf("process %s has ended", l.text)
	default:
	}
}

// gate makes server processes wait until the test opens it.
type gate struct {
	addr string
	open func()
}

func newGate(t *testing.T) *gate {
	t.Helper()
	listener, err := listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	opened := make(chan struct{})
	done.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			done.Go(func() {
				<-opened
				_ = conn.Close()
			})
		}
	})
	g := &gate{listener.Addr().String(), sync.OnceFunc(func() { close(opened) })}
	t.Cleanup(func() {
		g.open()
		_ = listener.Close()
		done.Wait()
	})
	return g
}
