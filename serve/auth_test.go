package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
)

// strict makes every write need approval.
func strict(h *host.Options, _ *serve.Options) {
	h.Settings = append(h.Settings, host.Setting{Path: "mode", Value: "strict"})
}

// fill replaces the variables in the path of an operation.
func fill(path, session, approval, run string) string {
	return strings.NewReplacer("{session}", session, "{approval}", approval, "{run}", run, "{turn}", run, "{job}", "1", "{message}", "1", "{media}", "0", "{response}", "resp_0_x_"+session).Replace(path)
}

// has reports whether a role includes another one.
func has(role, needed serve.Role) bool {
	return role == needed || role == serve.RoleAdmin || needed == serve.RoleRead
}

// Every operation of the table refuses requests without a token, with an unknown token, and
// with a token that lacks the role. No operation reaches a session, an approval or a run of
// another tenant: they do not exist for the token.
//
// SPEC V-05, V-08
func TestRolesAndTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(h *host.Options, s *serve.Options) {
		strict(h, s)
		s.TrustProxy = true // each operation is used from another address: one address may not use many unknown tokens
	})
	for _, role := range serve.Roles() {
		w.token("is-"+string(role), nil, role)
	}
	w.token("other", map[string]string{"tenant": "b"}, serve.RoleAdmin)
	w.secret["unknown"] = "belay_unknown"
	var s session
	w.call("admin", "POST", "/v1/sessions", map[string]any{"labels": map[string]string{"tenant": "a"}}, &s)
	parked := w.turn("admin", s.ID, needsApproval).Result
	if len(parked.Approvals) != 1 {
		t.Fatalf("the turn ends with %+v, want one approval", parked)
	}
	approval := parked.Approvals[0]
	var runs struct{ Runs []struct{ ID string } }
	w.call("admin", "GET", "/v1/runs?all=true&session="+s.ID, nil, &runs)
	if len(runs.Runs) == 0 {
		t.Fatal("the turn has no runs")
	}
	for i, op := range serve.Operations() {
		path := fill(op.Path, s.ID, approval, runs.Runs[0].ID)
		for _, as := range []string{"", "unknown"} {
			if p := w.send(as, op.Method, path, nil, map[string]string{"X-Forwarded-For": fmt.Sprintf("192.0.2.%d", i)}).problem(t); p.Status != 401 {
				t.Errorf("%s with token %q: %+v", op.ID, as, p)
			}
		}
		for _, role := range serve.Roles() {
			if has(role, op.Role) {
				continue
			}
			if p := w.send("is-"+string(role), op.Method, path, nil, nil).problem(t); p.Status != 403 || p.Code != "auth.forbidden" {
				t.Errorf("%s with the role %s: %+v, want 403: it needs %s", op.ID, role, p, op.Role)
			}
		}
		if !strings.Contains(op.Path, "{") && !op.Unlimited || op.ID == "askAudit" { // an audit has no owner: it lists what the token may see
			continue
		}
		body := map[string]any(nil)
		switch op.ID { // valid bodies, so that only the tenant can be wrong
		case "startTurn":
			body = map[string]any{"text": "x"}
		case "decideApproval":
			body = map[string]any{"hash": "x", "allow": true}
		case "updateSession", "forkSession":
			body = map[string]any{}
		}
		r := w.send("other", op.Method, path, jsonBody(body), nil)
		p := r.problem(t)
		if p.Status != 404 || strings.Contains(p.Detail, "tenant") {
			t.Errorf("%s with a token of another tenant: %+v, want 404", op.ID, p)
		}
		if op.Unlimited {
			continue
		}
		absent := w.send("other", op.Method, fill(op.Path, "nobody", "nobody", "nobody"), jsonBody(body), nil)
		for _, id := range []string{s.ID, approval, runs.Runs[0].ID} {
			r.body = []byte(strings.ReplaceAll(string(r.body), id, "nobody"))
		}
		if !bytes.Equal(absent.body, r.body) || absent.status != r.status {
			t.Errorf("%s tells a thing of another tenant from one that does not exist:\n%s\n%s", op.ID, r.body, absent.body)
		}
	}
	var still struct{ State string }
	if w.call("admin", "GET", "/v1/sessions/"+s.ID, nil, &still); still.State != "parked" {
		t.Errorf("the session of the other tenant is %s, want it parked as before", still.State)
	}
}

