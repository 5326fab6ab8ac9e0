package mcptool_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/mcptool"
)

// message is a client's message, with the fields that raw servers use.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		Arguments words  `json:"arguments"`
	} `json:"params"`
}

const (
	rawInitialized = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"0"}}`
	rawDiscovered  = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	rawTools       = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`
	rawResult      = `{"content":[{"type":"text","text":"echoed"}]}`
)

// serveRaw is a server without the SDK. how selects its behaviour.
func serveRaw(how string) int {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(os.Stdout, format+"\n", args...) }
	secret := os.Getenv("SECRET")
	quoted, err := json.Marshal(secret)
	if err != nil {
		return 1
	}
	for name, value := range map[string]string{"ESCAPED": url.QueryEscape(secret), "QUOTED": string(quoted)} {
		if os.Setenv(name, value) != nil {
			return 1
		}
	}
	added, listed := false, false
	var caller json.RawMessage // the id of the call that asks a question
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m message
		if err := json.Unmarshal(in.Bytes(), &m); err != nil || m.ID == nil {
			continue
		}
		result := func(text string) {
			say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, strings.ReplaceAll(text, "\n", " "))
		}
		switch {
		case how == "exits on discover" && m.Method == "server/discover":
			fmt.Fprintln(os.Stderr, "what is that?")
			return 1
		case how == "exits on initialize" && m.Method == "initialize", m.Method == "tools/call" && m.Params.Arguments.Text == "die":
			return 1
		case how == "ignores discover" && m.Method == "server/discover":
		case how == "knows discover alone" && m.Method == "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"that was long ago"}}`, m.ID)
		case how == "knows discover alone" && m.Method == "server/discover":
			result(rawDiscovered)
		case how == "refuses everything":
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no licence for %s"}}`, m.ID, m.Method)
		case rawQuestions[how] != "" && m.Method == "tools/call":
			caller = m.ID
			say(`{"jsonrpc":"2.0","id":"question","method":"elicitation/create","params":%s}`, os.ExpandEnv(rawQuestions[how]))
		case caller != nil && m.Method == "": // the answer to the question
			m.ID = caller
			text, err := json.Marshal(in.Text())
			if err != nil {
				return 1
			}
			result(fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text))
		case rawAnswers[how][m.Method] != "":
			result(os.ExpandEnv(rawAnswers[how][m.Method]))
		case rawErrors[how][m.Method] != "" && (how != "leaks when it lists again" || listed):
			text, err := json.Marshal(os.ExpandEnv(rawErrors[how][m.Method]))
			if err != nil {
				return 1
			}
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s}}`, m.ID, text)
		case how == "leaks when it lists again" && m.Method == "tools/list":
			listed = true
			result(rawTools)
			say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		case how == "odd notifications" && m.Method == "tools/call":
			for _, notification := range oddNotifications {
				say("%s", notification)
			}
			result(rawResult)
		case how == "announces early" && m.Method == "initialize":
			for range 100 { // during the handshake
				say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
			result(rawInitialized)
		case m.Method == "initialize":
			result(rawInitialized)
		case m.Method == "tools/list" && added:
			result(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"extra","inputSchema":{"type":"object"}}]}`)
		case m.Method == "tools/list":
			result(rawTools)
		case m.Method == "tools/call" && how == "announces":
			added = true
			say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			result(rawResult)
		case m.Method == "tools/call" && how == "strange content":
			result(strangeContent[m.Params.Arguments.Text])
		case m.Method == "tools/call":
			result(rawResult)
		default:
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, m.ID)
		}
	}
	return 0
}

// A server that does not know the newer handshake starts, even if it ignores that
// handshake or exits on it. A server that knows only the newer handshake starts too.
//
// SPEC E-09
func TestHandshakes(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"ignores discover", "exits on discover", "knows discover alone", "announces early"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			e := open(t, quick(mcptool.Options{Start: 2 * patience}), child(t, "raw", "raw "+how, nil))
			await(t, e, "raw", inState(mcptool.StateReady))
			if r := call(t, e, "raw__echo", `{}`); r.IsError || r.Text != "echoed" {
				t.Errorf("it answered %+v", r)
			}
		})
	}
}

