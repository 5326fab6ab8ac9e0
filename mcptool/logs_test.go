package mcptool_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/mcptool"
)

// here returns a server in this process with one tool, which calls f.
func here(name string, f func(context.Context, *mcp.CallToolRequest, words) (string, error)) mcptool.Server {
	return mcptool.Server{Name: name, Serve: func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return oneTool(f).Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	}}
}

// oneTool returns a server with the tool do, which calls f.
func oneTool(f func(context.Context, *mcp.CallToolRequest, words) (string, error)) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "one", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "do"}, func(ctx context.Context, r *mcp.CallToolRequest, w words) (*mcp.CallToolResult, any, error) {
		text, err := f(ctx, r, w)
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	return s
}

// overHTTP serves a server with the tool do over HTTP, and returns its URL.
func overHTTP(t *testing.T, f func(context.Context, *mcp.CallToolRequest, words) (string, error)) string {
	t.Helper()
	server := oneTool(f)
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(web.Close)
	return web.URL
}

// Log messages of a server are logged with their level, without secrets, and up to a limit.
//
// SPEC E-09, C-11
func TestLogMessagesOfAServer(t *testing.T) {
	t.Parallel()
	log := new(records)
	server := here("s", func(ctx context.Context, r *mcp.CallToolRequest, in words) (string, error) {
		for range in.N {
			if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Logger: "db", Data: in.Text}); err != nil { //nolint:staticcheck // this tests it
				return "", err
			}
		}
		return "logged", r.Session.Ping(ctx, nil) // the answer comes after the client has read all earlier messages
	})
	e := open(t, quick(mcptool.Options{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}), server)
	for !strings.Contains(log.String(), "no index") { // the server logs only after it has got the level, which Belay does not wait for
		if r := call(t, e, "s__do", `{"n":1,"text":"no index password=hunter2hunter2"}`); r.IsError {
			t.Fatalf("result = %+v", r)
		}
	}
	if said := log.String(); !strings.Contains(said, `level=WARN msg="mcp server log" server=s logger=db`) || strings.Contains(said, "hunter2") {
		t.Errorf("log = %s", said)
	}
	if r := call(t, e, "s__do", fmt.Sprintf(`{"n":150,"text":%q}`, strings.Repeat("long ", 400))); r.IsError {
		t.Fatalf("result = %+v", r)
	}
	if said := log.String(); len(said) > 400<<10 || strings.Count(said, "mcp server logs too much") != 1 {
		t.Errorf("%d bytes are logged, and the limit is named %d times", len(said), strings.Count(said, "mcp server logs too much"))
	}
}

// The project is the only root of a server on this machine. A server at a URL gets no roots.
//
// SPEC E-09
func TestRootsAreTheProject(t *testing.T) {
	t.Parallel()
	asks := func(ctx context.Context, r *mcp.CallToolRequest, _ words) (string, error) {
		caps := r.Session.InitializeParams().Capabilities
		if caps.RootsV2 == nil { //nolint:staticcheck // this tests it
			return "none", nil
		}
		list, err := r.Session.ListRoots(ctx, nil) //nolint:staticcheck // likewise
		if err != nil {
			return "", err
		}
		var all []string
		for _, root := range list.Roots {
			all = append(all, root.URI)
		}
		return strings.Join(all, " "), nil
	}
	dir := t.TempDir() + "/a project"
	e := open(t, quick(mcptool.Options{Dir: dir}), here("s", asks))
	if r := call(t, e, "s__do", `{}`); r.Text != "file://"+strings.ReplaceAll(dir, " ", "%20") {
		t.Errorf("roots = %q", r.Text)
	}
	remote := open(t, quick(mcptool.Options{Dir: dir}), mcptool.Server{Name: "s", URL: overHTTP(t, asks)})
	if r := call(t, remote, "s__do", `{}`); r.Text != "none" {
		t.Errorf("roots of a server at a URL = %q", r.Text)
	}
}