// jsonBody returns nil for a nil map, so that no body is sent.
func jsonBody(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}

// Lists show a limited token only its own sessions, and what it creates has its labels.
//
// SPEC V-05
func TestLimitedTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, strict)
	labels := map[string]string{"tenant": "a"}
	w.token("a", labels, serve.RoleAdmin)
	w.token("b", map[string]string{"tenant": "b"}, serve.RoleAdmin)
	var mine session
	w.call("a", "POST", "/v1/sessions", map[string]any{"labels": map[string]string{"user": "ann"}}, &mine)
	if mine.Labels["tenant"] != "a" || mine.Labels["user"] != "ann" {
		t.Errorf("the new session has %v", mine.Labels)
	}
	w.turn("a", mine.ID, needsApproval)
	for _, test := range []struct {
		rule, method, path string
		body               map[string]any
		field              string
	}{
		{"it cannot create a session of another tenant", "POST", "/v1/sessions", map[string]any{"labels": map[string]string{"tenant": "b"}}, "/labels/tenant"},
		{"it cannot choose an id", "POST", "/v1/sessions", map[string]any{"id": mine.ID}, "/id"},
		{"it cannot give a session away", "PATCH", "/v1/sessions/" + mine.ID, map[string]any{"labels": map[string]string{"tenant": "b"}}, "/labels/tenant"},
		{"it cannot remove its label", "PATCH", "/v1/sessions/" + mine.ID, map[string]any{"labels": map[string]string{"tenant": ""}}, "/labels/tenant"},
	} {
		if p := w.send("a", test.method, test.path, test.body, nil).problem(t); p.Status != 422 || p.Field != test.field {
			t.Errorf("%s: %+v", test.rule, p)
		}
	}
	for _, path := range []string{"/v1/sessions", "/v1/sessions?label=tenant=a", "/v1/approvals", "/v1/approvals?all=true", "/v1/runs?all=true", "/v1/usage"} {
		if text := string(w.send("b", "GET", path, nil, nil).body); strings.Contains(text, mine.ID) || strings.Contains(text, `"sessions":1`) {
			t.Errorf("%s shows another tenant: %s", path, text)
		}
		if text := string(w.send("a", "GET", path, nil, nil).body); !strings.Contains(text, mine.ID) && path != "/v1/usage" {
			t.Errorf("%s does not show the own session: %s", path, text)
		}
	}
	snapshot := func(as string) (text string) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := w.follow(ctx, as, "/v1/events", "", func(e event) error { text = e.data; return errStop }); err != nil {
			t.Error(err)
		}
		return text
	}
	if text := snapshot("b"); strings.Contains(text, mine.ID) {
		t.Errorf("the feed shows another tenant: %s", text)
	}
	if text := snapshot("a"); !strings.Contains(text, mine.ID) {
		t.Errorf("the feed does not show the own session: %s", text)
	}
}

