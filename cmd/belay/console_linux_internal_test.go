//go:build linux

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// "belay console" gives the token to the browser, once, and leaves no file behind. If there is
// no browser, it says what to do.
//
// SPEC G-01, V-05
func TestConsole(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"answers.yaml": "steps:\n  - text: Hello.\n"})
	server := start(t, dir, "serve", "--listen", "127.0.0.1:0", "--model", "scripted/answers.yaml")
	hint := server.await(server.stderr, "console")
	url := regexp.MustCompile("`belay --server (http://[0-9.:]+) console`").FindStringSubmatch(hint)
	if url == nil {
		t.Fatalf("belay serve does not say how to open the console: %s", hint)
	}
	secret, err := os.ReadFile(filepath.Join(dir, "belay", "tokens", "local.secret"))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(secret))

	bin := t.TempDir()
	put(t, bin, "xdg-open", "#!/bin/sh\nexit 3\n")
	if err := os.Chmod(filepath.Join(bin, "xdg-open"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + bin + ":" + os.Getenv("PATH")
	open := func() *child {
		t.Helper()
		c := &child{Cmd: command(t, dir, "--server", url[1], "console"), t: t}
		c.Env = append(c.Env, path)
		c.run()
		return c
	}
	rest, code := open().ended()
	for _, want := range []string{"xdg-open cannot open a browser: exit status 3", "open " + url[1] + " in a browser", "local.secret", "belay console --print"} {
		if code == 0 || !strings.Contains(rest, want) {
			t.Errorf("without a browser: exit code %d, and the message lacks %q: %s", code, want, rest)
		}
	}

	// The program writes the page that it must open into a named pipe.
	opened := filepath.Join(bin, "opened")
	if err := syscall.Mkfifo(opened, 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, bin, "xdg-open", "#!/bin/sh\ncat \"$1\" > "+opened+"\n")
	c := open()
	page, err := os.ReadFile(opened)
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`href="([^"]+)"`).FindStringSubmatch(string(page))
	if link == nil || strings.Contains(string(page), token) {
		t.Fatalf("the page must have a link, and not the token: %s", page)
	}
	if got := location(t, link[1]+"x"); got != "" {
		t.Errorf("another path leads to %q", got)
	}
	if got, want := location(t, link[1]), url[1]+"/login#"+token; got != want {
		t.Errorf("the page leads to %q, want %q", got, want)
	}
	if rest, code := c.ended(); code != 0 {
		t.Errorf("exit code %d: %s", code, rest)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "belay", "tokens", "*.html")); err != nil || len(left) > 0 {
		t.Errorf("files stay: %v, %v", left, err)
	}
}

// location returns where a page leads to, or "".
func location(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // it is empty
	return resp.Header.Get("Location")
}