// SPEC E-09
func TestAServerThatRefusesEveryHandshakeSaysWhy(t *testing.T) {
	t.Parallel()
	e := open(t, quick(mcptool.Options{}), child(t, "raw", "raw refuses everything", nil))
	s := await(t, e, "raw", inState(mcptool.StateDown))
	if s.Err == nil || !strings.Contains(s.Err.Error(), "no licence for initialize") {
		t.Errorf("it is down because of %v", s.Err)
	}
}

// rawHTTP is an HTTP server without the SDK. how selects its behaviour.
type rawHTTP struct{ how string }

func (s *rawHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m message
	if r.Method != http.MethodPost || err != nil || json.Unmarshal(body, &m) != nil {
		http.Error(w, "no", http.StatusMethodNotAllowed)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := func(text string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, text)
	}
	stream := func(text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, ": hello\n\nevent: message\nid: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\ndata: \"result\":%s}\n\n", m.ID, text)
	}
	switch {
	case s.how == "ignores discover" && m.Method == "server/discover":
		<-r.Context().Done()
	case s.how == "drops discover" && m.Method == "server/discover", s.how == "drops calls" && m.Method == "tools/call":
		panic(http.ErrAbortHandler)
	case s.how == "knows discover alone" && m.Method == "initialize":
		http.Error(w, "bad request", http.StatusBadRequest)
	case s.how == "knows discover alone" && m.Method == "server/discover":
		result(rawDiscovered)
	case rawAnswers[s.how][m.Method] != "":
		result(rawAnswers[s.how][m.Method])
	case m.Method == "initialize" && s.how == "leaks what it was sent":
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%q}}`, m.ID, fmt.Sprint("not welcome: ", r.Header, r.URL))
	case m.Method == "initialize":
		result(rawInitialized)
	case m.Method == "tools/list":
		result(rawTools)
	case m.Method == "tools/call" && s.how == "strange content":
		result(strangeContent[m.Params.Arguments.Text])
	case m.Method == "tools/call" && s.how == "strange events":
		stream(strangeContent[m.Params.Arguments.Text])
	case m.Method == "tools/call":
		result(rawResult)
	default:
		http.Error(w, "what?", http.StatusNotFound)
	}
}

// serveRawHTTP starts a rawHTTP server.
func serveRawHTTP(t *testing.T, how string) mcptool.Server {
	t.Helper()
	server := httptest.NewServer(&rawHTTP{how})
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		mcptool.Guarded().CloseIdleConnections()
	})
	return mcptool.Server{Name: "raw", URL: server.URL}
}

// SPEC E-09
func TestHandshakesByHTTP(t *testing.T) { //nolint:paralleltest // see TestHTTP
	for _, how := range []string{"ignores discover", "drops discover", "knows discover alone"} { //nolint:paralleltest // likewise
		t.Run(how, func(t *testing.T) {
			server := serveRawHTTP(t, how)
			e := open(t, quick(mcptool.Options{Start: 2 * patience, Grace: time.Second}), server)
			await(t, e, "raw", inState(mcptool.StateReady))
			if r := call(t, e, "raw__echo", `{}`); r.IsError || r.Text != "echoed" {
				t.Errorf("it answered %+v", r)
			}
		})
	}
}

// If the server rejects a request because of missing credentials, Belay does not try the
// other handshake.
func TestAKeyThatIsMissingIsNoHandshake(t *testing.T) { //nolint:paralleltest // see TestHTTP
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m message
		if json.NewDecoder(r.Body).Decode(&m) == nil {
			asked <- m.Method
		}
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}))
	defer server.Close()
	e := open(t, quick(mcptool.Options{Backoff: time.Hour}), mcptool.Server{Name: "locked", URL: server.URL})
	s := await(t, e, "locked", inState(mcptool.StateDown))
	if s.Err == nil || !strings.Contains(s.Err.Error(), "Unauthorized") || len(asked) != 1 {
		t.Errorf("after %d requests it is down because of %v", len(asked), s.Err)
	}
}

// strangeContent are unusual results of tools. The key says what is unusual.
var strangeContent = map[string]string{
	"unknown type":    `{"content":[{"type":"text","text":"before"},{"type":"hologram","data":"QUJD","depth":3},{"type":"text","text":"after"}]}`,
	"no type":         `{"content":[{"text":"untyped"}]}`,
	"null":            `{"content":[null,{"type":"text","text":"after"}]}`,
	"a text":          `{"content":["plain"]}`,
	"no base64":       `{"content":[{"type":"image","mimeType":"image/png","data":"***"},{"type":"text","text":"after"}]}`,
	"odd annotations": `{"content":[{"type":"text","text":"said","annotations":"loud"}]}`,
	"an error":        `{"isError":true,"content":[{"type":"hologram"}]}`,
	"structured":      `{"structuredContent":{"n":1},"content":[{"type":"hologram"}]}`,
	"escapes":         `{"content":[{"type":"hologram","html":"<b>&amp;\u003c</b>"}]}`,
	"long":            `{"content":[{"type":"hologram","data":"` + strings.Repeat("A", 20_000) + `"}]}`,
	"no list":         `{"content":"no list"}`,
	"odd questions":   `{"inputRequests":{"a":{"method":"odd"}}}`,
	"no object":       `"done"`,
}

const noResult = `MCP server "raw" answered with a result that Belay cannot read. It is unknown whether the call had an effect.`

// unread is the text for content that Belay cannot read.
func unread(content string) string { return "[content that Belay cannot read: " + content + "]" }

// Belay passes content that it does not know to the model as text. The server stays up.
//
// SPEC E-09
func TestStrangeContent(t *testing.T) { //nolint:paralleltest // see TestHTTP
	for how, start := range map[string]func(t *testing.T) mcptool.Server{ //nolint:paralleltest // likewise
		"over pipes":         func(t *testing.T) mcptool.Server { t.Helper(); return child(t, "raw", "raw strange content", nil) },
		"by HTTP":            func(t *testing.T) mcptool.Server { t.Helper(); return serveRawHTTP(t, "strange content") },
		"by HTTP, as events": func(t *testing.T) mcptool.Server { t.Helper(); return serveRawHTTP(t, "strange events") },
	} {
		t.Run(how, func(t *testing.T) {
			var log records
			e := open(t, quick(mcptool.Options{Logger: log.logger()}), start(t))
			for what, want := range map[string]string{
				"unknown type":    "before\n" + unread(`{"type":"hologram","data":"QUJD","depth":3}`) + "\nafter",
				"no type":         unread(`{"text":"untyped"}`),
				"null":            unread("null") + "\nafter",
				"a text":          unread(`"plain"`),
				"no base64":       unread(`{"type":"image","mimeType":"image/png","data":"***"}`) + "\nafter",
				"odd annotations": "said",
				"an error":        unread(`{"type":"hologram"}`),
				"structured":      unread(`{"type":"hologram"}`),
				"escapes":         unread(`{"type":"hologram","html":"<b>&amp;\u003c</b>"}`),
				"long":            unread(`{"data":"` + strings.Repeat("A", 475) + ` … (the rest is left out)","type":"hologram"}`),
				"no list":         noResult,
				"odd questions":   noResult,
				"no object":       noResult,
			} {
				r := call(t, e, "raw__echo", fmt.Sprintf(`{"text":%q}`, what))
				if r.Text != want || r.IsError != (what == "an error" || want == noResult) || r.IsError && r.Class != belay.ClassFailed {
					t.Errorf("%s: the result is %+v, want %q", what, r, want)
				}
				if what == "structured" && string(r.Render) != `{"n":1}` {
					t.Errorf("the structured content is %s", r.Render)
				}
			}
			if s := e.Servers()[0]; s.State != mcptool.StateReady || strings.Contains(log.String(), "not available") {
				t.Errorf("the server is %s: %v\n%s", s.State, s.Err, log.String())
			}
		})
	}
}

// An extension with MCP servers can be added to an agent that is in use.
//
// SPEC E-11
func TestServersAreAddedLater(t *testing.T) { //nolint:paralleltest // see TestHTTP
	agent := belaytest.New(t, belaytest.Script(belaytest.Says("hello"), belaytest.Calls("raw__echo", `{}`), belaytest.Says("done")), nil)
	agent.Say("hello").Request(1).Offers()
	e := open(t, quick(mcptool.Options{Start: 2 * patience, Grace: time.Second}), serveRawHTTP(t, ""))
	await(t, e, "raw", inState(mcptool.StateReady))
	lease, err := agent.Add(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	agent.Say("go").Result("raw__echo", "echoed")
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
}