// Tokens are stored as hashes in files that only the user can read. A rotated or revoked
// secret no longer works, and its streams end.
//
// SPEC V-05
func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	w.token("ci", nil, serve.RoleRead)
	dir := filepath.Dir(w.tokens.LocalFile())
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("the files are %v, %v", files, err)
	}
	for _, file := range append(files, dir) {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v, %v: others can read it", file, info.Mode(), err)
		}
		if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), w.secret["ci"]) {
			t.Errorf("%s has the secret", file)
		}
	}
	for _, test := range []struct {
		rule  string
		name  string
		roles []serve.Role
		want  string
	}{
		{"a name that is a path", "../ci", []serve.Role{serve.RoleRead}, "is invalid"},
		{"a name that exists", "ci", []serve.Role{serve.RoleRead}, "already exists"},
		{"no role", "x", nil, "no role"},
		{"an unknown role", "x", []serve.Role{"aprove"}, `did you mean "approve"?`},
	} {
		if _, err := w.tokens.Create(test.name, test.roles, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.rule, err, test.want)
		}
	}
	old := w.secret["ci"]
	connected, ended := make(chan struct{}, 1), make(chan string, 1)
	go func() {
		last := ""
		_ = follow(t.Context(), w.url+"/v1/events", old, "", func(e event) error { // the server ends the stream
			if last = e.kind + " " + e.data; e.kind == "snapshot" {
				connected <- struct{}{}
			}
			return nil
		})
		ended <- last
	}()
	<-connected
	if w.secret["ci"], err = w.tokens.Rotate("ci"); err != nil {
		t.Fatal(err)
	}
	w.secret["old"] = old
	if r := w.send("old", "GET", "/v1/self", nil, nil); r.status != 401 {
		t.Errorf("the old secret gives %d", r.status)
	}
	w.call("ci", "GET", "/v1/self", nil, nil)
	select {
	case last := <-ended:
		if !strings.HasPrefix(last, "problem ") || !strings.Contains(last, "auth.required") {
			t.Errorf("the stream of the old secret ends with %s", last)
		}
	case <-time.After(patience):
		t.Error("the stream of the old secret does not end")
	}
	if err := w.tokens.Revoke("ci"); err != nil {
		t.Fatal(err)
	}
	if r := w.send("ci", "GET", "/v1/self", nil, nil); r.status != 401 {
		t.Errorf("a revoked token gives %d", r.status)
	}
	if err := w.tokens.Revoke("ci"); !errors.Is(err, serve.ErrNoToken) {
		t.Errorf("revoking it twice: %v", err)
	}
	local, err := w.tokens.Local()
	if again, _ := w.tokens.Local(); err != nil || local == "" || again != local {
		t.Errorf("the local token is %q and then %q, %v", local, again, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "odd.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.tokens.List(); err == nil || !strings.Contains(err.Error(), "odd.json is damaged") {
		t.Errorf("a damaged file: %v", err)
	}
	if r := w.send("admin", "GET", "/v1/self", nil, nil); r.status != 500 || strings.Contains(string(r.body), dir) {
		t.Errorf("with a damaged file: %d %s, want a failure that does not name the file", r.status, r.body)
	}
}

// Too many unknown tokens from one address are slowed down. A valid token still works.
//
// SPEC V-06
func TestFailedLogins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	w.secret["wrong"] = "belay_guess"
	limited := false
	for range serve.MostLogins + 1 {
		r := w.send("wrong", "GET", "/v1/self", nil, nil)
		limited = r.status == http.StatusTooManyRequests && r.header.Get("Retry-After") != ""
	}
	if !limited {
		t.Error("guessing tokens is not limited")
	}
	w.call("admin", "GET", "/v1/self", nil, nil)
}

// A browser cannot be used against the server: other sites cannot send requests, another name
// that resolves to this machine is refused, and no page can frame or run anything.
//
// SPEC V-06
func TestBrowsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(_ *host.Options, o *serve.Options) { o.Hosts = []string{"belay.example.com"} })
	for _, test := range []struct {
		rule   string
		header map[string]string
		status int
	}{
		{"a page of another site", map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, 403},
		{"a page of another site in an old browser", map[string]string{"Origin": "https://evil.example"}, 403},
		{"a page of a neighbour", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"a name that was rebound", map[string]string{"Host": "evil.example:7717"}, 421},
		{"a name that only ends like ours", map[string]string{"Host": "evil-belay.example.com"}, 421},
		{"no name", map[string]string{"Host": " "}, 421},
		{"our own name", map[string]string{"Host": "BELAY.example.com."}, 201},
		{"localhost", map[string]string{"Host": "localhost:7717"}, 201},
		{"an address", map[string]string{"Host": "[::1]:7717"}, 201},
		{"a program", nil, 201},
	} {
		r := w.send("admin", "POST", "/v1/sessions", map[string]any{}, test.header)
		if r.status != test.status {
			t.Errorf("%s: %d %s, want %d", test.rule, r.status, r.body, test.status)
		}
	}
	for _, path := range []string{"/v1/docs", "/v1/self", "/v1/nothing", "/healthz"} {
		h := w.send("admin", "GET", path, nil, nil).header
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "script-src") {
			t.Errorf("%s: the policy is %q", path, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("Access-Control-Allow-Origin") != "" || h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: the headers are %v", path, h)
		}
	}
}

