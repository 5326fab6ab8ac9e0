package serve_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
)

// A token that sends too many requests, or opens too many streams, gets 429 with the time to
// wait. Other tokens are not affected.
//
// SPEC V-06
func TestTokensAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(_ *host.Options, o *serve.Options) { o.Rate, o.Streams = 0.001, 2 }) // one more request in 1000 seconds
	w.token("greedy", nil, serve.RoleRead)
	w.token("modest", nil, serve.RoleRead)
	if r := w.send("greedy", "GET", "/v1/self", nil, nil); r.status != 200 {
		t.Fatalf("the first request gives %d %s", r.status, r.body)
	}
	r := w.send("greedy", "GET", "/v1/self", nil, nil)
	after, err := strconv.Atoi(r.header.Get("Retry-After"))
	if p := r.problem(t); p.Status != 429 || p.Code != "request.rate_limited" || err != nil || after < 1 {
		t.Errorf("the second request gives %+v, Retry-After %q", p, r.header.Get("Retry-After"))
	}
	if r := w.send("modest", "GET", "/v1/self", nil, nil); r.status != 200 {
		t.Errorf("another token gets %d %s", r.status, r.body)
	}
	if r := w.send("", "GET", "/healthz", nil, nil); r.status != 200 {
		t.Errorf("health gives %d", r.status)
	}
}

// A token cannot open more streams than its limit. When one ends, it can open another.
//
// SPEC V-06
func TestStreamsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(_ *host.Options, o *serve.Options) { o.Streams = 2 })
	w.token("modest", nil, serve.RoleRead)
	id := w.newSession()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var open sync.WaitGroup
	leave := make([]context.CancelFunc, 2)
	for i, path := range []string{"/v1/events", "/v1/sessions/" + id + "/events"} {
		one, stop := context.WithCancel(ctx)
		leave[i] = stop
		connected := make(chan struct{})
		open.Go(func() {
			r := w.stream(one, "admin", path)
			close(connected)
			_, _ = io.Copy(io.Discard, r)
			_ = r.Close()
		})
		<-connected
	}
	for _, path := range []string{"/v1/events", "/v1/runs/events", "/v1/sessions/" + id + "/events"} {
		r := w.send("admin", "GET", path, nil, nil)
		if p := r.problem(t); p.Status != 429 || p.Code != "request.rate_limited" || r.header.Get("Retry-After") == "" {
			t.Errorf("one more stream of %s gives %+v", path, p)
		}
	}
	one, stop := context.WithCancel(ctx)
	_ = w.stream(one, "modest", "/v1/events").Close()
	stop()
	leave[0]()
	eventually(t, "there is room for another stream", func() bool {
		one, stop := context.WithCancel(ctx)
		defer stop()
		r, err := http.NewRequestWithContext(one, http.MethodGet, w.url+"/v1/events", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.secret["admin"])
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	leave[1]()
	open.Wait()
}

// stream opens a stream, and returns when the server has answered.
func (w *world) stream(ctx context.Context, as, path string) io.ReadCloser {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+path, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.secret[as])
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(resp.Body)
		w.t.Fatalf("%s: %d %s", path, resp.StatusCode, data)
	}
	return resp.Body
}

// Slow clients do not keep a connection: neither one that sends its header or its body slowly,
// wherever the request goes, nor one that does not read.
//
// SPEC V-06
func TestDeadlines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(_ *host.Options, o *serve.Options) { o.Workers = 1 })
	server, err := serve.New(w.host, &serve.Options{Tokens: w.tokens})
	if err != nil {
		t.Fatal(err)
	}
	server.SetTimeouts(300*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond)
	slow := w.again(server)
	id := w.newSession()
	w.turn("admin", id, strings.Repeat("x", 900_000)) // too large for the buffers of a connection
	for range 12 {
		w.turn("admin", id, strings.Repeat("y", 900_000))
	}
	token := "Authorization: Bearer " + w.secret["admin"] + "\r\n"
	for rule, request := range map[string]string{
		"a header that does not end":                 "GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
		"nothing":                                    "",
		"a body that does not come":                  "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\n" + token + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"a body that does not come, without a token": "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"a body for MCP that does not come":          "POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + token + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"a body for an address that does not exist":  "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"a body for an address without a body":       "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"a list that is not read":                    "GET /v1/sessions/" + id + "/messages HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n",
		"a stream that is not read":                  "GET /v1/sessions/" + id + "/events HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n",
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(slow.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			closed := make(chan struct{})
			go func() { // a write fails when the server has closed the connection
				defer close(closed)
				for {
					if _, err := conn.Write([]byte(" ")); err != nil {
						return
					}
					select {
					case <-t.Context().Done():
						return
					case <-time.After(50 * time.Millisecond):
					}
				}
			}()
			select {
			case <-closed:
			case <-time.After(patience):
				t.Errorf("%s: the server keeps the connection", rule)
			}
		})
	}
}

