//go:build unix

package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// "belay serve" makes a token for its user, runs turns, and stops with SIGTERM. Other commands
// see the same sessions.
//
// SPEC V-01, V-05, V-07
func TestServe(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"answers.yaml": "steps:\n  - text: Hello over HTTP.\n"})
	c := start(t, dir, "serve", "--listen", "127.0.0.1:0", "--model", "scripted/answers.yaml")
	_, rest, _ := strings.Cut(c.await(c.stderr, "http://"), "http://")
	url := "http://" + strings.TrimSpace(rest)
	c.await(c.stderr, "your token is in ")
	secret, err := os.ReadFile(filepath.Join(dir, "belay", "tokens", "local.secret"))
	if err != nil {
		t.Fatal(err)
	}
	send := func(path, body string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(secret)))
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	send("/v1/sessions", `{"id": "first"}`)
	if got := send("/v1/sessions/first/turns", `{"text": "hello", "wait": "end"}`); !strings.Contains(got, "Hello over HTTP.") {
		t.Errorf("the turn gives %s", got)
	}
	c.signal(syscall.SIGTERM)
	if rest, code := c.ended(); code != 0 || !strings.Contains(rest, "stopping: ") {
		t.Errorf("exit code %d: %s", code, rest)
	}
	if out, errs, code := belay(t, dir, "show", "first"); code != 0 || !strings.Contains(out, "Hello over HTTP.") {
		t.Errorf("show: exit code %d, %s, %s", code, out, errs)
	}
}