// A hostile client gets clear errors and bounded resources.
//
// SPEC V-06
func TestHostileClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(_ *host.Options, o *serve.Options) { o.MaxBody = 1000 })
	raw := func(body io.Reader, header map[string]string) *reply {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v1/sessions", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.secret["admin"])
		r.Header.Set("Content-Type", "application/json")
		for name, value := range header {
			r.Header.Set(name, value)
		}
		return w.do(r)
	}
	for _, test := range []struct {
		rule, body string
		header     map[string]string
		status     int
	}{
		{"a huge body", `{"title": "` + strings.Repeat("x", 2000) + `"}`, nil, 413},
		{"bad UTF-8", "{\"title\": \"\xff\"}", nil, 400},
		{"no JSON", "{", nil, 400},
		{"an array", "[]", nil, 400},
		{"null", "null", nil, 400},
		{"a key twice", `{"title": "a", "title": "b"}`, nil, 400},
		{"two keys that differ in case", `{"title": "a", "Title": "b"}`, nil, 400},
		{"an unknown key", `{"titel": "a"}`, nil, 422},
		{"a wrong type", `{"title": 1}`, nil, 422},
		{"text after the JSON", `{} {}`, nil, 400},
		{"a form", `title=a`, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415},
		{"a text, as a form of another site can send", `{}`, map[string]string{"Content-Type": "text/plain"}, 415},
		{"deep nesting", strings.Repeat("[", 900), nil, 400},
	} {
		r := raw(strings.NewReader(test.body), test.header)
		if r.status != test.status {
			t.Errorf("%s: %d %s, want %d", test.rule, r.status, r.body, test.status)
		}
		r.problem(t)
	}
	if r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/v1/self", http.NoBody); err == nil {
		r.Header.Set("X-Long", strings.Repeat("x", 1<<20))
		r.Header.Set("Authorization", "Bearer "+w.secret["admin"])
		if resp, err := http.DefaultClient.Do(r); err == nil { // the server may close the connection before the client has sent all
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("a huge header: %d", resp.StatusCode)
			}
		}
	}
	for _, test := range []struct{ rule, path, field string }{
		{"an unknown parameter", "/v1/sessions?limt=3", "/limt"},
		{"a parameter twice", "/v1/sessions?limit=3&limit=4", "/limit"},
		{"a number that is none", "/v1/sessions?limit=many", "/limit"},
		{"a number that is too large", "/v1/sessions?limit=100000", "/limit"},
		{"a label that is none", "/v1/sessions?label=x", "/label"},
		{"bad UTF-8 in a parameter", "/v1/sessions?after=%ff", "/after"},
	} {
		if p := w.send("admin", "GET", test.path, nil, nil).problem(t); p.Status != 422 || p.Field != test.field {
			t.Errorf("%s: %+v", test.rule, p)
		}
	}
	for path, status := range map[string]int{
		"/v1/sessions?after=xx": 400, "/v1/sessions?%zz": 400, "/v1/sessions/" + strings.Repeat("x", 5000): 404, "/v1/sessions/%00": 422, "/v1/sessions/a%2Fb": 404,
		"/v1/sessions/nobody/events?after=x": 404, "/v2": 404,
	} {
		if r := w.send("admin", "GET", path, nil, nil); r.status != status {
			t.Errorf("%.60s: %d %.200s, want %d", path, r.status, r.body, status)
		}
	}
	if r := w.send("admin", "PUT", "/v1/sessions", nil, nil); r.status != 405 || !strings.Contains(r.header.Get("Allow"), "POST") {
		t.Errorf("a wrong method: %d %v", r.status, r.header)
	}
	id := w.newSession()
	for _, after := range []string{"x", "-1", "1-", "1-0-", "9999999999999999999", "1-end-", "0%0Aid:1", "5"} {
		r := w.send("admin", "GET", "/v1/sessions/"+id+"/events?after="+after, nil, nil)
		if r.status != 400 && !strings.Contains(string(r.body), "event: problem") {
			t.Errorf("after=%s: %d %s", after, r.status, r.body)
		}
	}
}