// slowWriter is a connection whose client reads a part in half of the allowed time.
type slowWriter struct {
	http.ResponseWriter

	deadline time.Time
}

func (*slowWriter) Flush() {}

func (w *slowWriter) SetWriteDeadline(deadline time.Time) error { w.deadline = deadline; return nil }

func (w *slowWriter) Write(data []byte) (int, error) {
	time.Sleep(time.Duration(len(data)) * (slowEach / 2) / serve.PartSize)
	if time.Now().After(w.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return w.ResponseWriter.Write(data)
}

const slowEach = 10 * time.Second

// A client that reads slowly but steadily gets a large event, although the whole event takes
// much longer than the time for one part. A client that is slower is disconnected.
//
// SPEC V-03
func TestLargeEventsForSlowClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("x", 20*serve.PartSize+1)
		rec := httptest.NewRecorder()
		if !serve.WriteEvent(&slowWriter{ResponseWriter: rec}, slowEach, text) || rec.Body.String() != text {
			t.Errorf("the client got %d of %d bytes", rec.Body.Len(), len(text))
		}
		if serve.WriteEvent(&slowWriter{ResponseWriter: httptest.NewRecorder()}, slowEach/3, text) {
			t.Error("a client that is too slow is not disconnected")
		}
	})
}

// The address of a client behind a proxy is the last value that the proxy added. Values that
// the client sends itself do not count.
//
// SPEC V-06
func TestForwardedAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	for _, test := range []struct {
		rule  string
		trust bool
		lines []string
		want  string
	}{
		{"the proxy's value", true, []string{"203.0.113.7"}, "203.0.113.7"},
		{"a value of the client in the same line", true, []string{"198.51.100.1, 203.0.113.7"}, "203.0.113.7"},
		{"a line of the client before that of the proxy", true, []string{"198.51.100.1", "203.0.113.7"}, "203.0.113.7"},
		{"an address with a port", true, []string{"203.0.113.7:4711"}, "203.0.113.7"},
		{"an IPv6 address", true, []string{"[2001:db8::7]:4711"}, "2001:db8::7"},
		{"an IPv4 address as IPv6", true, []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		{"a value that is no address", true, []string{"unknown"}, "192.0.2.1"},
		{"an empty last value", true, []string{"198.51.100.1, "}, "192.0.2.1"},
		{"no header", true, nil, "192.0.2.1"},
		{"a header without trust", false, []string{"203.0.113.7"}, "192.0.2.1"},
	} {
		server, err := serve.New(w.host, &serve.Options{Tokens: w.tokens, TrustProxy: test.trust})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = "192.0.2.1:1234"
		r.Header["X-Forwarded-For"] = test.lines
		if got := server.Client(r); got != test.want {
			t.Errorf("%s: %s, want %s", test.rule, got, test.want)
		}
	}
}

// Every answer of the API that is an error is a problem document with a code, also those that
// net/http would make: redirects and wrong methods.
//
// SPEC V-08
func TestEveryErrorIsAProblem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	noRedirect := &http.Client{Transport: http.DefaultTransport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, test := range []struct {
		method, path string
		status       int
		code         string
	}{
		{"GET", "//v1/sessions", 404, "request.not_found"},
		{"GET", "/v1//sessions", 404, "request.not_found"},
		{"GET", "/v1/./sessions", 404, "request.not_found"},
		{"GET", "/v1/x/../sessions", 404, "request.not_found"},
		{"GET", "/v1/sessions/", 404, "request.not_found"},
		{"GET", "/v1/docs/", 404, "request.not_found"},
		{"PUT", "/v1/sessions", 405, "request.method"},
		{"POST", "/healthz", 405, "request.method"},
		{"DELETE", "/v1/openapi.json", 405, "request.method"},
		{"OPTIONS", "/v1/sessions", 405, "request.method"},
		{"TRACE", "/v1/approvals/x", 405, "request.method"},
		{"DELETE", "/v1/sessions/x/turns", 405, "request.method"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), test.method, w.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Path = test.path
		r.Header.Set("Authorization", "Bearer "+w.secret["admin"])
		resp, err := noRedirect.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if p := (&reply{status: resp.StatusCode, header: resp.Header, body: data}).problem(t); p.Status != test.status || string(p.Code) != test.code {
			t.Errorf("%s %s: %+v, want %d %s", test.method, test.path, p, test.status, test.code)
		}
		if test.status == 405 && resp.Header.Get("Allow") == "" {
			t.Errorf("%s %s: there is no header Allow", test.method, test.path)
		}
	}
	for escaped, want := range map[string]bool{"/": true, "/a": true, "/a/": true, "/a/b": true, "/a%2Fb": true, "/a%2F..%2Fb": true, "": false, "a": false, "//": false, "/a//": false, "/..": false, "/a/.": false} {
		if got := serve.IsClean(escaped); got != want {
			t.Errorf("%q is clean: %t, want %t", escaped, got, want)
		}
	}
}

