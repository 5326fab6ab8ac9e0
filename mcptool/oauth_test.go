package mcptool_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/mcptool"
)

// guardedWiki is an MCP server with a strict authorization server at the same address. It
// refuses everything that the protocol does not allow.
type guardedWiki struct {
	t   *testing.T
	web *httptest.Server
	mcp http.Handler

	mu        sync.Mutex
	noClients bool                  // there is no dynamic registration
	denies    bool                  // the user says no
	life      int                   // the lifetime of tokens in seconds; 0 means that they do not expire
	clients   map[string]string     // client id: redirect URI
	codes     map[string]url.Values // code: the parameters of the authorization
	access    map[string]bool
	refresh   map[string]bool // false: used
	refreshed int
	faults    []string
}

func newGuardedWiki(t *testing.T) *guardedWiki {
	t.Helper()
	server := oneTool(func(_ context.Context, r *mcp.CallToolRequest, in words) (string, error) {
		return "said " + in.Text + " with " + r.Extra.Header.Get("Authorization")[:7], nil
	})
	g := &guardedWiki{
		t: t, clients: map[string]string{"by-hand": ""}, codes: make(map[string]url.Values), access: make(map[string]bool), refresh: make(map[string]bool),
		mcp: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		g.say(w, map[string]any{"resource": g.resource(), "authorization_servers": []string{g.web.URL}, "scopes_supported": []string{"read"}})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		about := map[string]any{
			"issuer": g.web.URL, "authorization_endpoint": g.web.URL + "/authorize", "token_endpoint": g.web.URL + "/token", "response_types_supported": []string{"code"},
			"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
		}
		if !g.noClients {
			about["registration_endpoint"] = g.web.URL + "/register"
		}
		g.say(w, about)
	})
	mux.HandleFunc("POST /register", g.register)
	mux.HandleFunc("GET /authorize", g.authorize)
	mux.HandleFunc("POST /token", g.token)
	mux.HandleFunc("/mcp", g.serve)
	g.web = httptest.NewServer(mux)
	t.Cleanup(g.web.Close)
	t.Cleanup(func() {
		if len(g.faults) > 0 {
			t.Errorf("the authorization server found these faults: %v", g.faults)
		}
	})
	return g
}

func (g *guardedWiki) resource() string { return g.web.URL + "/mcp" }

func (g *guardedWiki) server(name string) mcptool.Server {
	return mcptool.Server{Name: name, URL: g.resource()}
}

func (g *guardedWiki) say(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) //nolint:errchkjson // the client sees a broken answer
}

// refuse records a fault of the client, and answers with an OAuth error.
func (g *guardedWiki) refuse(w http.ResponseWriter, code, fault string) {
	if fault != "" {
		g.faults = append(g.faults, fault)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": code}) //nolint:errchkjson // the client sees a broken answer
}

func (g *guardedWiki) register(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
		Grants    []string `json:"grant_types"`
		Kind      string   `json:"application_type"`
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Redirects) != 1 || !strings.HasPrefix(in.Redirects[0], "http://127.0.0.1:") || in.Method != "none" || len(in.Grants) != 2 || in.Kind != "native" {
		g.refuse(w, "invalid_client_metadata", fmt.Sprintf("registration %+v", in))
		return
	}
	id := rand.Text()
	g.clients[id] = in.Redirects[0]
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"client_id": id, "redirect_uris": in.Redirects, "token_endpoint_auth_method": "none"}) //nolint:errchkjson // the client sees a broken answer
}

