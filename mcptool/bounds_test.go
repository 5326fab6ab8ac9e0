package mcptool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/provider/scripted"
)

// serveUnfair is a server that wastes resources. kind selects how.
func serveUnfair(kind string) int {
	object := `{"type":"object"}`
	listed := 0
	list := func() string {
		listed++
		switch kind {
		case "huge":
			return `{"name":"huge","inputSchema":{"type":"object","description":"` + strings.Repeat("x", 1<<20) + `"}},{"name":"small","inputSchema":` + object + `}`
		case "many":
			var all []string
			for i := range 40 {
				all = append(all, fmt.Sprintf(`{"name":"t%02d","description":%q,"inputSchema":{"type":"object","description":%q}}`, i, strings.Repeat("y", 20_000), strings.Repeat("x", 10_000)))
			}
			return strings.Join(all, ",")
		case "countless":
			var all []string
			for i := range 600 {
				all = append(all, fmt.Sprintf(`{"name":"t%03d","inputSchema":%s}`, i, object))
			}
			return strings.Join(all, ",")
		case "both":
			return `{"name":"wipe","inputSchema":` + object + `,"annotations":{"readOnlyHint":true,"destructiveHint":true}}`
		default:
			return `{"name":"a","description":"` + strconv.Itoa(listed) + `","inputSchema":` + object + `}`
		}
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(os.Stdout, format+"\n", args...) }
	if kind == "blabs" {
		say("%s", strings.Repeat("x", 70)+os.Getenv("SECRET"))
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.Unmarshal(in.Bytes(), &m); err != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"unfair","version":"0"}}}`, m.ID)
		case "tools/list":
			next := ""
			if kind == "repeats" { // the same tool again on every page
				next = `,"nextCursor":"` + strconv.Itoa(listed) + `"`
			}
			say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]%s}}`, m.ID, list(), next)
			switch kind {
			case "restless":
				say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			case "flood": // and reads nothing from here on
				for i := 0; ; i++ {
					if _, err := fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":"%d","method":"ping"}`+"\n", i); err != nil {
						return 0
					}
				}
			case "asks at length":
				say(`{"jsonrpc":"2.0","id":"1","method":"ping","params":{"x":%q}}`, strings.Repeat("y", 1<<20))
			}
		case "tools/call":
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%q}}`, m.ID, "cannot log in with "+os.Getenv("SECRET")+strings.Repeat("z", 1<<20))
		default:
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, m.ID)
		}
	}
	return 0
}

// serveDeafening is a server that stops reading after a call of deafen. It reads only the
// first byte of the next message and reports that to an address.
func serveDeafening() int {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name      string `json:"name"`
				Arguments words  `json:"arguments"`
			} `json:"params"`
		}
		if err := json.Unmarshal(line, &m); err != nil || m.ID == nil {
			continue
		}
		result := `{"content":[{"type":"text","text":"heard"}]}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"deafens","version":"0"}}`
		case "tools/list":
			result = `{"tools":[{"name":"deafen","inputSchema":{"type":"object"}},{"name":"hear","inputSchema":{"type":"object"}}]}`
		}
		_, _ = fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		if m.Params.Name == "deafen" {
			_, _ = io.ReadFull(in, make([]byte, 1))
			tell(m.Params.Arguments.Text, "it begins")
			stay()
		}
	}
}

// A server that sends many requests and reads no answers is stopped. Otherwise the
// answers would fill the memory.
//
// SPEC E-09
func TestAServerThatAsksAndDoesNotReadIsStopped(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{"flood": "does not read its standard input", "asks at length": "a request of more than 256 KiB"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := open(t, quick(mcptool.Options{Backoff: time.Hour, Grace: 100 * time.Millisecond}), child(t, "s", kind, nil))
			s := await(t, e, "s", inState(mcptool.StateDown))
			if s.Err == nil || !strings.Contains(s.Err.Error(), want) {
				t.Errorf("it is down because of %v, want %q", s.Err, want)
			}
		})
	}
}

// A server can add only a limited amount to every model request. The status reports the
// tools that are left out.
//
// SPEC E-09
func TestWhatAServerDeclaresIsBounded(t *testing.T) {
	t.Parallel()
	for kind, test := range map[string]struct {
		least, most int // how many tools the agent gets
		left        string
	}{
		"huge":      {1, 1, "its input schema is longer than 64 KiB"},
		"many":      {1, 39, "more than 512 KiB in total"},
		"countless": {512, 512, "the server lists more than 512 tools"},
		"repeats":   {1, 1, "the server lists more than 512 tools"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := open(t, quick(mcptool.Options{}), child(t, "s", kind, nil))
			s := await(t, e, "s", inState(mcptool.StateReady))
			total := 0
			for _, one := range e.StepTools("main") {
				d := one.Declaration()
				total += len(d.InputSchema) + len(d.Description)
				if n := len([]rune(d.Description)); n > 16_001 {
					t.Errorf("tool %s has a description of %d characters", d.Name, n)
				}
			}
			if total > 512<<10 || len(s.Tools) < test.least || len(s.Tools) > test.most {
				t.Errorf("%d tools of %d bytes, want %d to %d", len(s.Tools), total, test.least, test.most)
			}
			if n := len(s.Left); n == 0 || n > 2 || !strings.Contains(s.Left[n-1].Error(), test.left) {
				t.Errorf("left out: %v, want %q", s.Left, test.left)
			}
		})
	}
}

// No log, status or result contains any part of a secret that a server was given.
//
// SPEC E-09, C-11
func TestWhatAServerWasGivenIsNotTold(t *testing.T) {
	t.Parallel()
	secret := map[string]string{"SECRET": "${PASSWORD}"}
	environ := append(os.Environ(), "PASSWORD=hunter-2-hunter-3-hunter")
	var log records
	e := open(t, quick(mcptool.Options{Backoff: time.Hour, Logger: log.logger(), Environ: environ}), child(t, "loud", "blabs", secret), child(t, "err", "errs", secret))
	down := await(t, e, "loud", inState(mcptool.StateDown))
	await(t, e, "err", inState(mcptool.StateReady))
	r := call(t, e, "err__a", `{}`)
	shut(t, e) // the log is complete after this
	for what, text := range map[string]string{"status": down.Err.Error(), "log": log.String(), "result": r.Text} {
		if strings.Contains(text, "hunt") {
			t.Errorf("the %s has a part of the secret: %.300s", what, text)
		}
	}
	if !strings.Contains(log.String(), "is not available") || !strings.Contains(r.Text, "cannot log in with [REDACTED]") || len(r.Text) > 10_000 {
		t.Errorf("the result has %d bytes: %.200s; and the log: %.300s", len(r.Text), r.Text, log.String())
	}
}

// A tool that was marked as destructive when the model request was made needs approval.
// This holds even if the server is removed before the call, or also marks the tool as
// read-only.
//
// SPEC E-09
func TestADestructiveToolIsAskedAboutWhateverComes(t *testing.T) {
	t.Parallel()
	e := open(t, quick(mcptool.Options{}))
	lease, err := e.Add(child(t, "s", "both", nil))
	if err != nil {
		t.Fatal(err)
	}
	s := await(t, e, "s", inState(mcptool.StateReady))
	if one := s.Tools[0]; !one.Destructive || one.ReadOnly {
		t.Errorf("a tool that is called both is taken for %+v", one)
	}
	model := scripted.New([]scripted.Step{{Compute: func(_ context.Context, req *belay.Request) (scripted.Step, error) {
		if len(req.Tools) != 1 {
			t.Errorf("the model has %d tools, want 1", len(req.Tools))
		}
		if err := lease.Close(); err != nil {
			t.Error(err)
		}
		return scripted.Step{Calls: []scripted.Call{{Tool: "s__wipe", Input: json.RawMessage(`{}`)}}}, nil
	}}}, nil)
	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{e}, OnAsk: belay.AskPark})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := agent.Session("s").Turn(t.Context(), "wipe it")
	if err != nil || turn.Reason != belay.EndParked || len(turn.Waits) != 1 {
		t.Errorf("the turn ended %+v, %v, want that it waits for a person", turn, err)
	}
}

// If a server announces changes all the time, Belay lists its tools only now and then.
// The tools stay usable.
//
// SPEC E-09
func TestARestlessServerIsLookedAtNowAndThen(t *testing.T) {
	t.Parallel()
	began := time.Now()
	e := open(t, quick(mcptool.Options{}), child(t, "s", "restless", nil))
	listed := func(s mcptool.Status) int {
		if len(s.Tools) == 0 {
			return 0
		}
		n, _ := strconv.Atoi(s.Tools[0].Description)
		return n
	}
	s := await(t, e, "s", func(s mcptool.Status) bool { return listed(s) >= 4 })
	if took, n := time.Since(began), listed(s); float64(n) > 3+took.Seconds()/0.25 {
		t.Errorf("it was looked at %d times in %s", n, took)
	}
}

// Servers with one URL and different headers are two servers: they must not share an MCP
// session, because their tokens differ.
//
// SPEC E-09
func TestOtherHeadersAreAnotherServer(t *testing.T) {
	t.Parallel()
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		s := mcp.NewServer(&mcp.Implementation{Name: "tenant", Version: "1"}, nil)
		who := r.Header.Get("Authorization")
		mcp.AddTool(s, &mcp.Tool{Name: "who"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: who}}}, nil, nil
		})
		return s
	}, nil)
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	pool := new(mcptool.Pool)
	as := func(who string) *mcptool.Extension {
		return open(t, quick(mcptool.Options{Pool: pool}), mcptool.Server{Name: "s", URL: web.URL, Headers: map[string]string{"Authorization": who}})
	}
	ann, bea := as("ann"), as("bea")
	if a, b := call(t, ann, "s__who", `{}`).Text, call(t, bea, "s__who", `{}`).Text; a != "ann" || b != "bea" {
		t.Errorf("ann is %q and bea is %q", a, b)
	}
}

// A server can have its own start timeout, and can be required by an agent.
//
// SPEC E-09
func TestStartAndRequired(t *testing.T) {
	t.Parallel()
	config, err := mcptool.Parse("mcp.json", []byte(`{"mcpServers": {"a": {"command": "x", "start": 1.5, "required": true}, "b": {"command": "x", "start": "2m"}}}`))
	if err != nil || config.Servers[0].Start != 1500*time.Millisecond || !config.Servers[0].Required || config.Servers[1].Start != 2*time.Minute {
		t.Errorf("it is read as %+v, %v", config.Servers, err)
	}
	for _, bad := range []string{`"start": 0`, `"start": -1`, `"start": "soon"`, `"start": true`, `"required": "yes"`} {
		if _, err := mcptool.Parse("mcp.json", []byte(`{"mcpServers": {"a": {"command": "x", `+bad+`}}}`)); err == nil || !strings.Contains(err.Error(), "mcp.json:1: ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	late := child(t, "late", "deaf", nil)
	late.Start, late.Required = 50*time.Millisecond, true
	gone := mcptool.Server{Name: "gone", Command: "srv.py --foo bar", Required: true}
	off := mcptool.Server{Name: "off", Command: "x", Required: true, Disabled: true}
	fine := child(t, "fine", "unfair", nil)
	fine.Required, fine.Tools = true, []string{"a", "serch"}
	e := open(t, quick(mcptool.Options{Backoff: time.Hour, Wait: time.Nanosecond, Grace: 100 * time.Millisecond}), late, gone, off, fine)
	err = e.Missing()
	for _, want := range []string{
		`mcp server "late" is required and not ready: `,
		`mcp server "gone" is required and not ready: there is no program "srv.py --foo bar": if srv.py is the program, put the rest into args: "command": "srv.py", "args": ["--foo","bar"]`,
		`mcp server "off" is required and not ready: it is disabled`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("missing: %v, want %q", err, want)
		}
	}
	if strings.Contains(err.Error(), `"fine"`) || strings.Join(e.Servers()[3].Unmatched, " ") != "serch" {
		t.Errorf("missing: %v; unmatched: %v", err, e.Servers()[3].Unmatched)
	}
	if err := open(t, quick(mcptool.Options{Wait: time.Nanosecond}), fine).Missing(); err != nil {
		t.Errorf("a required server is not waited for: %v", err)
	}
}

// Server.Has finds the server's tools by name, even if the server has a very long name.
//
// SPEC E-09
func TestAServerHasItsTools(t *testing.T) {
	t.Parallel()
	long := mcptool.Server{Name: strings.Repeat("ü", 64)}
	short := mcptool.Server{Name: "a"}
	for _, tool := range []string{"x", strings.Repeat("y", 200)} {
		if !long.Has(mcptool.ToolName(long.Name, tool)) || !short.Has(mcptool.ToolName("a", tool)) || short.Has(mcptool.ToolName("a_", tool)) || short.Has(mcptool.ToolName(long.Name, tool)) {
			t.Errorf("whose tool %.10s is", tool)
		}
	}
}