// If the worker of the server ends, because its store was closed, the server ends too, with an
// error.
//
// SPEC V-07
func TestServerEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	h, err := host.Open(t.Context(), &host.Options{Dir: t.TempDir(), UserDir: user, Environ: []string{}, Model: &model{}, NoJobs: true})
	if err != nil {
		t.Fatal(err)
	}
	server, err := serve.New(h, &serve.Options{Tokens: serve.OpenTokens(filepath.Join(user, "tokens")), Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(context.Background(), listener) }()
	resp, err := http.Get("http://" + listener.Addr().String() + "/readyz") //nolint:noctx // the test has its own deadline
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "the server runs no more turns") {
			t.Errorf("the server ends with %v", err)
		}
	case <-time.After(patience):
		t.Error("the server goes on without a worker")
	}
}

// Servers that start at the same time make one local token, and all of them return its secret.
//
// SPEC V-05
func TestLocalTokenIsMadeOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		dir := filepath.Join(t.TempDir(), "tokens")
		const servers = 8
		secrets := make([]string, servers)
		var starting sync.WaitGroup
		begin := make(chan struct{})
		for i := range servers {
			starting.Go(func() {
				<-begin
				var err error
				if secrets[i], err = serve.OpenTokens(dir).Local(); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		starting.Wait()
		for _, secret := range secrets {
			if secret != secrets[0] || secret == "" {
				t.Fatalf("the servers have different tokens: %q", secrets)
			}
		}
		tokens := serve.OpenTokens(dir)
		if again, err := tokens.Local(); err != nil || again != secrets[0] {
			t.Fatalf("later the token is %q, %v, want %q", again, err, secrets[0])
		}
		rotated, err := tokens.Rotate("local")
		if again, _ := serve.OpenTokens(dir).Local(); err != nil || rotated == secrets[0] || again != rotated {
			t.Fatalf("after a rotation the token is %q, %v, want %q", again, err, rotated)
		}
		if err := tokens.Revoke("local"); err != nil {
			t.Fatal(err)
		}
		if after, err := tokens.Local(); err != nil || after == rotated {
			t.Fatalf("after it was revoked the token is %q, %v, want a new one", after, err)
		}
	}
}

// Two processes cannot create one token: the secret that a person got would no longer work.
//
// SPEC V-05
func TestTokensAreCreatedOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tokens")
	var creating sync.WaitGroup
	made := make(chan string, 8)
	for range 8 {
		creating.Go(func() {
			if secret, err := serve.OpenTokens(dir).Create("ci", []serve.Role{serve.RoleRead}, nil); err == nil {
				made <- secret
			}
		})
	}
	creating.Wait()
	if len(made) != 1 {
		t.Errorf("the token was created %d times", len(made))
	}
	tokens := serve.OpenTokens(dir)
	for rule, labels := range map[string]map[string]string{"an empty value": {"tenant": ""}, "an empty value among others": {"tenant": "a", "user": ""}, "an empty name": {"": "x"}} {
		if _, err := tokens.Create("limited", []serve.Role{serve.RoleRead}, labels); err == nil {
			t.Errorf("a token with a label with %s is created", rule)
		}
	}
	if _, err := tokens.Create("local", []serve.Role{serve.RoleRead}, nil); err == nil {
		t.Error("a token with the name of the local one is created")
	}
}

// A slow client of a turn that runs in another process does not make the server grow: it
// misses deltas. It gets a notice, or the stored response, after which no deltas come.
//
// SPEC V-03
func TestSlowClientsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	w := newWorld(t, nil, func(h *host.Options, s *serve.Options) { h.UserDir, s.Workers = user, 0 })
	w.workElsewhere(user)
	id := w.newSession()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	body := w.stream(ctx, "admin", "/v1/sessions/"+id+"/events")
	defer func() { _ = body.Close() }()
	if got := w.turn("admin", id, "talk 20000"); got.Result.Reason != belay.EndTurn { // more than the buffers of the connection hold
		t.Fatalf("the turn ends with %+v", got.Result)
	}
	lines := bufio.NewReader(body)
	kinds := make(map[string]int)
	for kinds[string(belay.EventTurnEnd)] == 0 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ends before the turn: %v, after %v", err, kinds)
		}
		if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "event: "); ok {
			kinds[kind]++
		}
	}
	if kinds["model_response"] != 1 || kinds["turn_start"] != 1 || kinds["missed"] == 0 && kinds["text_delta"] >= 20000 {
		t.Errorf("the client got %v, want each stored event once and not every delta", kinds)
	}
}