func (g *guardedWiki) authorize(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := r.URL.Query()
	redirect, known := g.clients[q.Get("client_id")]
	if !known || redirect != "" && q.Get("redirect_uri") != redirect || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 ||
		len(q.Get("state")) < 16 || q.Get("resource") != g.resource() || q.Get("scope") != "read" {
		g.refuse(w, "invalid_request", "authorization "+r.URL.RawQuery)
		return
	}
	back := url.Values{"state": {q.Get("state")}, "iss": {g.web.URL}}
	if g.denies {
		back.Set("error", "access_denied")
		back.Set("error_description", "the user said no")
	} else {
		code := rand.Text()
		g.codes[code] = q
		back.Set("code", code)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (g *guardedWiki) token(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := r.ParseForm(); err != nil || r.PostForm.Get("resource") != g.resource() {
		g.refuse(w, "invalid_target", "the resource "+r.PostForm.Get("resource"))
		return
	}
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		asked := g.codes[r.PostForm.Get("code")]
		delete(g.codes, r.PostForm.Get("code"))
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if asked == nil || base64.RawURLEncoding.EncodeToString(sum[:]) != asked.Get("code_challenge") || r.PostForm.Get("redirect_uri") != asked.Get("redirect_uri") || r.PostForm.Get("client_id") != asked.Get("client_id") {
			g.refuse(w, "invalid_grant", "the code, its verifier, its redirect or its client")
			return
		}
	case "refresh_token":
		unused, known := g.refresh[r.PostForm.Get("refresh_token")]
		if !known {
			g.refuse(w, "invalid_grant", "")
			return
		}
		if !unused {
			clear(g.refresh) // somebody may have stolen it: the whole login ends
			g.refuse(w, "invalid_grant", "a refresh token is used twice")
			return
		}
		g.refresh[r.PostForm.Get("refresh_token")] = false
		g.refreshed++
	default:
		g.refuse(w, "unsupported_grant_type", "the grant "+r.PostForm.Get("grant_type"))
		return
	}
	access, refresh := "at-"+rand.Text(), "rt-"+rand.Text()
	g.access[access], g.refresh[refresh] = true, true
	out := map[string]any{"access_token": access, "token_type": "Bearer", "refresh_token": refresh}
	if g.life > 0 {
		out["expires_in"] = g.life
	}
	g.say(w, out)
}

func (g *guardedWiki) serve(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	good := g.access[token]
	g.mu.Unlock()
	if !good {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, g.web.URL))
		http.Error(w, "who are you? not "+token, http.StatusUnauthorized)
		return
	}
	g.mcp.ServeHTTP(w, r)
}

// expire ends all access tokens.
func (g *guardedWiki) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.access)
}

// revoke ends all tokens.
func (g *guardedWiki) revoke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.access)
	clear(g.refresh)
}

func (g *guardedWiki) refreshes() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refreshed
}

// browse opens an address as a browser does. It returns the text of the last page.
func browse(ctx context.Context, address string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return fmt.Sprint(response.StatusCode, " ", string(text)), err
}

// browser is a user who says yes.
func browser(ctx context.Context, address string) error {
	_, err := browse(ctx, address)
	return err
}

func logins(t *testing.T) *mcptool.Logins {
	t.Helper()
	return &mcptool.Logins{Dir: filepath.Join(t.TempDir(), "tokens", "mcp")}
}

func logIn(t *testing.T, l *mcptool.Logins, s mcptool.Server) {
	t.Helper()
	if err := l.Login(t.Context(), s, &mcptool.LoginOptions{Open: browser}); err != nil {
		t.Fatal(err)
	}
}

// needsLogin waits until a server is down because it needs a login.
func needsLogin(t *testing.T, e *mcptool.Extension, name, why string) {
	t.Helper()
	await(t, e, name, func(s mcptool.Status) bool {
		return s.State == mcptool.StateDown && s.Err != nil && strings.Contains(s.Err.Error(), why+": run `belay mcp login "+name+"`")
	})
}