// The server never has more connections than its limit. When one ends, the next is served.
//
// SPEC V-06
func TestConnections(t *testing.T) {
	t.Parallel()
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := serve.LimitListener(inner, 2)
	accepted := make(chan net.Conn, 10)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	})
	var clients []net.Conn
	for range 5 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, conn)
	}
	first, second := <-accepted, <-accepted
	select {
	case <-accepted:
		t.Error("a third connection is accepted")
	case <-time.After(50 * time.Millisecond): // this can only miss a fault, and never report a false one
	}
	_ = first.Close()
	_ = first.Close() // a second Close gives no second place
	third := <-accepted
	select {
	case <-accepted:
		t.Error("a fourth connection is accepted")
	case <-time.After(50 * time.Millisecond):
	}
	_ = listener.Close()
	accepting.Wait()
	for _, conn := range slices.Concat(clients, []net.Conn{second, third}) {
		_ = conn.Close()
	}
}

// outside is a listener with an address that other machines can reach.
type outside struct{ net.Listener }

func (outside) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 7717} }

// On an address that other machines can reach the server refuses to start without tokens. The
// error says what to do. The token of the local user does not count.
//
// SPEC V-05
func TestAddressesNeedTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	tokens := serve.OpenTokens(filepath.Join(t.TempDir(), "tokens"))
	if _, err := tokens.Local(); err != nil {
		t.Fatal(err)
	}
	server, err := serve.New(w.host, &serve.Options{Tokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = inner.Close() }()
	if err := server.Serve(t.Context(), outside{inner}); err == nil || !strings.Contains(err.Error(), "belay token create") {
		t.Errorf("it serves without tokens: %v", err)
	}
	if _, err := tokens.Create("ci", []serve.Role{serve.RoleRead}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Serve(ctx, outside{inner}); err != nil {
		t.Errorf("with a token: %v", err)
	}
}

// Health needs no token and says nothing secret.
//
// SPEC V-02, V-05
func TestHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	for path, want := range map[string]string{"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ready"}`} {
		if r := w.send("", "GET", path, nil, nil); r.status != 200 || strings.TrimSpace(string(r.body)) != want {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

// The decoders accept or reject every request without a panic. What they accept is a JSON
// object, and what they reject is a problem document with a status of the client's fault.
//
// SPEC V-06, V-08
func FuzzDecode(f *testing.F) {
	f.Add(0, "label=a=b&limit=3", `{"id": "a", "labels": {"a": "b"}}`, "s")
	f.Add(3, "", `{"title": null}`, "a/b")
	f.Add(9, "wait=end", `{"text": "hello", "wait": "end"}`, "\xff")
	f.Add(15, "%zz", `{"hash": "x", "allow": true, "scope": "session"}`, "")
	f.Add(16, "state=failed&state=skipped&since=2026-01-01T00:00:00Z", "", "s")
	f.Fuzz(func(t *testing.T, index int, query, body, id string) {
		all := serve.Operations()
		op := all[((index%len(all))+len(all))%len(all)]
		r := httptest.NewRequestWithContext(t.Context(), op.Method, "http://localhost/", strings.NewReader(body))
		r.URL.RawQuery = query
		r.Header.Set("Content-Type", "application/json")
		data, err := op.Decode(r, func(string) string { return id }, 1<<10)
		if err != nil {
			p, ok := errors.AsType[*serve.Problem](err)
			if !ok || p.Status < 400 || p.Status > 422 {
				t.Errorf("%s: %v, want a problem of the client", op.ID, err)
			}
			return
		}
		var object map[string]any
		if err := json.Unmarshal(data, &object); err != nil {
			t.Errorf("%s: accepted %q: %v", op.ID, data, err)
		}
	})
}
