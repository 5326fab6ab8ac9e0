//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newLoginServer serves MCP to whoever has the token "tok-1", and gives that token to everybody
// who logs in. Package mcptool tests logins against a strict server.
func newLoginServer(t *testing.T) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "wiki", Version: "7"}, &mcp.ServerOptions{Instructions: "Read first."})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	mux := http.NewServeMux()
	var web *httptest.Server
	say := func(w http.ResponseWriter, code int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusOK, map[string]any{
			"issuer": web.URL, "authorization_endpoint": web.URL + "/authorize", "token_endpoint": web.URL + "/token", "registration_endpoint": web.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusCreated, map[string]any{"client_id": "c", "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"x"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusOK, map[string]any{"access_token": "tok-1-0123456789", "token_type": "Bearer"})
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer tok-1-0123456789" {
			http.Error(w, "log in first", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
	web = httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return web.URL + "/mcp"
}

// A user logs in to an MCP server, uses it and logs out. The token is never shown, and no agent
// can read its file.
//
// SPEC E-09
func TestMCPLogin(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{
		"m.json": fmt.Sprintf(`{"mcpServers": {"wiki": {"url": %q}}}`, newLoginServer(t)),
	})
	if _, stderr, code := belay(t, dir, "mcp", "try", "wiki", "--mcp", "m.json"); code != 1 || !strings.Contains(stderr, "the server needs a login: run `belay mcp login wiki`") {
		t.Fatalf("exit code %d:\n%s", code, stderr)
	}
	c := start(t, dir, "mcp", "login", "wiki", "--no-browser", "--mcp", "m.json")
	address := regexp.MustCompile(`http://\S+/authorize\S+`).FindString(c.await(c.stderr, "&state="))
	response, err := http.Get(address) //nolint:noctx // the test is the browser
	if err != nil {
		t.Fatal(err)
	}
	if page, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(page), "close this window") {
		t.Errorf("the page: %s, %v", page, err)
	}
	_ = response.Body.Close()
	if rest, code := c.ended(); code != 0 || strings.Contains(rest, "tok-1") {
		t.Fatalf("exit code %d:\n%s", code, rest)
	}
	stdout, stderr, code := belay(t, dir, "mcp", "try", "wiki", "--mcp", "m.json", "--debug")
	if code != 0 || !strings.Contains(stdout, "Read first.") || strings.Contains(stdout+stderr, "tok-1") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}

	files, err := filepath.Glob(filepath.Join(dir, "belay", "tokens", "mcp", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files = %v, %v", files, err)
	}
	if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), "tok-1") {
		t.Errorf("the file: %v", err)
	}
	for _, args := range [][]string{
		{"--tool", "read", "--input", fmt.Sprintf(`{"path": %q}`, files[0])},
		{"cat " + files[0]},
		{"cp -r " + filepath.Join(dir, "belay", "tokens") + " ."},
	} {
		if stdout, _, _ := belay(t, dir, append([]string{"permit", "explain", "--mode", "permissive"}, args...)...); !strings.HasPrefix(stdout, "DENY") {
			t.Errorf("%v: %s", args, stdout)
		}
	}
	if _, stderr, code := belay(t, dir, "mcp", "logout", "wiki", "--mcp", "m.json"); code != 0 || !strings.Contains(stderr, "logged out") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
	if _, stderr, code := belay(t, dir, "mcp", "try", "wiki", "--mcp", "m.json"); code != 1 || !strings.Contains(stderr, "the server needs a login") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}