// A user logs in once. Then the server works, also after its tokens have expired, until the
// user logs out or the login is revoked.
//
// SPEC E-09
func TestLogin(t *testing.T) {
	t.Parallel()
	wiki, l, log := newGuardedWiki(t), logins(t), new(records)
	opts := func() *mcptool.Options {
		return quick(mcptool.Options{Logins: l, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	}
	e := open(t, opts(), wiki.server("wiki"))
	needsLogin(t, e, "wiki", "the server needs a login")

	logIn(t, l, wiki.server("wiki"))
	await(t, e, "wiki", inState(mcptool.StateReady)) // nobody starts anything again
	if r := call(t, e, "wiki__do", `{"text":"hi"}`); r.Text != "said hi with Bearer " {
		t.Errorf("result = %+v", r)
	}

	wiki.expire()
	if r := call(t, e, "wiki__do", `{"text":"again"}`); r.Text != "said again with Bearer " || wiki.refreshes() < 1 || wiki.refreshes() > 2 { // the standing stream may refresh too
		t.Errorf("after the token has expired: result = %+v, and %d refreshes", r, wiki.refreshes())
	}

	wiki.revoke()
	if r := call(t, e, "wiki__do", `{}`); !strings.Contains(r.Text, "the login is no longer valid: run `belay mcp login wiki`") || strings.Contains(r.Text, "unknown") {
		t.Errorf("after the login was revoked: result = %+v", r)
	}
	logIn(t, l, wiki.server("wiki"))
	await(t, e, "wiki", inState(mcptool.StateReady))

	server := wiki.server("wiki")
	for _, want := range []bool{true, false} {
		if was, err := l.Logout(&server); was != want || err != nil {
			t.Errorf("logout: %t, %v, want %t", was, err, want)
		}
	}
	if r := call(t, e, "wiki__do", `{}`); !strings.Contains(r.Text, "the server needs a login") {
		t.Errorf("after the logout: result = %+v", r)
	}
	for _, secret := range []string{"at-", "rt-"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has a token: %s", log.String())
		}
	}
}

// Only the user can read the file of a login, and only the server that the user logged in to
// gets the token.
//
// SPEC E-09, C-11
func TestALoginBelongsToOneServer(t *testing.T) {
	t.Parallel()
	wiki, other, l := newGuardedWiki(t), newGuardedWiki(t), logins(t)
	logIn(t, l, wiki.server("wiki"))
	files, err := filepath.Glob(filepath.Join(l.Dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files = %v, %v", files, err)
	}
	for path, want := range map[string]os.FileMode{files[0]: 0o600, l.Dir: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	e := open(t, quick(mcptool.Options{Logins: l}), wiki.server("wiki"), wiki.server("project-wiki"))
	await(t, e, "wiki", inState(mcptool.StateReady))
	needsLogin(t, e, "project-wiki", "the server needs a login")
	elsewhere := open(t, quick(mcptool.Options{Logins: l}), other.server("wiki"))
	needsLogin(t, elsewhere, "wiki", "the server needs a login")
}

// Tokens with a lifetime are refreshed before they expire. If several agents do this at once,
// each refresh token is used once.
//
// SPEC E-09
func TestTokensAreRefreshedOnce(t *testing.T) {
	t.Parallel()
	wiki, l := newGuardedWiki(t), logins(t)
	wiki.life = 20 // less than Belay wants to have left
	logIn(t, l, wiki.server("wiki"))
	wiki.mu.Lock()
	wiki.life = 3600
	wiki.mu.Unlock()
	const agents = 8
	var all sync.WaitGroup
	made := make([]*mcptool.Extension, agents)
	for i := range agents {
		all.Go(func() {
			e, err := mcptool.New(t.Context(), []mcptool.Server{wiki.server("wiki")}, quick(mcptool.Options{Logins: l}))
			if err != nil {
				t.Error(err)
			}
			made[i] = e
		})
	}
	all.Wait()
	for _, e := range made {
		await(t, e, "wiki", inState(mcptool.StateReady))
		shut(t, e)
	}
	if n := wiki.refreshes(); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
}

// Requests from other pages of the browser change nothing, and a login ends only with the
// answer that belongs to it.
//
// SPEC E-09
func TestTheRedirectBelongsToItsLogin(t *testing.T) {
	t.Parallel()
	wiki, l := newGuardedWiki(t), logins(t)
	attack := func(ctx context.Context, address string) error {
		asked, err := url.Parse(address)
		if err != nil {
			return err
		}
		back := asked.Query().Get("redirect_uri")
		for _, forged := range []string{back, back + "?code=evil", back + "?code=evil&state=guess", back + "?error=access_denied&state=", strings.TrimSuffix(back, "callback") + "?state=" + asked.Query().Get("state")} {
			if page, err := browse(ctx, forged); err != nil || !strings.HasPrefix(page, "400") && !strings.HasPrefix(page, "404") {
				t.Errorf("%s: %s, %v", forged, page, err)
			}
		}
		page, err := browse(ctx, address)
		if err != nil || !strings.Contains(page, "close this window") {
			t.Errorf("the login: %s, %v", page, err)
		}
		if page, err := browse(ctx, back+"?code=evil&state="+asked.Query().Get("state")); err == nil && !strings.HasPrefix(page, "400") { // an error means that nobody listens any more
			t.Errorf("the stolen state: %s", page)
		}
		return nil
	}
	if err := l.Login(t.Context(), wiki.server("wiki"), &mcptool.LoginOptions{Open: attack}); err != nil {
		t.Error(err)
	}
	if server := wiki.server("wiki"); !l.Has(&server) {
		t.Error("there is no login")
	}
}

// A login that does not succeed says why, and leaves nothing behind.
//
// SPEC E-09
func TestLoginsThatFail(t *testing.T) {
	t.Parallel()
	wiki, open := newGuardedWiki(t), overHTTP(t, func(context.Context, *mcp.CallToolRequest, words) (string, error) { return "", nil })
	denies, noClients := newGuardedWiki(t), newGuardedWiki(t)
	denies.denies, noClients.noClients = true, true
	header := wiki.server("wiki")
	header.Headers = map[string]string{"authorization": "Bearer x"}
	untrusted := wiki.server("wiki")
	untrusted.Prepare = func(context.Context, []string) ([]string, error) { return nil, errors.New("it is not trusted") }
	gone, cancel := context.WithCancelCause(t.Context())
	leave := func(context.Context, string) error { cancel(errors.New("the user left")); return nil }
	for _, test := range []struct {
		rule   string
		server mcptool.Server
		opts   mcptool.LoginOptions
		ctx    context.Context //nolint:containedctx // of the test
		want   string
	}{
		{"the user says no", denies.server("wiki"), mcptool.LoginOptions{}, nil, "the authorization server answers: access_denied the user said no"},
		{"the server needs no login", mcptool.Server{Name: "wiki", URL: open}, mcptool.LoginOptions{}, nil, "the server does not ask for a login"},
		{"a program has no login", mcptool.Server{Name: "wiki", Command: "x"}, mcptool.LoginOptions{}, nil, "only a server with a url has a login"},
		{"a header is declared", header, mcptool.LoginOptions{}, nil, "remove the header first"},
		{"the server may not run", untrusted, mcptool.LoginOptions{}, nil, "it is not trusted"},
		{"the server knows no new clients", noClients.server("wiki"), mcptool.LoginOptions{}, nil, "--client-id"},
		{"the user leaves", wiki.server("wiki"), mcptool.LoginOptions{Open: leave}, gone, "the user left"},
		{"the user pastes something else", wiki.server("wiki"), mcptool.LoginOptions{Open: func(context.Context, string) error { return nil }, Paste: func(context.Context) (string, error) { return "yes", nil }}, nil, "paste the whole address"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			l, ctx := logins(t), test.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			if test.opts.Open == nil {
				test.opts.Open = browser
			}
			if err := l.Login(ctx, test.server, &test.opts); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
			if l.Has(&test.server) {
				t.Error("there is a login")
			}
		})
	}
}

// A client that was registered by hand can log in, and a user whose browser is on another
// machine can paste the address.
func TestLoginOptions(t *testing.T) {
	t.Parallel()
	wiki, l := newGuardedWiki(t), logins(t)
	wiki.noClients = true
	shown := make(chan string, 1)
	err := l.Login(t.Context(), wiki.server("wiki"), &mcptool.LoginOptions{
		ClientID: "by-hand",
		Open:     func(_ context.Context, address string) error { shown <- address; return nil },
		Paste: func(ctx context.Context) (string, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, <-shown, http.NoBody)
			if err != nil {
				return "", err
			}
			response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r) // follows no redirect
			if err != nil {
				return "", err
			}
			return response.Header.Get("Location"), response.Body.Close()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, quick(mcptool.Options{Logins: l}), wiki.server("wiki"))
	await(t, e, "wiki", inState(mcptool.StateReady))
}
